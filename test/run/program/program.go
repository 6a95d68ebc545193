// Package program builds container images of Go programs of this module, without a container engine.
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

// Program is a main package and its image.
type Program struct {
	// Package is an argument of `go build`. In the image the program is at /, with the name that `go
	// build` gives it.
	Package string
	// Tests is a package whose test binary is the program. Then Package only specifies its name.
	Tests string
	// With are packages of additional programs in the image.
	With []string
	// Files are additional files, and Env is the environment.
	Files []image.File
	Env   []string
	// Ref is the name of the image. The default tag is a hash of the content, so a changed program is
	// another image.
	Ref string
	// User that it runs as.
	User string
	// Tar is the path of the image's tar file.
	Tar string
}

// Operator returns the operator's image, equivalent to the Dockerfile, with a hash of the content as
// its tag.
func Operator(tar string) Program {
	return Program{Package: ".", With: []string{"./gate", "./agent"}, Ref: "localhost/stateful-operator", User: "65532:65532", Tar: tar}
}

// Ledger returns the image of the sample ledger.
func Ledger(tar string) Program {
	return Program{Package: "./test/faults/ledger", Ref: "localhost/ledger", User: "65532:65532", Tar: tar}
}

// WriteFrom builds programs together into a folder, as the Dockerfile does, writes the image of each,
// and returns the images' names and tags. The same sources give the same bytes: paths, times and the
// state of the checkout are excluded.
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
		return "", fmt.Errorf("write the image of %s: %w", p.Package, err)
	}
	return ref, nil
}

// nameOf returns the last element of the package's path, or the module's for the root package.
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
