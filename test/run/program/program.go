// Package program turns Go programs of this module into a container image,
// without a container engine.
package program

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Program is a main package and the image it becomes.
type Program struct {
	// Package as `go build` takes it. In the image the program is at /, under
	// the name that `go build` gives it.
	Package string
	// Tests is a package whose tests are the program instead; Package only names it then.
	Tests string
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

// WriteFrom builds programs in one go into a folder, as the Dockerfile does, writes the
// image of each, and gives the images' names and tags. The same sources give the same
// bytes: neither paths, nor times, nor the state of the checkout go in.
func WriteFrom(ctx context.Context, log io.Writer, folder string, programs ...Program) (refs []string, err error) {
	var sources []string
	for _, p := range programs {
		if p.Tests == "" {
			sources = append(sources, p.Package)
		} else if err := cluster.Tests(ctx, log, p.Tests, filepath.Join(folder, nameOf(p.Package))); err != nil {
			return nil, err
		}
		sources = append(sources, p.With...)
	}
	slices.Sort(sources)
	if err := cluster.Programs(ctx, log, folder, slices.Compact(sources)...); err != nil {
		return nil, err
	}
	for _, p := range programs {
		ref, err := p.write(folder)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// Write builds the program, and writes its image.
func (p Program) Write(ctx context.Context) (ref string, err error) {
	folder, err := os.MkdirTemp("", "program-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	refs, err := WriteFrom(ctx, os.Stderr, folder, p)
	if err != nil {
		return "", err
	}
	return refs[0], nil
}

// write writes the image of programs that are in a folder.
func (p Program) write(folder string) (ref string, err error) {
	var files []image.File
	for _, source := range append([]string{p.Package}, p.With...) {
		name := nameOf(source)
		files = append(files, image.File{Path: "/" + name, Source: filepath.Join(folder, name)})
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
