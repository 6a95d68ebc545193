// Package debian builds container images from Debian's packages. It installs nothing on this machine,
// and needs no container engine.
package debian

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Image defines an image.
type Image struct {
	// Name of the image. The tag is a hash of the content, so a changed image has another reference.
	Name string
	// Packages whose files can be used, with their dependencies.
	Packages []string
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
	packages, err := download(ctx, filepath.Join(folder, "packages"), i.Packages)
	if err != nil {
		return "", err
	}
	root := Root(filepath.Join(folder, "root"))
	for _, file := range packages {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, string(root)).CombinedOutput(); err != nil {
			return "", fmt.Errorf("extract %s: %w: %s", file, err, out)
		}
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
func download(ctx context.Context, folder string, packages []string) ([]string, error) {
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
	get := func(args ...string) error {
		args = append([]string{"-qq", "-y", "-o", "APT::Sandbox::User=root", "-o", "Dir::State::status=" + nothing,
			"-o", "Dir::Cache::archives=" + folder, "--no-install-recommends"}, args...)
		if out, err := exec.CommandContext(ctx, "apt-get", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get: %w: %s", err, out)
		}
		return nil
	}
	fetch := append([]string{"install", "--download-only"}, packages...)
	if err := get(fetch...); err != nil {
		// The package lists of a new machine are missing or outdated.
		if err := get("update"); err != nil {
			return nil, err
		}
		if err := get(fetch...); err != nil {
			return nil, err
		}
	}
	return filepath.Glob(filepath.Join(folder, "*.deb"))
}
