package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The files of a folder. A kubelet adds a time to the name of a log that has become too long.
var (
	auditFile     = regexp.MustCompile(`(^|/)audit[^/]*\.log$`)
	containerFile = regexp.MustCompile(`(^|/)([^/_]+_[^/_]+_[^/_]+/[^/]+/\d+\.log)(\.[^/]*)?$`)
)

// find returns the files of a trace: those of folders, and each file that is named.
func find(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			isNamed := file == path
			switch {
			case err != nil:
				return err
			case entry.IsDir():
			case isNamed, auditFile.MatchString(file), containerFile.MatchString(file):
				files = append(files, file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// load reads the files of a trace.
func load(paths []string) (*trace, error) {
	files, err := find(paths)
	if err != nil {
		return nil, err
	}
	t := &trace{homes: map[string]string{}}
	logs := map[string][]string{} // the files of each container
	for _, file := range files {
		isAudit, err := isAuditLog(file)
		if err != nil {
			return nil, err
		}
		if isAudit {
			if err := t.readFiles([]string{file}, t.readAudit); err != nil {
				return nil, err
			}
			continue
		}
		name := file
		if found := containerFile.FindStringSubmatch(file); found != nil {
			name = strings.TrimSuffix(file, found[3])
		}
		logs[name] = append(logs[name], file)
	}
	for _, parts := range logs {
		if err := t.readFiles(inOrder(parts), t.readContainer); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(t.containers, func(a, b *container) int { return a.began.Compare(b.began) })
	return t, nil
}

// inOrder sorts the files of a container. The one without a time is the last one.
func inOrder(parts []string) []string {
	slices.SortFunc(parts, func(a, b string) int { return strings.Compare(a+"~", b+"~") })
	return parts
}

// isAuditLog reports whether a file begins with an object in JSON.
func isAuditLog(file string) (bool, error) {
	opened, err := open(file)
	if err != nil {
		return false, err
	}
	defer opened.Close()
	first, err := bufio.NewReader(opened).Peek(1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil && first[0] == '{', err
}

// readFiles reads files one after the other.
func (t *trace) readFiles(files []string, read func(name string, log io.Reader) error) error {
	var all []io.Reader
	for _, file := range files {
		opened, err := open(file)
		if err != nil {
			return err
		}
		defer opened.Close()
		all = append(all, opened)
	}
	return read(files[len(files)-1], io.MultiReader(all...))
}

// open opens a file, which can be compressed.
func open(file string) (io.ReadCloser, error) {
	opened, err := os.Open(file)
	if err != nil || !strings.HasSuffix(file, ".gz") {
		return opened, err
	}
	unpacked, err := gzip.NewReader(opened)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unpack %s: %w", file, err), opened.Close())
	}
	return &compressed{unpacked, opened}, nil
}

// compressed closes the file, too.
type compressed struct {
	*gzip.Reader
	file io.Closer
}

// Close closes the file.
func (c *compressed) Close() error { return errors.Join(c.Reader.Close(), c.file.Close()) }
