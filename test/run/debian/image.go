// Package debian builds container images from Debian's packages. It installs nothing on this machine,
// and needs no container engine.
package debian

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Image defines an image.
type Image struct {
	// Name of the image. The tag is a hash of the content, so a changed image has another reference.
	Name string
	// Packages whose files can be used, with their dependencies.
	Packages []string
	// Suite is another suite of the distribution from which all packages come. Defaults to those of this
	// machine.
	Suite string
	// Choose returns the configuration and the files of the image.
	Choose func(Root) (v1.Config, []image.File, error)
}

// Write writes the image, and returns its name and tag.
func (i Image) Write(ctx context.Context, tar string) (ref string, err error) {
	folder, err := os.MkdirTemp("", "debian-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	root, packages, err := i.Extract(ctx, folder)
	if err != nil {
		return "", err
	}
	config, files, err := i.Choose(root)
	if err != nil {
		return "", err
	}
	tag, err := digest(packages, config, files)
	if err != nil {
		return "", err
	}
	ref = i.Name + ":" + tag
	return ref, image.Write(tar, ref, config, files...)
}

// Extract extracts the packages into a new folder below another one, and returns the files of the packages.
func (i Image) Extract(ctx context.Context, folder string) (root Root, packages []string, err error) {
	packages, err = download(ctx, filepath.Join(folder, "packages"), i.Suite, i.Packages)
	if err != nil {
		return "", nil, err
	}
	root = Root(filepath.Join(folder, "root"))
	for _, file := range packages {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, string(root)).CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("extract %s: %w: %s", file, err, out)
		}
	}
	return root, packages, nil
}

// digest returns a hash of the packages' versions and the added files.
func digest(packages []string, config v1.Config, files []image.File) (string, error) {
	sum := sha256.New()
	for _, file := range packages {
		fmt.Fprintln(sum, filepath.Base(file))
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(sum, "%s\n", text)
	for _, file := range files {
		fmt.Fprintln(sum, file.Path, file.Mode, file.Link, string(file.Body))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], nil
}

// download downloads the packages with all dependencies, including installed ones, because the image
// has no other files.
func download(ctx context.Context, folder, suite string, packages []string) ([]string, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("the image is built from Debian packages, and apt-get is not available: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "partial"), 0o755); err != nil {
		return nil, err
	}
	nothing := filepath.Join(folder, "status")
	if err := os.WriteFile(nothing, nil, 0o644); err != nil {
		return nil, err
	}
	options := []string{"-qq", "-y", "-o", "APT::Sandbox::User=root", "-o", "Dir::State::status=" + nothing,
		"-o", "Dir::Cache::archives=" + folder, "--no-install-recommends"}
	if suite != "" {
		other, err := from(ctx, suite, folder)
		if err != nil {
			return nil, err
		}
		options = append(options, other...)
	}
	get := func(args ...string) error {
		if out, err := exec.CommandContext(ctx, "apt-get", append(slices.Clone(options), args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get: %w: %s", err, out)
		}
		return nil
	}
	fetch := append([]string{"install", "--download-only"}, packages...)
	if err := get(fetch...); err != nil {
		// The package lists of a new machine, or of another suite, are missing or outdated.
		if err := get("update"); err != nil {
			return nil, err
		}
		if err := get(fetch...); err != nil {
			return nil, err
		}
	}
	return filepath.Glob(filepath.Join(folder, "*.deb"))
}

// from returns options of apt-get with which packages come from another suite of the archive that this
// machine uses.
func from(ctx context.Context, suite, folder string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages").Output()
	if err != nil {
		return nil, fmt.Errorf("apt-get indextargets: %w", err)
	}
	archive := ""
	for site := range strings.Lines(string(out)) {
		if site = strings.TrimRight(site, "/\n"); strings.HasSuffix(site, "/debian") {
			archive = site
		}
	}
	if archive == "" {
		return nil, fmt.Errorf("no archive of Debian is configured on this machine: %s", out)
	}
	lists, sources := filepath.Join(folder, "lists"), filepath.Join(folder, "suite.sources")
	text := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n", archive, suite)
	if err := errors.Join(os.MkdirAll(filepath.Join(lists, "partial"), 0o755), os.WriteFile(sources, []byte(text), 0o644)); err != nil {
		return nil, err
	}
	return []string{"-o", "Dir::State::lists=" + lists, "-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="}, nil
}
