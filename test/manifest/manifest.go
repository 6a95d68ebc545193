// Package manifest reads files of objects, one per YAML document, and applies them.
package manifest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Read decodes all documents except those with only comments. It returns an error if a document is not
// YAML or not a T.
func Read[T any](content []byte) ([]T, error) {
	var all []T
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var one T
		var text []byte
		if err == nil {
			text, err = yaml.YAMLToJSON(document)
		}
		if err == nil && string(text) == "null" {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		all = append(all, one)
	}
}

// ReadFile reads a file with Read. Errors contain the file's name.
func ReadFile[T any](file string) ([]T, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := Read[T](content)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return all, nil
}

// Apply applies objects by server-side apply with a field owner. Fields that only the server writes are
// removed.
func Apply(ctx context.Context, c client.Client, owner client.FieldOwner, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		object.SetCreationTimestamp(metav1.Time{})
		unstructured.RemoveNestedField(object.Object, "status")
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), owner, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Text returns the output of kustomize for a folder, as its command prints it, with some images
// replaced. An image is keyed by the name that is replaced, and its new value is name[:tag][@digest].
func Text(folder string, images map[string]string) ([]byte, error) {
	over, err := os.MkdirTemp("", "render-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(over)
	content, err := overlay(over, folder, images)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	if err := os.WriteFile(filepath.Join(over, "kustomization.yaml"), content, 0o644); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // as in the command: dependencies are first
	made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), over)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	return made.AsYaml()
}

// overlay returns a kustomization in folder over that replaces images of folder.
func overlay(over, folder string, images map[string]string) ([]byte, error) {
	var err error
	for _, path := range []*string{&over, &folder} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
		if *path, err = filepath.EvalSymlinks(*path); err != nil {
			return nil, err
		}
	}
	relative, err := filepath.Rel(over, folder)
	if err != nil {
		return nil, err
	}
	kustomization := types.Kustomization{Resources: []string{relative}}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		reference, digest, _ := strings.Cut(images[name], "@")
		image := types.Image{Name: name, NewName: reference, Digest: digest}
		if colon := strings.LastIndex(reference, ":"); colon > strings.LastIndex(reference, "/") {
			image.NewName, image.NewTag = reference[:colon], reference[colon+1:]
		}
		kustomization.Images = append(kustomization.Images, image)
	}
	return yaml.Marshal(kustomization)
}

// Render returns the objects that kustomize generates from a folder, as kubectl apply --kustomize sends
// them.
func Render(folder string) ([]unstructured.Unstructured, error) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	var objects []unstructured.Unstructured
	for _, resource := range made.Resources() {
		object, err := resource.Map()
		if err != nil {
			return nil, fmt.Errorf("render %s of %s: %w", resource.CurId(), folder, err)
		}
		objects = append(objects, unstructured.Unstructured{Object: object})
	}
	return objects, nil
}
