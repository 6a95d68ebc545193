// Package program turns Go programs of this module into a container image,
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
	// Package as `go build` takes it. In the image the program is at /, under
	// the name that `go build` gives it.
	Package string
	// With are the packages of programs that are in the image too.
	With []string
	// Files are what else is in it, and Env its environment.
	Files []image.File
	Env   []string
	// Ref is the name of the image. Without a tag it gets one that says what
	// is in it, so that a changed program is another image.
	Ref string
	// User that it runs as.
	User string
	// Tar is where the image is written.
	Tar string
}

// Operator is the operator's image as the Dockerfile makes it, with a tag that
// says what is in it.
func Operator(tar string) Program {
	return Program{Package: ".", With: []string{"./gate"}, Ref: "localhost/stateful-operator", User: "65532:65532", Tar: tar}
}

// Ledger is the image of the sample ledger.
func Ledger(tar string) Program {
	return Program{Package: "./test/faults/ledger", Ref: "localhost/ledger", User: "65532:65532", Tar: tar}
}

// Write builds the programs as the Dockerfile does, writes their image, and
// gives the image's name and tag. The same sources give the same bytes: neither
// paths, nor times, nor the state of the checkout go in.
func (p Program) Write(ctx context.Context) (ref string, err error) {
	folder, err := os.MkdirTemp("", "program-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)

	var files []image.File
	for _, source := range append([]string{p.Package}, p.With...) {
		name := nameOf(source)
		file := image.File{Path: "/" + name, Source: filepath.Join(folder, name)}
		if err := build(ctx, source, file.Source); err != nil {
			return "", err
		}
		files = append(files, file)
	}
	ref = p.Ref
	if !strings.Contains(path.Base(ref), ":") {
		tag, err := digest(files)
		if err != nil {
			return "", err
		}
		ref += ":" + tag
	}
	config := v1.Config{User: p.User, Env: p.Env, Entrypoint: []string{files[0].Path}, WorkingDir: "/"}
	if err := image.Write(p.Tar, ref, config, append(files, p.Files...)...); err != nil {
		return "", fmt.Errorf("writing the image of %s: %w", p.Package, err)
	}
	return ref, nil
}

// nameOf is the last word of the package's path; that of the package at the root
// is the module's.
func nameOf(source string) string {
	if source == "." {
		return "stateful-operator"
	}
	return path.Base(source)
}

func build(ctx context.Context, source, binary string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building %s: %w", source, err)
	}
	return nil
}

func digest(files []image.File) (string, error) {
	sum := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file.Source)
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], nil
}
