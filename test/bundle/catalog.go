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

// majorChannel is how opm names the channels of a semver template: stable-v0. This
// project has one major version, and calls them stable and candidate.
var majorChannel = regexp.MustCompile(`\b(candidate|fast|stable)-(v\d+)\b`)

// entry is the line of a bundle in a template. The name of its image is a word that
// a Version answers to.
var entry = regexp.MustCompile(`(?m)^( *- image: )(\w+)\n`)

// trusting is what opm wants to be told of images that nobody has signed.
const trusting = `{"default": [{"type": "insecureAcceptAnything"}]}`

// Version is a version of the operator in a catalog.
type Version struct {
	// Name is the word for it in the template.
	Name string
	// Image is the reference of its bundle that the catalog gets, and Folder has
	// what is in that.
	Image, Folder string
}

// Render gives the catalog that a semver template of opm comes to, with these
// versions; those of the template that are not among them are left out. opm reads
// bundles from registries only, so it gets one, on this machine.
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
			return nil, fmt.Errorf("giving %s to opm: %w", v.Folder, err)
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

// reachable is the entry of a version in a channel. OLM upgrades to a version from
// the one that it replaces and from all in its skipRange, and looks for that in the
// channel, where opm writes none from a semver template: without it, whoever runs a
// version that the catalog does not hold any more would never be upgraded.
var reachable = regexp.MustCompile(`(?m)^- name: stateful-operator\.v(\S+)(?:\n  replaces: \S+)?$`)

// run has opm render a template, in a folder that is also its home.
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
		why, _, _ := strings.Cut(complaints.String(), "\n") // and then how opm is used
		return nil, fmt.Errorf("%w: %s", err, why)
	}
	return out.Bytes(), nil
}

// inOneChannel takes the major version out of the names of channels.
func inOneChannel(rendered []byte) ([]byte, error) {
	var major string
	for _, m := range majorChannel.FindAllSubmatch(rendered, -1) {
		if major = cmp.Or(major, string(m[2])); major != string(m[2]) {
			return nil, fmt.Errorf("versions %s and %s cannot be in one channel", major, m[2])
		}
	}
	return majorChannel.ReplaceAll(rendered, []byte("$1")), nil
}

// Push uploads the image in a tar.
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
