package release

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/bundle"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// built is the image in config/ that is replaced by the released one.
const built = "localhost/stateful-operator"

// writeManifests writes the manifests for `kubectl apply`, with the released image by digest.
func (r *Release) writeManifests(_ context.Context, made images) error {
	for _, file := range slices.Sorted(maps.Keys(r.Manifests)) {
		text, err := manifest.Text(r.Manifests[file], map[string]string{built: made[Operator.Name]})
		if err != nil {
			return err
		}
		if strings.Contains(string(text), built) {
			return fmt.Errorf("%s still has an image %s", file, built)
		}
		if err := r.write(file, text); err != nil {
			return err
		}
	}
	return nil
}

// writeBundle writes OLM's bundle, its image, and the catalog with it.
func (r *Release) writeBundle(ctx context.Context, made images) error {
	if r.Bundle == nil {
		return nil
	}
	folder := filepath.Join(r.work, "bundle")
	if err := r.Bundle(ctx, byDigest(made[Operator.Name]), folder); err != nil {
		return err
	}
	if err := r.date(folder); err != nil {
		return err
	}
	files, err := bundle.Files(folder)
	if err != nil {
		return err
	}
	annotations, err := bundle.Annotations(folder)
	if err != nil {
		return err
	}
	err = r.writeImage(made, bundleName, v1.Config{Labels: annotations}, func(string) []image.File { return files })
	if err != nil {
		return err
	}
	name := "stateful-operator-bundle-" + r.Version
	if err := r.archive(name+".tar.gz", folder, name); err != nil {
		return err
	}
	catalog := filepath.Join(r.work, "catalog")
	if err := r.Catalog(ctx, folder, byDigest(made[bundleName]), catalog); err != nil {
		return err
	}
	name = "stateful-operator-catalog-" + r.Version
	return r.archive(name+".tar.gz", catalog, name)
}

// byDigest removes the tag of a reference. OLM's tools, and tools that mirror catalogs, accept a tag or
// a digest, but not both.
func byDigest(reference string) string {
	tagged, digest, _ := strings.Cut(reference, "@")
	return tagged[:strings.LastIndex(tagged, ":")] + "@" + digest
}

// date replaces the creation time of a bundle by the time of the commit.
func (r *Release) date(folder string) error {
	file := filepath.Join(folder, "manifests", "stateful-operator.clusterserviceversion.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines, dated := strings.SplitAfter(string(text), "\n"), 0
	for i, line := range lines {
		if strings.HasPrefix(line, "    createdAt: ") {
			lines[i] = fmt.Sprintf("    createdAt: %q\n", r.Time.UTC().Format("2006-01-02T15:04:05Z"))
			dated++
		}
	}
	if dated != 1 {
		return fmt.Errorf("%s has its creation date %d times, want once", file, dated)
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644)
}
