package release

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// archive writes the content of a folder, below a folder of the archive, to a file of the release. It
// is compressed if the file's name has such a suffix. Entries are sorted by name, have no owner, and
// have the time of the commit.
func (r *Release) archive(file, folder, below string) (err error) {
	out, err := os.Create(filepath.Join(r.Out, file))
	if err != nil {
		return err
	}
	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()
	if !strings.HasSuffix(file, ".gz") {
		return r.pack(out, folder, below)
	}
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.pack(packed, folder, below); err != nil {
		return err
	}
	return packed.Close()
}

func (r *Release) pack(out io.Writer, folder, below string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path.Join(below, filepath.ToSlash(relative)), Typeflag: tar.TypeReg, Mode: mode,
			Size: int64(len(content)), ModTime: r.Time, Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// unpack extracts an archive of pack into a folder, and never writes outside of it.
func unpack(file, folder string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	entries := tar.NewReader(in)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(header.Name), 0o755); err != nil {
			return err
		}
		out, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, entries)
		if closed := out.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
}
