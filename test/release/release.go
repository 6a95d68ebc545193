// Package release writes what users of a version download: manifests, images, the bundle and
// the catalog of OLM, plug-ins of kubectl, and what says where all of it comes from.
//
// The same commit gives the same bytes, on any machine that has the same Go: nothing written
// has a time but that of the commit, a path of this machine, or an order by chance.
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

// Architectures are those that Kubernetes has nodes of and we make images for.
var Architectures = []string{"amd64", "arm64", "ppc64le", "s390x"}

// Release is one version, and how it is made.
type Release struct {
	// Version without a leading v, such as 1.2.3. With a suffix, as in 1.2.3-rc.1, it is a
	// trial of what CHANGELOG.md has under Unreleased.
	Version string
	// Registry is where its images will be found, such as ghcr.io/you.
	Registry string
	// Source is where its commit can be fetched, and Commit which one it is.
	Source, Commit string
	// Time is that of the commit.
	Time time.Time
	// Architectures that there are images for.
	Architectures []string
	// Images that are made of programs.
	Images []Image
	// Manifests are folders of kustomize, by the name of the file that they become.
	Manifests map[string]string
	// Plugin is the package of the plug-in of kubectl, and Desks are what it is built for.
	// An empty package is none.
	Plugin string
	Desks  []cluster.Target
	// Bundle writes OLM's bundle of an image of the operator into a folder, and Catalog
	// the catalog of a bundle and its image into another. Without Bundle there is neither.
	Bundle  func(ctx context.Context, operator, folder string) error
	Catalog func(ctx context.Context, bundle, image, folder string) error
	// Changelog is the file that the notes are cut from, and License is in each archive.
	Changelog, License string
	// Key is a private key in PEM that signs the sums; without one nothing is signed.
	Key []byte
	// Unsigned allows a version without a suffix to have no key.
	Unsigned bool
	// Out is the folder that all is written to, and Log gets what is said.
	Out string
	Log io.Writer

	// work has what is made on the way.
	work string
	// programs are all that were built.
	programs []string
}

// plain are the characters of what goes into file names, names of images, and flags of the
// linker.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./:_+-]*$`)

// check refuses what cannot be released.
func (r *Release) check() error {
	switch {
	case !semver.IsValid("v"+r.Version) || strings.Count(r.Version, ".") < 2 || strings.Contains(r.Version, "+"):
		return fmt.Errorf("version %q is not of the form 1.2.3 or 1.2.3-rc.1", r.Version)
	case !plain.MatchString(r.Registry):
		return fmt.Errorf("registry %q is not of the form ghcr.io/you", r.Registry)
	case !plain.MatchString(r.Commit):
		return fmt.Errorf("commit %q is not the name of one", r.Commit)
	case r.Out == "":
		return errors.New("a folder to write to is needed")
	case r.lacksKey():
		return fmt.Errorf("version %s would not be signed: give a key, or UNSIGNED=yes", r.Version)
	case len(r.Architectures) == 0:
		return fmt.Errorf("architectures are needed, such as %s", strings.Join(Architectures, ","))
	}
	return nil
}

// lacksKey reports whether a key is missing: a version that is no trial is signed.
func (r *Release) lacksKey() bool {
	return len(r.Key) == 0 && !r.Unsigned && semver.Prerelease("v"+r.Version) == ""
}

// Write makes the release. The folder has nothing else afterwards.
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
		{"writing where it comes from", r.writeProvenance},
		{"writing sums", r.writeSums},
	} {
		r.say("%s", step.name)
		if err := step.do(ctx, made); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// empty makes the folder, and takes an earlier release out of it. What is no release stays,
// and nothing is written.
func (r *Release) empty() error {
	entries, err := os.ReadDir(r.Out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	_, err = os.Stat(filepath.Join(r.Out, notesFile))
	if len(entries) > 0 && err != nil {
		return fmt.Errorf("%s has files and is no release: give another folder", r.Out)
	}
	if err := os.RemoveAll(r.Out); err != nil {
		return err
	}
	return os.MkdirAll(r.Out, 0o755)
}

// notesFile is written first, so that what was cut off is known as a release too.
const notesFile = "release-notes.md"

func (r *Release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.Out, name), content, 0o644)
}

func (r *Release) say(format string, args ...any) {
	fmt.Fprintf(r.Log, format+"\n", args...)
}
