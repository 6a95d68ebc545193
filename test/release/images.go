package release

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Image is an image with programs. It runs the first one.
type Image struct {
	// Name is the name of the repository in the registry.
	Name string
	// Programs are at / in the image.
	Programs []Program
}

// Program is a package and the name of its binary.
type Program struct{ Package, Name string }

// Operator and Gate are the images of the Dockerfile.
var (
	Operator = Image{Name: "stateful-operator", Programs: []Program{{".", "stateful-operator"}, {"./gate", "gate"}, {"./agent", "agent"}}}
	Gate     = Image{Name: "statefulsingleton-gate", Programs: []Program{{"./gate", "gate"}, {"./agent", "agent"}}}
)

// bundleName is the repository of the bundle's image.
const bundleName = "stateful-operator-bundle"

// user is nonroot, as in the Dockerfile.
const user = "65532:65532"

// images are the references of written images, by name, each with tag and digest.
type images map[string]string

// writeImages builds the programs once for each architecture, and their images.
func (r *Release) writeImages(ctx context.Context) (images, error) {
	var packages []string
	for _, i := range r.Images {
		for _, p := range i.Programs {
			packages = append(packages, p.Package)
		}
	}
	for _, architecture := range r.Architectures {
		r.say("building programs for %s", architecture)
		folder := r.builtFor(architecture)
		target := cluster.Target{System: "linux", Architecture: architecture, Version: r.Version, Commit: r.Commit}
		if err := cluster.Released(ctx, r.Log, folder, target, unique(packages)...); err != nil {
			return nil, err
		}
	}
	made := images{}
	for _, i := range r.Images {
		err := r.writeImage(made, i.Name, v1.Config{User: user, Entrypoint: []string{"/" + i.Programs[0].Name}, WorkingDir: "/"}, func(architecture string) (files []image.File) {
			for _, p := range i.Programs {
				built := filepath.Join(r.builtFor(architecture), p.Name)
				r.programs = append(r.programs, built)
				files = append(files, image.File{Path: "/" + p.Name, Source: built})
			}
			return files
		})
		if err != nil {
			return nil, fmt.Errorf("write image %s: %w", i.Name, err)
		}
	}
	return made, nil
}

func (r *Release) builtFor(architecture string) string { return filepath.Join(r.work, architecture) }

// unique removes duplicates and keeps the order.
func unique(all []string) (kept []string) {
	seen := map[string]bool{}
	for _, one := range all {
		if !seen[one] {
			seen[one] = true
			kept = append(kept, one)
		}
	}
	return kept
}

// writeImage writes an image for all architectures as an archive of an OCI layout, and records its
// reference.
func (r *Release) writeImage(made images, repository string, config v1.Config, files func(architecture string) []image.File) error {
	labels := map[string]string{}
	for key, value := range config.Labels {
		labels[key] = value
	}
	labels["org.opencontainers.image.version"] = r.Version
	labels["org.opencontainers.image.revision"] = r.Commit
	labels["org.opencontainers.image.source"] = r.Source
	labels["org.opencontainers.image.licenses"] = "Apache-2.0"
	config.Labels = labels
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range r.Architectures {
		built, err := image.Build(architecture, config, files(architecture)...)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: platform}})
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	folder := filepath.Join(r.work, "layout-"+repository)
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	reference := path.Join(r.Registry, repository) + ":" + r.Version
	annotations := map[string]string{"org.opencontainers.image.ref.name": r.Version, "io.containerd.image.name": reference}
	if err := written.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	made[repository] = reference + "@" + digest.String()
	return r.archive(imageFile(repository, r.Version), folder, "")
}

// imageFile returns the name of an image's archive.
func imageFile(repository, version string) string {
	return repository + "-" + version + "-image.tar"
}

// Push uploads an image that was unpacked into a folder, with all its architectures, under a reference.
// It does not change the digest.
func Push(ctx context.Context, folder, reference string, options ...remote.Option) error {
	at, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("%s has %d images, want one", folder, len(manifest.Manifests))
	}
	one, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	return remote.WriteIndex(at, one, append(options, remote.WithContext(ctx))...)
}

// Push uploads all images of a release in its folder to its registry, each with its signature if there
// is a key. It returns the references of both.
func (r *Release) Push(ctx context.Context, options ...remote.Option) (references []string, err error) {
	if r.lacksKey() {
		return nil, fmt.Errorf("the images of version %s would not be signed: provide a key, or UNSIGNED=yes", r.Version)
	}
	for _, repository := range []string{Operator.Name, Gate.Name, bundleName} {
		work, err := os.MkdirTemp("", "push-")
		if err != nil {
			return references, err
		}
		defer os.RemoveAll(work)
		if err := unpack(filepath.Join(r.Out, imageFile(repository, r.Version)), work); err != nil {
			return references, err
		}
		reference := path.Join(r.Registry, repository) + ":" + r.Version
		if err := Push(ctx, work, reference, options...); err != nil {
			return references, fmt.Errorf("push %s: %w", reference, err)
		}
		references = append(references, reference)
		if len(r.Key) == 0 {
			continue
		}
		signature, err := SignPushed(ctx, r.Key, reference, options...)
		if err != nil {
			return references, fmt.Errorf("push the signature of %s: %w", reference, err)
		}
		references = append(references, signature)
	}
	return references, nil
}
