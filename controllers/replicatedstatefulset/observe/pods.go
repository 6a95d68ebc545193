package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// readPods reads the pods of the set by their common labels. A pod whose labels were removed still
// runs, and no other pod can have its name. So pods in the record, pods with our finalizer, and
// pods with our annotation but no controller are found by name.
func (r *Reader) readPods(ctx context.Context, w *facts.World, from engine.View) ([]corev1.Pod, error) {
	var pods corev1.PodList
	options := []client.ListOption{client.InNamespace(w.Set.Namespace), client.MatchingLabels(spec.OwnLabels(w.Set))}
	if !from.Live {
		options = append(options, client.UnsafeDisableDeepCopy)
	}
	if err := from.List(ctx, &pods, options...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	listed := map[string]bool{}
	for i := range pods.Items {
		listed[pods.Items[i].Name] = true
	}
	unlisted, err := r.unlisted(ctx, w, listed)
	if err != nil {
		return nil, err
	}
	for _, name := range unlisted {
		var pod corev1.Pod
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: w.Set.Namespace, Name: name}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get pod %s: %w", name, err)
		}
		if err == nil && isUnlabelledMember(w, &facts.Member{Pod: &pod}) {
			pods.Items = append(pods.Items, pod)
		}
	}
	return pods.Items, nil
}

// isUnlabelledMember reports whether a pod with the name of a member, but without our labels, is a
// member.
func isUnlabelledMember(w *facts.World, m *facts.Member) bool {
	madeByUs := m.Pod.Annotations[v1alpha1.AnnotationTemplate] != "" && metav1.GetControllerOf(m.Pod) == nil
	return madeByUs || m.Protected() || w.IsStored(m)
}

// MaxLookups is the max number of pods without our labels that are read one by one.
const MaxLookups = 32

// unlisted returns the names of pods that should exist, or are in the record, and were not listed.
// If more than MaxLookups are missing, it returns only those that exist. So a set that wants a
// thousand pods and has none does not cost a thousand reads each time.
func (r *Reader) unlisted(ctx context.Context, w *facts.World, listed map[string]bool) (names []string, err error) {
	for _, name := range podsOf(&w.Set.Status) {
		if !listed[name] {
			names = append(names, name)
		}
	}
	missing := 0
	for name := range w.WantedNames() {
		if !listed[name] {
			if missing++; missing > MaxLookups {
				break
			}
			names = append(names, name)
		}
	}
	if missing > MaxLookups {
		if names, err = r.unlabelled(ctx, w, listed); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// unlabelled returns the same names from a list of all pods of the namespace.
func (r *Reader) unlabelled(ctx context.Context, w *facts.World, listed map[string]bool) (names []string, err error) {
	recorded := podsOf(&w.Set.Status)
	list := metadataListOf("Pod")
	for {
		options := []client.ListOption{client.InNamespace(w.Set.Namespace), client.Limit(500), client.Continue(list.Continue)}
		if err := r.Live.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if listed[name] {
				continue
			}
			if shouldExist(w, name) || slices.Contains(recorded, name) {
				names = append(names, name)
			}
		}
		if list.Continue == "" {
			return names, nil
		}
	}
}

// podsOf returns the names of the pods in the record.
func podsOf(s *v1alpha1.ReplicatedStatefulSetStatus) (names []string) {
	for i := range s.Grants {
		names = append(names, s.Grants[i].Pod)
	}
	for i := range s.Commands {
		names = append(names, s.Commands[i].Pod)
	}
	return names
}

// shouldExist reports whether a pod of that name should exist.
func shouldExist(w *facts.World, name string) bool {
	n, ok := spec.OrdinalOf(w.Set, name)
	return ok && n < int(*w.Set.Spec.Replicas)
}
