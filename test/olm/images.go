package olm

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// images are equivalent to the images of OLM's own build, with programs that are built here: one with
// OLM's programs (two of them unpack bundles and catalogs), and one with opm, which serves catalogs.
// Both have a shell, as the original images do.
type images struct {
	olm, opm       string // references
	olmDir, opmDir string // folders of the programs
}

func imagesOf(folders map[cluster.Set]string) images {
	tag := func(set cluster.Set) string {
		return "localhost/" + string(set) + ":" + strings.TrimPrefix(filepath.Base(folders[set]), string(set)+"-")
	}
	return images{
		olm: tag(cluster.OLM), olmDir: folders[cluster.OLM],
		opm: tag(cluster.OPM), opmDir: folders[cluster.OPM],
	}
}

// user is the user of the original images. OLM also sets it in its jobs.
const user = "1001"

// shell returns the commands that jobs and pods of OLM and operator-sdk run.
func shell() []image.File {
	files := []image.File{
		{Path: "/bin/busybox", Source: "/bin/busybox"},
		{Path: "/tmp", Dir: true, Mode: 0o777 | os.ModeSticky},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Body: []byte("hosts: files dns\n")},
	}
	for _, applet := range []string{"sh", "cp", "cat", "gzip", "mkdir", "ls", "tar"} {
		files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	return files
}

func (i images) opmFiles() []image.File {
	return append(shell(),
		image.File{Path: "/bin/opm", Source: filepath.Join(i.opmDir, "opm")},
		image.File{Path: "/bin/grpc_health_probe", Source: filepath.Join(i.opmDir, "grpc-health-probe")})
}

// load loads OLM's images into the nodes, once per cluster.
func (m *Manager) load(ctx context.Context) {
	note, content := filepath.Join(m.dir(), "loaded"), m.images.olm+" "+m.images.opm
	if before, err := os.ReadFile(note); err == nil && string(before) == content {
		return
	}
	m.Say("writing the images of OLM and opm, and loading them into the nodes …")
	programs := shell()
	for _, program := range []string{"olm", "catalog", "copy-content", "cpb"} {
		programs = append(programs, image.File{Path: "/bin/" + program, Source: filepath.Join(m.images.olmDir, program)})
	}
	for _, one := range []struct {
		ref, entrypoint string
		files           []image.File
	}{{m.images.olm, "/bin/olm", programs}, {m.images.opm, "/bin/opm", m.images.opmFiles()}} {
		tar := filepath.Join(m.dir(), filepath.Base(one.entrypoint)+".tar")
		config := v1.Config{User: user, Entrypoint: []string{one.entrypoint}, Env: []string{"PATH=/bin"}, WorkingDir: "/tmp"}
		m.Expect(image.Write(tar, one.ref, config, one.files...)).To(gomega.Succeed())
		m.Expect(m.Cluster.LoadImage(ctx, tar)).To(gomega.Succeed())
		m.Expect(os.Remove(tar)).To(gomega.Succeed())
	}
	m.write(note, content)
}
