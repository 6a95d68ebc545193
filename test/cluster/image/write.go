// Package image writes container images as tar files without a container engine. The same input gives
// the same bytes, so digests are stable.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is an entry of the image's only layer. Exactly one of Source, Body, Link and Dir is set.
type File struct {
	Path   string      // in the image, absolute
	Mode   os.FileMode // permission bits; default: 0755
	UID    int         // owner and group
	Source string      // a file on this machine
	Body   []byte      // or the content itself
	Link   string      // or the target of a symbolic link
	Dir    bool        // or a folder
}

// epoch is the timestamp of everything in an image. A build time would change the digest of an
// unchanged image.
var epoch = time.Unix(0, 0).UTC()

// Write writes an image for linux and this machine's architecture under ref to tarPath. The file is
// replaced atomically. Its layer is not compressed, because it is loaded by nodes on this machine. The
// project's pushes, crane, skopeo and podman compress it.
func Write(tarPath, ref string, cfg v1.Config, files ...File) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("image reference %q: %w", ref, err)
	}
	img, err := build(runtime.GOARCH, cfg, files, plain)
	if err != nil {
		return fmt.Errorf("build image %s: %w", ref, err)
	}
	if err := os.MkdirAll(filepath.Dir(tarPath), 0o755); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.part-%d", tarPath, os.Getpid())
	defer os.Remove(part)
	if err := tarball.WriteToFile(part, tag, img); err != nil {
		return fmt.Errorf("write image %s: %w", ref, err)
	}
	return os.Rename(part, tarPath)
}

// Build returns an image for linux and an architecture, for a push.
func Build(architecture string, cfg v1.Config, files ...File) (v1.Image, error) {
	return build(architecture, cfg, files, compressed)
}

func plain(content []byte) (v1.Layer, error) {
	return static.NewLayer(content, types.OCIUncompressedLayer), nil
}

func compressed(content []byte) (v1.Layer, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

func build(architecture string, cfg v1.Config, files []File, as func([]byte) (v1.Layer, error)) (v1.Image, error) {
	content, err := layer(files)
	if err != nil {
		return nil, err
	}
	fsLayer, err := as(content)
	if err != nil {
		return nil, err
	}
	none := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(none, mutate.Addendum{
		Layer:   fsLayer,
		History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "stateful-operator test/cluster/image"},
	})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture
	file.Created = v1.Time{Time: epoch}
	file.Config = cfg
	return mutate.ConfigFile(img, file)
}

// layer returns the tar of the files with all parent folders, sorted by path.
func layer(files []File) ([]byte, error) {
	entries := map[string]File{}
	for _, f := range files {
		f.Path = strings.TrimPrefix(filepath.Clean("/"+f.Path), "/")
		for dir := filepath.Dir(f.Path); dir != "."; dir = filepath.Dir(dir) {
			if _, known := entries[dir]; !known {
				entries[dir] = File{Path: dir, Dir: true}
			}
		}
		entries[f.Path] = f
	}
	paths := make([]string, 0, len(entries))
	for path := range entries {
		paths = append(paths, path)
	}
	sort.Strings(paths)

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, path := range paths {
		if err := add(w, entries[path]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func add(w *tar.Writer, f File) error {
	mode := f.Mode
	if mode == 0 {
		mode = 0o755
	}
	// The octal 01777 of a /tmp is os.ModeSticky|0777 in Go.
	bits := int64(mode.Perm())
	if mode&os.ModeSticky != 0 {
		bits |= 0o1000
	}
	header := &tar.Header{Name: f.Path, Mode: bits, Uid: f.UID, Gid: f.UID, ModTime: epoch, Format: tar.FormatPAX}
	body := f.Body
	switch {
	case f.Dir:
		header.Typeflag, header.Name = tar.TypeDir, f.Path+"/"
	case f.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.Link
	default:
		if f.Source != "" {
			content, err := os.ReadFile(f.Source)
			if err != nil {
				return err
			}
			body = content
		}
		header.Typeflag, header.Size = tar.TypeReg, int64(len(body))
	}
	if err := w.WriteHeader(header); err != nil {
		return fmt.Errorf("add /%s: %w", f.Path, err)
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := w.Write(body)
	return err
}
