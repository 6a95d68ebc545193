package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// debianPackages are the packages that nodes need, each with a program or file that shows that it is
// installed.
var debianPackages = []struct{ sign, name string }{
	{"crun", "crun"},
	{"runc", "runc"}, // for tests of the gate
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"ip", "iproute2"},
	{"iptables", "iptables"},
	{"conntrack", "conntrack"},
	{"nsenter", "util-linux"},
	{"/bin/busybox", "busybox-static"},
	{"modprobe", "kmod"},
}

// InstallPackages installs the missing packages.
func InstallPackages(ctx context.Context, log io.Writer) error {
	var missing []string
	for _, p := range debianPackages {
		// LookPath accepts a path with a slash.
		if _, err := exec.LookPath(p.sign); err != nil {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("nodes require %s (names of Debian packages), and apt-get is not available to install them", strings.Join(missing, ", "))
	}
	fmt.Fprintf(log, "installing %s from Debian …\n", strings.Join(missing, ", "))
	if err := aptGet(ctx, append([]string{"install"}, missing...)); err == nil {
		return nil
	}
	// The package lists of a new machine are missing or outdated.
	if err := aptGet(ctx, []string{"update"}); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install"}, missing...))
}

func aptGet(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-qq", "-y", "--no-install-recommends"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
