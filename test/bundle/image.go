// Package bundle builds images of the folders bundle/ and catalog/ without a container engine, and
// generates catalog/ from bundle/.
package bundle

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// WriteImage writes the image of a bundle, equivalent to bundle.Dockerfile.
func WriteImage(folder, ref, tar string) error {
	annotations, err := Annotations(folder)
	if err != nil {
		return err
	}
	files, err := Files(folder)
	if err != nil {
		return err
	}
	return image.Write(tar, ref, v1.Config{Labels: annotations}, files...)
}

// Files returns the files of a bundle's image.
func Files(folder string) (files []image.File, err error) {
	for _, part := range []string{"manifests", "metadata", "tests"} {
		some, err := filesIn(filepath.Join(folder, part), "/"+part)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}

// Annotations returns the annotations of a bundle, which are also the labels of its image.
func Annotations(folder string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "metadata", "annotations.yaml"))
	if err != nil {
		return nil, err
	}
	var file struct{ Annotations map[string]string }
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("read the annotations of %s: %w", folder, err)
	}
	return file.Annotations, nil
}

// Programs are the binaries in the image of a catalog.
type Programs struct {
	// OPM serves the catalog. The kubelet runs Probe to check it.
	OPM, Probe string
}

// WriteCatalogImage writes the image of a catalog, equivalent to its Dockerfile. It includes opm's
// cache for a fast start.
func WriteCatalogImage(ctx context.Context, folder, ref, tar string, programs Programs) error {
	files, err := filesIn(folder, "/configs")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "catalog-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cache := filepath.Join(work, "cache")
	fill := exec.CommandContext(ctx, programs.OPM, "serve", folder, "--cache-dir="+cache, "--cache-only")
	if out, err := fill.CombinedOutput(); err != nil {
		return fmt.Errorf("fill the cache of %s: %w: %s", folder, err, out)
	}
	cached, err := filesIn(cache, "/tmp/cache")
	if err != nil {
		return err
	}
	for i := range cached { // opm locks it, and OpenShift assigns any user ID
		cached[i].Mode = 0o666
		cached = append(cached, image.File{Path: filepath.Dir(cached[i].Path), Dir: true, Mode: 0o777})
	}
	files = append(append(files, cached...),
		image.File{Path: "/tmp", Dir: true, Mode: os.ModeSticky | 0o777},
		image.File{Path: "/bin/opm", Source: programs.OPM},
		image.File{Path: "/bin/grpc_health_probe", Source: programs.Probe})
	return image.Write(tar, ref, v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/bin/opm"},
		Cmd:        []string{"serve", "/configs", "--cache-dir=/tmp/cache"},
		Env:        []string{"PATH=/bin"},
		Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	}, files...)
}

// filesIn returns the files of a folder, or none if the folder is missing.
func filesIn(folder, as string) ([]image.File, error) {
	var files []image.File
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) && path == folder {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		files = append(files, image.File{Path: filepath.Join(as, relative), Mode: 0o644, Source: path})
		return nil
	})
	return files, err
}
