package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// debianPackages is what nodes need from the machine: a program, or a file,
// that reports whether it is there, and the package that brings it.
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

// InstallPackages brings what is missing.
func InstallPackages(ctx context.Context, log io.Writer) error {
	var missing []string
	for _, p := range debianPackages {
		// LookPath takes a path with a slash as it is.
		if _, err := exec.LookPath(p.sign); err != nil {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("nodes need %s (names of Debian packages), and there is no apt-get to install them", strings.Join(missing, ", "))
	}
	fmt.Fprintf(log, "installing %s from Debian …\n", strings.Join(missing, ", "))
	if err := aptGet(ctx, append([]string{"install"}, missing...)); err == nil {
		return nil
	}
	// A fresh machine has no package lists, or stale ones.
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
