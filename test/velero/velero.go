// Package velero simulates a backup and a restore of Velero, for tests of objects that are restored
// without owners and status. It reproduces the behavior of Velero 1.18. Velero itself is not run.
package velero

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels that Velero adds to all restored objects.
const (
	LabelBackup  = "velero.io/backup-name"
	LabelRestore = "velero.io/restore-name"
)

// order is the order in which kinds are restored: first Velero's own list, then by resource name.
var order = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Pod"),
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	{Group: "fissile.cloudfoundry.org", Version: "v1alpha1", Kind: "ExtendedStatefulSet"},
	batchv1.SchemeGroupVersion.WithKind("Job"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	{Group: "clusterlabs.org", Version: "v1alpha1", Kind: "ReplicatedStatefulSet"},
	{Group: "enge.me", Version: "v1alpha1", Kind: "StatefulCluster"},
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	{Group: "apps.openshift.statefulsingleton.com", Version: "v1", Kind: "StatefulSingleton"},
}

// Ours are the four kinds of the operator. Children are the objects that the operator and Kubernetes
// create for them, except claims. They are recreated, and need no backup.
var (
	Ours     = []string{"ExtendedStatefulSet", "ReplicatedStatefulSet", "StatefulCluster", "StatefulSingleton"}
	Children = []string{"Pod", "ReplicaSet", "ControllerRevision", "PodDisruptionBudget", "StatefulSet", "Job", "Service"}
)

// Backup has the objects of a namespace at a point in time, in the order of a restore.
type Backup struct {
	Name    string
	objects []unstructured.Unstructured
}

// Take creates a backup of a namespace. Terminating objects are skipped.
func Take(ctx context.Context, from client.Client, namespace, name string) (Backup, error) {
	b := Backup{Name: name}
	for _, kind := range order {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := from.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) {
			continue // the kind is not installed
		}
		if err != nil {
			return b, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if list.Items[i].GetDeletionTimestamp() == nil {
				b.objects = append(b.objects, list.Items[i])
			}
		}
	}
	return b, nil
}

// Count returns the number of objects of a kind in the backup.
func (b Backup) Count(kind string) int {
	n := 0
	for i := range b.objects {
		if b.objects[i].GetKind() == kind {
			n++
		}
	}
	return n
}

// Erase deletes all objects of the backup immediately and ignores finalizers, to simulate the loss of a
// cluster. The operator must not run meanwhile.
func (b Backup) Erase(ctx context.Context, from client.Client) error {
	for _, kind := range slices.Backward(order) {
		for i := range b.objects {
			if b.objects[i].GetKind() != kind.Kind {
				continue
			}
			if err := erase(ctx, from, &b.objects[i]); err != nil {
				return fmt.Errorf("erase %s %s: %w", kind.Kind, b.objects[i].GetName(), err)
			}
		}
	}
	return nil
}

func erase(ctx context.Context, from client.Client, lost *unstructured.Unstructured) error {
	for {
		object := lost.DeepCopy()
		err := from.Get(ctx, client.ObjectKeyFromObject(lost), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(object.GetFinalizers()) > 0 {
			object.SetFinalizers(nil)
			if err := from.Update(ctx, object); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return err
			}
		}
		err = from.Delete(ctx, object, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond): // until other controllers have removed their finalizers
		}
	}
}

// Options are the options of a restore.
type Options struct {
	// Name of the restore; required.
	Name string
	// Only these kinds are restored. Default: all.
	Only []string
	// Without these kinds.
	Without []string
	// Selector selects by labels. Default: all.
	Selector labels.Selector
}

func (o Options) has(object *unstructured.Unstructured) bool {
	kind := object.GetKind()
	return (len(o.Only) == 0 || slices.Contains(o.Only, kind)) && !slices.Contains(o.Without, kind) &&
		(o.Selector == nil || o.Selector.Matches(labels.Set(object.GetLabels())))
}

// Restore recreates the objects of the backup. Existing objects are not changed. It continues after
// rejected objects, as Velero does, and returns them by kind and name.
func (b Backup) Restore(ctx context.Context, to client.Client, o Options) (refused map[string]error) {
	refused = map[string]error{}
	for i := range b.objects {
		object := b.objects[i].DeepCopy()
		kind, name := object.GetKind(), object.GetName()
		if !o.has(object) || completed(object) {
			continue
		}
		b.reset(object, o)
		if err := to.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			refused[kind+" "+name] = err
		}
	}
	return refused
}

// completed reports whether a pod or a Job has ended. Velero does not restore those.
func completed(object *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	done, _, _ := unstructured.NestedString(object.Object, "status", "completionTime")
	switch object.GetKind() {
	case "Pod":
		return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	case "Job":
		return done != ""
	}
	return false
}

// reset removes the fields that Velero does not restore. It keeps finalizers.
func (b Backup) reset(object *unstructured.Unstructured, o Options) {
	delete(object.Object, "status")
	for _, field := range []string{"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	marked := object.GetLabels()
	if marked == nil {
		marked = map[string]string{}
	}
	marked[LabelBackup], marked[LabelRestore] = b.Name, o.Name
	object.SetLabels(marked)
	switch object.GetKind() {
	case "Pod":
		unstructured.RemoveNestedField(object.Object, "spec", "nodeName")
		unstructured.RemoveNestedField(object.Object, "spec", "priority")
	case "PersistentVolumeClaim":
		resetClaim(object)
	case "Service":
		if ip, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		}
	case "Job":
		for _, label := range []string{"controller-uid", batchv1.ControllerUidLabel} {
			unstructured.RemoveNestedField(object.Object, "spec", "selector", "matchLabels", label)
			unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", label)
		}
	}
}

// resetClaim changes a claim such that it gets a new volume, as in a restore from a snapshot or from
// files.
func resetClaim(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.") {
			delete(annotations, key)
		}
	}
	object.SetAnnotations(annotations)
	unstructured.RemoveNestedField(object.Object, "spec", "volumeName")
}
