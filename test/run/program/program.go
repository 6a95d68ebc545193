// Package program turns a Go program of this module into a container image,
// without a container engine.
package program

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Program is a main package and the image it becomes.
type Program struct {
	// Package as `go build` takes it.
	Package string
	// Ref is the name of the image. Without a tag it gets one that says what
	// is in it, so that a changed program is another image.
	Ref string
	// User that it runs as.
	User string
	// Tar is where the image is written.
	Tar string
}

// Write builds the program as the Dockerfile does, writes its image, and gives
// the image's name and tag. The same sources give the same bytes: neither
// paths, nor times, nor the state of the checkout go in.
func (p Program) Write(ctx context.Context) (ref string, err error) {
	folder, err := os.MkdirTemp("", "program-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)

	binary := filepath.Join(folder, "program")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, p.Package)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w", p.Package, err)
	}
	ref = p.Ref
	name, _, tagged := strings.Cut(path.Base(p.Ref), ":")
	if !tagged {
		tag, err := digest(binary)
		if err != nil {
			return "", err
		}
		ref += ":" + tag
	}
	entry := "/" + name
	config := v1.Config{User: p.User, Entrypoint: []string{entry}, WorkingDir: "/"}
	if err := image.Write(p.Tar, ref, config, image.File{Path: entry, Source: binary}); err != nil {
		return "", fmt.Errorf("writing the image of %s: %w", p.Package, err)
	}
	return ref, nil
}

func digest(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))[:12], nil
}
