// Package program turns a Go program of this module into a container image,
// without a container engine.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Program is a main package and the image it becomes.
type Program struct {
	// Package as `go build` takes it.
	Package string
	// Ref is the name and tag of the image.
	Ref string
	// Tar is where the image is written.
	Tar string
}

// Write builds the program as the Dockerfile does and writes its image. The
// same sources give the same bytes: neither paths, nor times, nor the state of
// the checkout go in.
func (p Program) Write(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "program-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)

	binary := filepath.Join(folder, "program")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, p.Package)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building %s: %w", p.Package, err)
	}
	entry := "/" + p.name()
	config := v1.Config{User: "65532:65532", Entrypoint: []string{entry}, WorkingDir: "/"}
	if err := image.Write(p.Tar, p.Ref, config, image.File{Path: entry, Source: binary}); err != nil {
		return fmt.Errorf("writing the image of %s: %w", p.Package, err)
	}
	return nil
}

// name is the last part of the image's name, without its tag.
func (p Program) name() string {
	name := p.Ref[strings.LastIndex(p.Ref, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}
