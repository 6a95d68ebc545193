// Package release writes the files of a version for its users: manifests, images, OLM's bundle and
// catalog, kubectl plugins, and the provenance of all of them.
//
// The same commit gives the same bytes on any machine with the same version of Go. Files contain no
// time except that of the commit, no path of this machine, and no random order.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// Architectures are the architectures of Kubernetes' nodes with released images.
var Architectures = []string{"amd64", "arm64", "ppc64le", "s390x"}

// Release is a version and its build options.
type Release struct {
	// Version has no leading v, such as 1.2.3. A version with a suffix, such as 1.2.3-rc.1, is a
	// prerelease of the changes under Unreleased in CHANGELOG.md.
	Version string
	// Registry is the registry of its images, such as ghcr.io/you.
	Registry string
	// Source is the repository of the commit, and Commit is its hash.
	Source, Commit string
	// Time is the time of the commit.
	Time time.Time
	// Architectures are the architectures of the images.
	Architectures []string
	// Images are the images with programs.
	Images []Image
	// Manifests are kustomize folders, by the name of the rendered file.
	Manifests map[string]string
	// Plugin is the package of the kubectl plugin, or empty, and Desks are its platforms.
	Plugin string
	Desks  []cluster.Target
	// Bundle writes OLM's bundle for an image of the operator into a folder. Catalog writes the catalog
	// for a bundle and its image into another folder. Without Bundle there is neither.
	Bundle  func(ctx context.Context, operator, folder string) error
	Catalog func(ctx context.Context, bundle, image, folder string) error
	// Changelog is the source of the release notes. License is added to each archive.
	Changelog, License string
	// Key is a private key in PEM that signs the checksums. Without it nothing is signed.
	Key []byte
	// Unsigned allows a version without a suffix to have no key.
	Unsigned bool
	// Out is the folder of the release's files. Log receives progress messages.
	Out string
	Log io.Writer

	// work is a temporary folder.
	work string
	// programs are all built programs.
	programs []string
}

// plain matches values that are used in file names, image names and linker flags.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./:_+-]*$`)

// check rejects invalid options.
func (r *Release) check() error {
	switch {
	case !semver.IsValid("v"+r.Version) || strings.Count(r.Version, ".") < 2 || strings.Contains(r.Version, "+"):
		return fmt.Errorf("version %q is not of the form 1.2.3 or 1.2.3-rc.1", r.Version)
	case !plain.MatchString(r.Registry):
		return fmt.Errorf("registry %q is not of the form ghcr.io/you", r.Registry)
	case !plain.MatchString(r.Commit):
		return fmt.Errorf("commit %q is not a commit hash", r.Commit)
	case r.Out == "":
		return errors.New("a folder for the output is required")
	case r.lacksKey():
		return fmt.Errorf("version %s would not be signed: provide a key, or UNSIGNED=yes", r.Version)
	case len(r.Architectures) == 0:
		return fmt.Errorf("architectures are required, such as %s", strings.Join(Architectures, ","))
	}
	return nil
}

// lacksKey reports whether a required key is missing. Only prereleases may be unsigned.
func (r *Release) lacksKey() bool {
	return len(r.Key) == 0 && !r.Unsigned && semver.Prerelease("v"+r.Version) == ""
}

// Write writes the release. It removes all other files from the folder.
func (r *Release) Write(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	notes, err := Notes(r.Changelog, r.Version)
	if err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := r.empty(); err != nil {
		return err
	}
	if err := r.write(notesFile, notes); err != nil {
		return err
	}
	made, err := r.writeImages(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context, images) error
	}{
		{"writing manifests", r.writeManifests},
		{"writing the bundle and the catalog", r.writeBundle},
		{"writing plug-ins of kubectl", r.writePlugins},
		{"writing the list of components", r.writeComponents},
		{"writing the provenance", r.writeProvenance},
		{"writing checksums", r.writeSums},
	} {
		r.say("%s", step.name)
		if err := step.do(ctx, made); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// empty creates the folder, and removes an earlier release from it. A folder with other files is an
// error, and is not changed.
func (r *Release) empty() error {
	entries, err := os.ReadDir(r.Out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	_, err = os.Stat(filepath.Join(r.Out, notesFile))
	if len(entries) > 0 && err != nil {
		return fmt.Errorf("%s has files and is not a release: use another folder", r.Out)
	}
	if err := os.RemoveAll(r.Out); err != nil {
		return err
	}
	return os.MkdirAll(r.Out, 0o755)
}

// notesFile is written first, so that the folder of an interrupted run is also recognized as a release.
const notesFile = "release-notes.md"

func (r *Release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.Out, name), content, 0o644)
}

func (r *Release) say(format string, args ...any) {
	fmt.Fprintf(r.Log, format+"\n", args...)
}
