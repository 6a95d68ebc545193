package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// readObject reads the object live, and its rivals from the cache, so that a pass does not
// depend on the size of other objects.
//
// A cache that lacks a rival does not let two overlapping objects both start pods. A process
// decides about an object only if its cache has the object, and the object starts no pod for
// SettleAfter from then on. So an object that may start a pod is in the cache of the process
// that decides about the other one.
func (r *Reader) readObject(ctx context.Context, w *facts.World, key types.NamespacedName) error {
	var object v1.StatefulSingleton
	err := r.Live.Get(ctx, key, &object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get the StatefulSingleton: %w", err)
	}
	w.Object = spec.WithDefaults(&object)
	w.Invalid = spec.Problem(w.Object)
	others := r.CachedObjects(ctx, key.Namespace)
	if w.BeyondLimit = spec.BeyondLimit(w.Object, others); !w.BeyondLimit {
		w.Rivals = spec.Conflicting(w.Object, spec.WithinLimit(others))
	}
	return nil
}

// CachedObjects returns the StatefulSingletons of a namespace, or of all namespaces, from the
// cache. They must not be modified.
func (r *Reader) CachedObjects(ctx context.Context, namespace string) []v1.StatefulSingleton {
	var all v1.StatefulSingletonList
	if err := r.Cache.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list StatefulSingletons", "namespace", namespace)
	}
	return all.Items
}

// confirmRivals removes rivals that are gone but still in the cache, if the object is being
// deleted: it leaves pods that a rival selects to that rival, and otherwise no object would
// manage them. Only rivals that select a pod of the object are read.
func (r *Reader) confirmRivals(ctx context.Context, w *facts.World) error {
	if !w.Deleting() {
		return nil
	}
	var existing []*v1.StatefulSingleton
	for _, s := range w.Rivals {
		if slices.ContainsFunc(w.Pods, func(m *facts.Member) bool { return spec.Selects(s, spec.LabelsOf(m.Pod)) }) {
			now := metav1.PartialObjectMetadata{}
			now.SetGroupVersionKind(v1.GroupVersion.WithKind("StatefulSingleton"))
			err := r.Live.Get(ctx, client.ObjectKeyFromObject(s), &now)
			switch {
			case client.IgnoreNotFound(err) != nil:
				return fmt.Errorf("get StatefulSingleton %s: %w", s.Name, err)
			case err != nil || now.UID != s.UID:
				continue
			}
		}
		existing = append(existing, s)
	}
	w.Rivals = existing
	return nil
}

// Page sizes. Lists of other users' objects are read in pages, so that memory does not grow
// with the namespace.
const (
	PodsPerPage    = 100 // metadata only
	objectsPerPage = 10
	ownersPerPage  = 20
)

// pages lists the objects of a namespace page by page, and calls each with every page. newList returns
// an empty list of the kind.
func (r *Reader) pages(ctx context.Context, namespace string, size int64, newList func() client.ObjectList, each func(client.ObjectList)) error {
	for from := ""; ; {
		page := newList()
		if err := r.Live.List(ctx, page, client.InNamespace(namespace), client.Limit(size), client.Continue(from)); err != nil {
			return err
		}
		each(page)
		if from = page.GetContinue(); from == "" {
			return nil
		}
	}
}

// ReadOrphans reads the pods of a deleted object: the pods that were created for it, and
// those with our finalizer, unless another object manages them. The objects are read after
// the pods, because an object that was created meanwhile may have added its finalizer.
func (r *Reader) ReadOrphans(ctx context.Context, key types.NamespacedName) ([]corev1.Pod, error) {
	names, err := r.orphanNames(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []corev1.Pod
	for _, name := range names {
		var pod corev1.Pod
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get pod %s: %w", name, err)
		}
		if err == nil && mayBeOrphan(&pod, key.Name) {
			pods = append(pods, pod)
		}
	}
	if pods, err = r.withoutPodsOfOthers(ctx, key.Namespace, pods); err != nil {
		return nil, fmt.Errorf("list StatefulSingletons: %w", err)
	}
	return Latest(pods), nil
}

// mayBeOrphan reports whether a pod was created for the object of that name, or has our
// finalizer.
func mayBeOrphan(pod metav1.Object, object string) bool {
	return pod.GetLabels()[v1.LabelSingleton] == object || slices.Contains(pod.GetFinalizers(), v1.FinalizerPod)
}

// orphanNames returns the names of pods that may be orphans, from their metadata.
func (r *Reader) orphanNames(ctx context.Context, key types.NamespacedName) (names []string, err error) {
	metadata := func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		return list
	}
	err = r.pages(ctx, key.Namespace, PodsPerPage, metadata, func(page client.ObjectList) {
		for _, p := range page.(*metav1.PartialObjectMetadataList).Items {
			if mayBeOrphan(&p, key.Name) {
				names = append(names, p.Name)
			}
		}
	})
	return names, err
}

// withoutPodsOfOthers removes the pods that another object manages.
func (r *Reader) withoutPodsOfOthers(ctx context.Context, namespace string, pods []corev1.Pod) ([]corev1.Pod, error) {
	singletons := func() client.ObjectList { return &v1.StatefulSingletonList{} }
	err := r.pages(ctx, namespace, objectsPerPage, singletons, func(page client.ObjectList) {
		objects := page.(*v1.StatefulSingletonList).Items
		pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			return slices.ContainsFunc(objects, func(s v1.StatefulSingleton) bool {
				return p.Labels[v1.LabelSingleton] == s.Name || spec.Selects(&s, spec.LabelsOf(&p))
			})
		})
	})
	return pods, err
}
