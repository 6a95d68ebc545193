// Command release writes a release of this commit, or uploads the images of one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/mod/semver"

	"github.com/stateful-operator/stateful-operator/test/bundle"
	"github.com/stateful-operator/stateful-operator/test/release"
)

const usage = `usage: release COMMAND --version=1.2.3 --registry=ghcr.io/you --out=FOLDER FLAGS
$SIGNING_KEY_PEM is the key if there is no --key.
  write  [--architectures=amd64,arm64] [--source=URL] [--opm=PROGRAM] [--key=FILE] [--unsigned=yes] [--bundle=false]
  push   [--key=FILE] [--unsigned=yes]
`

// plugin is the folder of the kubectl plugin.
const plugin = "cmd/kubectl-stateful"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, args []string) error {
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	r := release.Release{
		Images: []release.Image{release.Operator, release.Gate},
		Manifests: map[string]string{
			"install.yaml": "config/default", "install-namespaced.yaml": "config/namespaced",
			"monitoring.yaml": "config/default/monitoring", "monitoring-olm.yaml": "config/olm/monitoring",
		},
		Desks:     release.Desks,
		Changelog: "CHANGELOG.md", License: "LICENSE", Log: os.Stderr,
	}
	flags.StringVar(&r.Version, "version", "", "")
	flags.StringVar(&r.Registry, "registry", "", "")
	flags.StringVar(&r.Out, "out", "", "")
	flags.StringVar(&r.Source, "source", "https://github.com/stateful-operator/stateful-operator", "")
	key := flags.String("key", "", "")
	architectures := flags.String("architectures", strings.Join(release.Architectures, ","), "")
	unsigned := flags.String("unsigned", "", "")
	opm := flags.String("opm", "", "")
	withBundle := flags.Bool("bundle", true, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r.Architectures = strings.Split(*architectures, ",")
	r.Key = []byte(os.Getenv("SIGNING_KEY_PEM"))
	if *key != "" {
		text, err := os.ReadFile(*key)
		if err != nil {
			return err
		}
		r.Key = text
	}
	r.Unsigned = *unsigned == "yes"
	switch command {
	case "push":
		pushed, err := r.Push(ctx, remote.WithAuthFromKeychain(authn.DefaultKeychain))
		for _, reference := range pushed {
			fmt.Println("Pushed", reference)
		}
		return err
	case "write":
		return write(ctx, &r, *opm, *withBundle)
	}
	return fmt.Errorf("unknown command\n%s", usage)
}

func write(ctx context.Context, r *release.Release, opm string, withBundle bool) error {
	if err := ofCommit(ctx, r); err != nil {
		return err
	}
	if _, err := os.Stat(plugin); err == nil {
		r.Plugin = "./" + plugin
	}
	if withBundle {
		if opm == "" {
			return errors.New("--opm is required for the catalog")
		}
		r.Bundle = func(ctx context.Context, operator, folder string) error { return bundleOf(ctx, r, operator, folder) }
		r.Catalog = func(ctx context.Context, folder, image, out string) error {
			return catalogOf(ctx, opm, folder, image, out)
		}
	}
	if err := r.Write(ctx); err != nil {
		return err
	}
	fmt.Printf("Wrote version %s of commit %s to %s\n", r.Version, r.Commit, r.Out)
	return nil
}

// ofCommit sets the commit and its time. A version that is not a prerelease requires a commit without
// later changes.
func ofCommit(ctx context.Context, r *release.Release) error {
	var err error
	if r.Commit, err = git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	changed, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		if semver.Prerelease("v"+r.Version) == "" {
			return fmt.Errorf("version %s must be that of a commit, and these files are changed; commit them, or use a version such as %s-dev.1:\n%s", r.Version, r.Version, changed)
		}
		r.Commit += "-changed"
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = git(ctx, "log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH %q is not a time in seconds: %w", seconds, err)
	}
	r.Time = time.Unix(at, 0).UTC()
	return nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// bundleOf lets make write the bundle next to a folder, as `make bundle` does, and moves it there.
func bundleOf(ctx context.Context, r *release.Release, operator, folder string) error {
	beside := folder + "-made"
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "release-bundle", "VERSION="+r.Version, "IMAGE="+operator, "OUT="+beside,
		"SCORECARD_IMAGE="+r.Registry+"/stateful-operator-scorecard:"+r.Version, "ARCHITECTURES="+strings.Join(r.Architectures, " "))
	command.Stdout, command.Stderr = r.Log, r.Log
	if err := command.Run(); err != nil {
		return fmt.Errorf("make release-bundle: %w", err)
	}
	return os.Rename(filepath.Join(beside, "bundle"), folder)
}

// catalogOf writes the catalog of the tree with this release's bundle.
func catalogOf(ctx context.Context, opm, folder, image, out string) error {
	text, err := bundle.Render(ctx, opm, "config/olm/catalog.yaml", bundle.Version{Name: "present", Image: image, Folder: folder})
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(out, "catalog"), os.DirFS("catalog")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "catalog", "stateful-operator", "catalog.yaml"), text, 0o644)
}
