// Package keep saves what package traces checks, before a local cluster deletes it: the logs of all containers, and the
// audit log.
package keep

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Folder is the folder of a cluster in which Logs keeps the logs of containers.
const Folder = "container-logs"

// kubeletLogs matches the logs of containers, in the folder of a cluster: node, NAMESPACE_POD_UID, container, number.
var kubeletLogs = filepath.Join("nodes", "*", "log", "pods", "*", "*", "*.log")

// mentioned are the parts of the lines of an audit log that Save keeps.
var mentioned = [][]byte{[]byte(`"resource":"leases"`), []byte(`"resource":"pods"`), []byte(`"resource":"nodes"`)}

// Logs links the logs of containers into Folder of the cluster in a folder until the context ends. A kubelet deletes
// the log of a container soon after its pod or the next container; the link remains. Several processes can do this for one
// cluster. It returns the first error.
func Logs(ctx context.Context, cluster string, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var failed error
	for {
		failed = cmp.Or(failed, link(cluster)) // the next round tries again
		select {
		case <-ctx.Done():
			return cmp.Or(failed, link(cluster))
		case <-ticker.C:
		}
	}
}

// link links the logs that are not linked yet.
func link(cluster string) error {
	logs, err := filepath.Glob(filepath.Join(cluster, kubeletLogs))
	if err != nil {
		return err
	}
	for _, log := range logs {
		within, err := filepath.Rel(filepath.Join(cluster, "nodes"), log)
		if err != nil {
			return err
		}
		if err := linkOne(log, filepath.Join(cluster, Folder, within)); err != nil {
			return fmt.Errorf("keep the log of a container: %w", err)
		}
	}
	return nil
}

// linkOne links a log. If another file has its name, the kubelet has begun a new file because that one was too long:
// that one gets a time in its name, as the kubelet does.
func linkOne(log, to string) error {
	info, err := os.Stat(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was deleted meanwhile
	}
	if err != nil {
		return err
	}
	kept, err := os.Stat(to)
	switch {
	case err == nil && os.SameFile(info, kept):
		return nil
	case err == nil:
		if err := os.Rename(to, to+"."+time.Now().UTC().Format("20060102-150405.000")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// It was deleted, or linked by another process, meanwhile.
	if err := os.Link(log, to); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Save copies the logs of containers, and the lines of the audit log about Leases, pods and nodes, into a new folder. It
// returns an error if there is no log of a container.
func Save(cluster, to string) error {
	if err := link(cluster); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(to, Folder), os.DirFS(filepath.Join(cluster, Folder))); err != nil {
		return fmt.Errorf("copy the logs of containers: %w", err)
	}
	audits, err := filepath.Glob(filepath.Join(cluster, "logs", "audit*.log"))
	if err != nil {
		return err
	}
	for _, audit := range audits {
		if err := copyMentioned(audit, filepath.Join(to, filepath.Base(audit))); err != nil {
			return fmt.Errorf("copy the audit log: %w", err)
		}
	}
	return nil
}

func copyMentioned(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	lines, kept := bufio.NewReaderSize(in, 1<<20), bufio.NewWriter(out)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return errors.Join(kept.Flush(), out.Close()) // the last line is not complete
		}
		if err == nil && slices.ContainsFunc(mentioned, func(part []byte) bool { return bytes.Contains(line, part) }) {
			_, err = kept.Write(line)
		}
		if err != nil {
			return errors.Join(err, out.Close())
		}
	}
}
