// Package manifests reads manifests of users, and returns the objects that an apply of them would store.
package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read returns the objects of files, folders, a kustomization, or standard input. An object without a namespace
// gets the given one.
func Read(files resource.FilenameOptions, in io.Reader, namespace string) ([]*unstructured.Unstructured, error) {
	if err := files.RequireFilenameOrKustomize(); err != nil {
		return nil, err
	}
	builder := resource.NewLocalBuilder().Unstructured().Local().ContinueOnError()
	named := []string{}
	for _, name := range files.Filenames {
		if name == "-" {
			builder = builder.Stream(in, "standard input")
			continue
		}
		named = append(named, name)
	}
	files.Filenames = named
	infos, err := builder.FilenameParam(false, &files).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, info := range infos {
		object, isUnstructured := info.Object.(*unstructured.Unstructured)
		if !isUnstructured {
			return nil, fmt.Errorf("%s: unexpected type %T", info.Source, info.Object)
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		all = append(all, object)
	}
	return all, nil
}

// Options are the options of an apply.
type Options struct {
	// ServerSide applies as `kubectl apply --server-side` does.
	ServerSide bool
	// ForceConflicts takes over fields of other managers.
	ForceConflicts bool
	// FieldManager is the name of the manager.
	FieldManager string
}

// Applied is an object before and after an apply.
type Applied struct {
	// Before is nil if the object does not exist.
	Before client.Object
	After  client.Object
}

// Apply returns what an apply of a manifest would store. The API server does it as a dry run, with all its
// webhooks, defaults and policies.
func Apply(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, o Options) (Applied, error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(manifest.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(manifest), before)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return Applied{}, err
	}
	after := manifest.DeepCopy()
	switch {
	case o.ServerSide:
		err = serverSide(ctx, c, after, o)
	case exists:
		err = clientSide(ctx, c, before, after, o)
	default:
		err = c.Create(ctx, after, client.DryRunAll, client.FieldOwner(o.FieldManager), strict)
	}
	if err != nil {
		return Applied{}, err
	}
	var result Applied
	if exists {
		if result.Before, err = typed(c.Scheme(), before); err != nil {
			return Applied{}, err
		}
	}
	result.After, err = typed(c.Scheme(), after)
	return result, err
}

// strict refuses unknown and duplicate fields, as kubectl does.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// serverSide replaces a manifest by the result of a server-side apply.
func serverSide(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, o Options) error {
	data, err := manifest.MarshalJSON()
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.DryRunAll, client.FieldOwner(o.FieldManager), strict}
	if o.ForceConflicts {
		options = append(options, client.ForceOwnership)
	}
	return c.Patch(ctx, manifest, client.RawPatch(types.ApplyPatchType, data), options...)
}

// clientSide replaces a manifest by the result of a three-way merge with the live object, as `kubectl apply` does.
func clientSide(ctx context.Context, c client.Client, live, manifest *unstructured.Unstructured, o Options) error {
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	modified, err := manifest.MarshalJSON()
	if err != nil {
		return err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return err
	}
	kind, data, err := threeWay(c.Scheme(), live, original, modified, current)
	if err != nil {
		return fmt.Errorf("merge %s %s with the live object: %w", live.GetKind(), live.GetName(), err)
	}
	err = c.Patch(ctx, manifest, client.RawPatch(kind, data), client.DryRunAll, client.FieldOwner(o.FieldManager), strict)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s was deleted meanwhile: %w", live.GetKind(), live.GetName(), err)
	}
	return err
}

// threeWay returns the patch of an apply. Built-in types have a strategic one.
func threeWay(scheme *runtime.Scheme, live *unstructured.Unstructured, original, modified, current []byte) (types.PatchType, []byte, error) {
	keeps := []mergepatch.PreconditionFunc{mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"),
		mergepatch.RequireMetadataKeyUnchanged("name"), mergepatch.RequireMetadataKeyUnchanged("namespace")}
	if isBuiltIn := !strings.Contains(live.GroupVersionKind().Group, "."); isBuiltIn {
		object, err := scheme.New(live.GroupVersionKind())
		if err != nil {
			return "", nil, err
		}
		meta, err := strategicpatch.NewPatchMetaFromStruct(object)
		if err != nil {
			return "", nil, err
		}
		data, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true, keeps...)
		return types.StrategicMergePatchType, data, err
	}
	data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current, keeps...)
	return types.MergePatchType, data, err
}

// typed returns an object as its registered type.
func typed(scheme *runtime.Scheme, object *unstructured.Unstructured) (client.Object, error) {
	into, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	result, isObject := into.(client.Object)
	if !isObject {
		return nil, fmt.Errorf("%s is no object", object.GetKind())
	}
	return result, nil
}
