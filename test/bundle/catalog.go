package bundle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// majorChannel matches the channel names that opm generates from a semver template: stable-v0. This
// project has one major version and names its channels stable and candidate.
var majorChannel = regexp.MustCompile(`\b(candidate|fast|stable)-(v\d+)\b`)

// entry matches the line of a bundle in a template. Its image is a placeholder: the Name of a Version.
var entry = regexp.MustCompile(`(?m)^( *- image: )(\w+)\n`)

// trusting is the signature policy that opm requires for unsigned images.
const trusting = `{"default": [{"type": "insecureAcceptAnything"}]}`

// Version is a version of the operator in a catalog.
type Version struct {
	// Name is its placeholder in the template.
	Name string
	// Image is the reference of the bundle's image in the catalog, and Folder is the content of the
	// bundle.
	Image, Folder string
}

// Render returns the catalog that opm renders from a semver template with these versions. Other
// versions of the template are left out. opm reads bundles only from registries, so Render serves a
// local one.
func Render(ctx context.Context, opm, template string, versions ...Version) ([]byte, error) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	here := strings.TrimPrefix(server.URL, "http://") + "/bundle:"
	text, err := os.ReadFile(template)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "catalog-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for _, v := range versions {
		if !slices.ContainsFunc(entry.FindAllSubmatch(text, -1), func(m [][]byte) bool { return string(m[2]) == v.Name }) {
			return nil, fmt.Errorf("%s has no version %s", template, v.Name)
		}
		tar := filepath.Join(work, "bundle.tar")
		if err := WriteImage(v.Folder, here+v.Name, tar); err != nil {
			return nil, err
		}
		if err := Push(ctx, tar, here+v.Name); err != nil {
			return nil, fmt.Errorf("pass %s to opm: %w", v.Folder, err)
		}
	}
	text = entry.ReplaceAllFunc(text, func(line []byte) []byte {
		m := entry.FindSubmatch(line)
		if !slices.ContainsFunc(versions, func(v Version) bool { return v.Name == string(m[2]) }) {
			return nil
		}
		return fmt.Appendf(nil, "%s%s%s\n", m[1], here, m[2])
	})
	rendered, err := run(ctx, opm, work, text)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", template, err)
	}
	for _, v := range versions {
		rendered = bytes.ReplaceAll(rendered, []byte(here+v.Name), []byte(v.Image))
	}
	rendered, err = inOneChannel(rendered)
	return reachable.ReplaceAll(rendered, []byte("$0\n  skipRange: <$1")), err
}

// reachable matches the entry of a version in a channel. OLM upgrades to a version from the version
// that it replaces and from all versions in its skipRange. OLM looks for the skipRange in the channel,
// where opm writes none for a semver template. Without it, versions that are no longer in the catalog
// could never be upgraded.
var reachable = regexp.MustCompile(`(?m)^- name: stateful-operator\.v(\S+)(?:\n  replaces: \S+)?$`)

// run lets opm render a template in a folder that is also its home directory.
func run(ctx context.Context, opm, work string, template []byte) ([]byte, error) {
	for file, content := range map[string][]byte{"template.yaml": template, ".config/containers/policy.json": []byte(trusting)} {
		file = filepath.Join(work, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return nil, err
		}
	}
	var out, complaints bytes.Buffer
	command := exec.CommandContext(ctx, opm, "alpha", "render-template", "semver", "template.yaml",
		"--output=yaml", "--use-http", "--migrate-level=bundle-object-to-csv-metadata")
	command.Dir, command.Stdout, command.Stderr = work, &out, &complaints
	command.Env = append(os.Environ(), "HOME="+work)
	if err := command.Run(); err != nil {
		why, _, _ := strings.Cut(complaints.String(), "\n") // opm prints its usage in the next lines
		return nil, fmt.Errorf("%w: %s", err, why)
	}
	return out.Bytes(), nil
}

// inOneChannel removes the major version from the channel names.
func inOneChannel(rendered []byte) ([]byte, error) {
	var major string
	for _, m := range majorChannel.FindAllSubmatch(rendered, -1) {
		if major = cmp.Or(major, string(m[2])); major != string(m[2]) {
			return nil, fmt.Errorf("versions %s and %s cannot be in one channel", major, m[2])
		}
	}
	return majorChannel.ReplaceAll(rendered, []byte("$1")), nil
}

// Push uploads the image in a tar file.
func Push(ctx context.Context, tar, ref string, options ...remote.Option) error {
	img, err := tarball.ImageFromPath(tar, nil)
	if err != nil {
		return err
	}
	at, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	return remote.Write(at, img, append(options, remote.WithContext(ctx))...)
}
