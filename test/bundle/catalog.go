package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// majorChannel is how opm names the channels of a semver template: stable-v0. This
// project has one major version, and calls them stable and candidate.
var majorChannel = regexp.MustCompile(`\b(candidate|fast|stable)-v0\b`)

// trusting is what opm wants to be told of images that nobody has signed.
const trusting = `{"default": [{"type": "insecureAcceptAnything"}]}`

// Render gives the catalog that a semver template of opm comes to. opm reads bundles
// from registries only, so it gets one, on this machine, with the bundles: folders,
// by the references that the template has for their images.
func Render(ctx context.Context, opm, template string, bundles map[string]string) ([]byte, error) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	here := strings.TrimPrefix(server.URL, "http://") + "/"
	text, err := os.ReadFile(template)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "catalog-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for ref, folder := range bundles {
		if !bytes.Contains(text, []byte(ref)) {
			return nil, fmt.Errorf("%s has no bundle %s", template, ref)
		}
		text = bytes.ReplaceAll(text, []byte(ref), []byte(here+ref))
		tar := filepath.Join(work, "bundle.tar")
		if err := WriteImage(folder, here+ref, tar); err != nil {
			return nil, err
		}
		if err := push(ctx, tar, here+ref); err != nil {
			return nil, fmt.Errorf("giving %s to opm: %w", folder, err)
		}
	}
	for file, content := range map[string][]byte{"template.yaml": text, ".config/containers/policy.json": []byte(trusting)} {
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
		return nil, fmt.Errorf("rendering %s: %w: %s", template, err, why)
	}
	rendered := bytes.ReplaceAll(out.Bytes(), []byte(here), nil)
	return majorChannel.ReplaceAll(rendered, []byte("$1")), nil
}

// push uploads the image in a tar.
func push(ctx context.Context, tar, ref string) error {
	img, err := tarball.ImageFromPath(tar, nil)
	if err != nil {
		return err
	}
	at, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(at, img, remote.WithContext(ctx))
}
