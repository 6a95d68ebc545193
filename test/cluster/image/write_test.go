package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func write(t *testing.T, name string, files ...File) v1.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := Write(path, "localhost/x:1", v1.Config{User: "65532", Entrypoint: []string{"/x"}}, files...); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestTheSameFilesGiveTheSameDigest(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := File{Path: "/bin/x", Source: source}
	b := File{Path: "/etc/y", Body: []byte("y"), Mode: 0o644}
	one, err := write(t, "one.tar", a, b).Digest()
	if err != nil {
		t.Fatal(err)
	}
	two, err := write(t, "two.tar", b, a).Digest() // another day, another order
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("%s and %s", one, two)
	}
}

func TestEntriesAreWhatWasAsked(t *testing.T) {
	img := write(t, "x.tar",
		File{Path: "/x", Body: []byte("x"), UID: 7},
		File{Path: "/tmp", Dir: true, Mode: 0o777 | os.ModeSticky},
		File{Path: "/usr/bin/sh", Link: "/x"},
	)
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Config.User != "65532" || !config.Created.Equal(epoch) {
		t.Errorf("config %+v", config)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]tar.Header{}
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = *header
	}
	if h := got["x"]; h.Mode != 0o755 || h.Uid != 7 || h.Size != 1 {
		t.Errorf("/x: %+v", h)
	}
	if h := got["tmp/"]; h.Mode != 0o1777 || h.Typeflag != tar.TypeDir {
		t.Errorf("/tmp: %+v", h)
	}
	if h := got["usr/bin/sh"]; h.Linkname != "/x" {
		t.Errorf("/usr/bin/sh: %+v", h)
	}
	if _, parents := got["usr/bin/"]; !parents {
		t.Error("/usr/bin is missing")
	}
}

func TestAReferenceThatIsNoneIsRefused(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "x.tar"), "Not A Reference", v1.Config{}); err == nil {
		t.Error("accepted")
	}
}

// TestALayerThatStaysHereIsNotCompressed verifies that a local layer is not compressed. Compression
// takes longer than everything else, and each node that loads the layer decompresses it.
func TestALayerThatStaysHereIsNotCompressed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zeros.tar")
	zeros := make([]byte, 100_000)
	if err := Write(path, "localhost/x:1", v1.Config{}, File{Path: "/zeros", Body: zeros}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(written, zeros) {
		t.Errorf("the image has %d bytes, and its zeros are not compressed", len(written))
	}
}
