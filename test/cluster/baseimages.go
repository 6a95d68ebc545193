package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

func writePause(ctx context.Context, log io.Writer, tar, source string) error {
	temp, err := os.MkdirTemp("", "pause-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	program := filepath.Join(temp, "pause")
	if err := (build{dir: source, out: program, packages: []string{"."}}).run(ctx, log); err != nil {
		return err
	}
	return image.Write(tar, PauseImage, v1.Config{Entrypoint: []string{"/pause"}, User: "65535"},
		image.File{Path: "/pause", Source: program})
}

func writeBusybox(ctx context.Context, tar string) error {
	return WriteBusybox(ctx, tar, BusyboxImage)
}

// WriteBusybox writes a tar file of the busybox image under another name, for programs that use an
// image of a registry that nodes cannot reach.
func WriteBusybox(ctx context.Context, tar, ref string) error {
	files, err := BusyboxFiles(ctx)
	if err != nil {
		return err
	}
	return image.Write(tar, ref, v1.Config{Cmd: []string{"sh"}, Env: []string{BusyboxPath}}, files...)
}

// BusyboxPath is the path of the commands of BusyboxFiles.
const BusyboxPath = "PATH=/bin:/usr/bin:/sbin:/usr/sbin"

// BusyboxFiles returns every applet of the static busybox as a command, the few files that programs
// expect, and a world-writable /tmp.
func BusyboxFiles(ctx context.Context) ([]image.File, error) {
	list, err := exec.CommandContext(ctx, "/bin/busybox", "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the applets of busybox: %w", err)
	}
	files := []image.File{
		{Path: "/bin/busybox", Source: "/bin/busybox"},
		{Path: "/tmp", Dir: true, Mode: 0o777 | os.ModeSticky},
		{Path: "/root", Dir: true, Mode: 0o700},
		{Path: "/etc/passwd", Mode: 0o644, Body: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{Path: "/etc/group", Mode: 0o644, Body: []byte("root:x:0:\nnobody:x:65534:\n")},
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet != "busybox" {
			files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
		}
	}
	return files, nil
}
