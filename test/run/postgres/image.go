package main

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed" // entrypoint.sh
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

//go:embed entrypoint.sh
var entrypoint []byte

// programs of PostgreSQL that are in the image.
var programs = []string{"postgres", "initdb", "psql", "pg_isready"}

// extensions that every new database has.
var extensions = []string{"plpgsql.so", "dict_snowball.so"}

// writeImage writes an image of the distribution's PostgreSQL, and gives its
// name and tag. Nothing is installed on this machine.
func writeImage(ctx context.Context, tar string) (ref string, err error) {
	folder, err := os.MkdirTemp("", "postgres-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	packages, err := download(ctx, filepath.Join(folder, "packages"))
	if err != nil {
		return "", err
	}
	root := filepath.Join(folder, "root")
	sum := sha256.New()
	sum.Write(entrypoint)
	for _, file := range packages {
		fmt.Fprintln(sum, filepath.Base(file))
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, root).CombinedOutput(); err != nil {
			return "", fmt.Errorf("extracting %s: %w: %s", file, err, out)
		}
	}
	home, files, err := choose(root)
	if err != nil {
		return "", err
	}
	ref = fmt.Sprintf("localhost/postgres:%x", sum.Sum(nil)[:6])
	config := v1.Config{
		Env:        []string{"PATH=" + home + "/bin:/usr/local/bin:/bin", "LANG=C"},
		Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"postgres"}, StopSignal: "SIGINT", User: "999:999",
	}
	if err := image.Write(tar, ref, config, files...); err != nil {
		return "", err
	}
	return ref, nil
}

// download fetches the packages with all that they need, as if nothing were
// installed: the image has nothing else.
func download(ctx context.Context, folder string) ([]string, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("the image is made of Debian's packages, and there is no apt-get: %w", err)
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
	fetch := []string{"install", "--download-only", "postgresql", "tzdata", "busybox-static"}
	if err := get(fetch...); err != nil {
		// A fresh machine has no package lists, or stale ones.
		if err := get("update"); err != nil {
			return nil, err
		}
		if err := get(fetch...); err != nil {
			return nil, err
		}
	}
	return filepath.Glob(filepath.Join(folder, "*.deb"))
}

// choose takes of the packages what the sample's programs need. Home is where
// the image has PostgreSQL: as the package has it, since the server finds its
// other files by its own place.
func choose(root string) (home string, files []image.File, err error) {
	found, err := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin/postgres"))
	if err != nil || len(found) != 1 {
		return "", nil, fmt.Errorf("want one server in the packages, found %v (%w)", found, err)
	}
	folder := filepath.Dir(filepath.Dir(found[0]))
	var binaries []string
	for _, name := range programs {
		binaries = append(binaries, filepath.Join(folder, "bin", name))
	}
	for _, name := range extensions {
		binaries = append(binaries, filepath.Join(folder, "lib", name))
	}
	encodings, err := filepath.Glob(filepath.Join(folder, "lib", "*_and_*.so"))
	if err != nil {
		return "", nil, err
	}
	binaries = append(binaries, encodings...)
	files = basics(root)
	for _, path := range withLibraries(root, binaries) {
		files = append(files, image.File{Path: strings.TrimPrefix(path, root), Source: path})
	}
	for _, tree := range []string{filepath.Join(root, "usr/share/postgresql", filepath.Base(folder)), filepath.Join(root, "usr/share/zoneinfo")} {
		more, err := under(root, tree)
		if err != nil {
			return "", nil, err
		}
		files = append(files, more...)
	}
	return strings.TrimPrefix(folder, root), files, nil
}

// basics are a shell, a user, and room for what is temporary.
func basics(root string) []image.File {
	shell := filepath.Join(root, "bin/busybox")
	files := []image.File{
		{Path: "/bin/busybox", Source: shell},
		{Path: "/tmp", Dir: true, Mode: 0o777 | os.ModeSticky},
		{Path: "/etc/passwd", Mode: 0o644, Body: []byte("root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999:postgres:/tmp:/bin/sh\n")},
		{Path: "/etc/group", Mode: 0o644, Body: []byte("root:x:0:\npostgres:x:999:\n")},
		{Path: "/usr/local/bin/docker-entrypoint.sh", Body: entrypoint},
	}
	for _, applet := range []string{"sh", "mkdir", "chmod", "rm", "ls", "cat", "kill"} {
		files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	return files
}

// withLibraries adds what the programs load when they start, and the loader.
func withLibraries(root string, paths []string) []string {
	folders := []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"}
	for _, loader := range []string{"lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"} {
		if _, err := os.Stat(filepath.Join(root, loader)); err == nil {
			paths = append(paths, filepath.Join(root, loader))
		}
	}
	for i := 0; i < len(paths); i++ { // paths grows
		binary, err := elf.Open(paths[i])
		if err != nil {
			continue // the image will say what it lacks
		}
		libraries, _ := binary.ImportedLibraries()
		binary.Close()
		for _, name := range libraries {
			for _, folder := range folders {
				path := filepath.Join(root, folder, name)
				if _, err := os.Stat(path); err == nil && !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// under gives the files of a tree, with what its links point to.
func under(root, tree string) ([]image.File, error) {
	var files []image.File
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// Links lead to files or, out of the packages, to nothing.
		if info, _ := os.Stat(path); info != nil && info.Mode().IsRegular() {
			files = append(files, image.File{Path: strings.TrimPrefix(path, root), Mode: 0o644, Source: path})
		}
		return nil
	})
	return files, err
}
