package debian

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Root is a folder with the content of packages.
type Root string

// Path returns the path in the folder of a file of the image.
func (r Root) Path(inImage string) string { return filepath.Join(string(r), inImage) }

// InImage returns the path in the image of a file of the folder.
func (r Root) InImage(path string) string { return strings.TrimPrefix(path, string(r)) }

// Shell returns a shell with the applets.
func (r Root) Shell(applets ...string) []image.File {
	source := r.Path("bin/busybox")
	if _, err := os.Stat(source); err != nil {
		source = r.Path("usr/bin/busybox") // in newer distributions
	}
	files := []image.File{{Path: "/bin/busybox", Source: source}}
	for _, applet := range append([]string{"sh"}, applets...) {
		files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	return files
}

// User returns files that define a named user, in addition to root.
func User(name string, id int) []image.File {
	return []image.File{
		{Path: "/etc/passwd", Mode: 0o644, Body: fmt.Appendf(nil, "root:x:0:0:root:/root:/bin/sh\n%[1]s:x:%[2]d:%[2]d:%[1]s:/tmp:/bin/sh\n", name, id)},
		{Path: "/etc/group", Mode: 0o644, Body: fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\n", name, id)},
	}
}

// Temporary returns a world-writable /tmp.
func Temporary() image.File {
	return image.File{Path: "/tmp", Dir: true, Mode: 0o777 | os.ModeSticky}
}

// Programs returns binaries of the folder, with their libraries and the loader.
func (r Root) Programs(paths ...string) []image.File {
	paths = slices.Clone(paths)
	folders := []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"}
	var files []image.File
	for _, loader := range []string{"lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"} {
		newer := "usr/" + loader // in newer distributions
		if _, err := os.Stat(r.Path(loader)); err == nil {
			paths = append(paths, r.Path(loader))
		} else if _, err := os.Stat(r.Path(newer)); err == nil {
			paths, files = append(paths, r.Path(newer)), append(files, image.File{Path: "/" + loader, Link: "/" + newer})
		}
	}
	for i := 0; i < len(paths); i++ { // paths grows
		for _, name := range imports(paths[i]) {
			for _, folder := range folders {
				path := r.Path(filepath.Join(folder, name))
				if _, err := os.Stat(path); err == nil && !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
	}
	for _, path := range paths {
		files = append(files, image.File{Path: r.InImage(path), Source: path})
	}
	return files
}

// imports returns the libraries of a binary. Missing libraries cause an error when the image is run.
func imports(path string) []string {
	binary, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer binary.Close()
	names, _ := binary.ImportedLibraries()
	return names
}

// Tree returns the files below a folder of the image, with links resolved.
func (r Root) Tree(inImage string) ([]image.File, error) {
	var files []image.File
	err := filepath.WalkDir(r.Path(inImage), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// Links point to files, or to missing files outside of the packages.
		if info, _ := os.Stat(path); info != nil && info.Mode().IsRegular() {
			files = append(files, image.File{Path: r.InImage(path), Mode: 0o644, Source: path})
		}
		return nil
	})
	return files, err
}
