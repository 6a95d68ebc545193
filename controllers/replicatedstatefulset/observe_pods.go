package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// readPods reads the pods of the set by their common labels. A pod whose labels were removed still
// runs, and no other pod can have its name. So pods in the record, pods with our finalizer, and
// pods with our annotation but no controller are found by name.
func (r *reader) readPods(ctx context.Context, w *world, from engine.View) ([]corev1.Pod, error) {
	var pods corev1.PodList
	options := []client.ListOption{client.InNamespace(w.set.Namespace), client.MatchingLabels(ownLabels(w.set))}
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
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: name}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get pod %s: %w", name, err)
		}
		if err == nil && w.isUnlabelledMember(&member{pod: &pod}) {
			pods.Items = append(pods.Items, pod)
		}
	}
	return pods.Items, nil
}

// isUnlabelledMember reports whether a pod with the name of a member, but without our labels, is a
// member.
func (w *world) isUnlabelledMember(m *member) bool {
	madeByUs := m.pod.Annotations[v1alpha1.AnnotationTemplate] != "" && metav1.GetControllerOf(m.pod) == nil
	return madeByUs || m.protected() || w.isStored(m)
}

// maxLookups is the max number of pods without our labels that are read one by one.
const maxLookups = 32

// unlisted returns the names of pods that should exist, or are in the record, and were not listed.
// If more than maxLookups are missing, it returns only those that exist. So a set that wants a
// thousand pods and has none does not cost a thousand reads each time.
func (r *reader) unlisted(ctx context.Context, w *world, listed map[string]bool) (names []string, err error) {
	for _, name := range podsOf(&w.set.Status) {
		if !listed[name] {
			names = append(names, name)
		}
	}
	missing := 0
	for name := range w.wantedNames() {
		if !listed[name] {
			if missing++; missing > maxLookups {
				break
			}
			names = append(names, name)
		}
	}
	if missing > maxLookups {
		if names, err = r.unlabelled(ctx, w, listed); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// unlabelled returns the same names from a list of all pods of the namespace.
func (r *reader) unlabelled(ctx context.Context, w *world, listed map[string]bool) (names []string, err error) {
	recorded := podsOf(&w.set.Status)
	list := metadataListOf("Pod")
	for {
		options := []client.ListOption{client.InNamespace(w.set.Namespace), client.Limit(500), client.Continue(list.Continue)}
		if err := r.Live.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if listed[name] {
				continue
			}
			if w.shouldExist(name) || slices.Contains(recorded, name) {
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
func (w *world) shouldExist(name string) bool {
	n, ok := ordinalOf(w.set, name)
	return ok && n < int(*w.set.Spec.Replicas)
}

// disown removes pods from the members that have a controller other than the StatefulSet, and are
// younger than it, so that no former StatefulSet of the same name created them.
func disown(w *world) {
	if w.stateful == nil || !w.ours(w.stateful) {
		return
	}
	w.members = slices.DeleteFunc(w.members, func(m *member) bool {
		isHeld := w.isStored(m) || (m.terminating() && m.protected())
		if isHeld || !isMadeByAnother(w.stateful, m.pod) {
			return false
		}
		noteForeign(w, m.pod)
		return true
	})
}

// isMadeByAnother reports whether a pod has a controller that is neither this StatefulSet nor a former
// one of the same name.
func isMadeByAnother(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if metav1.GetControllerOf(pod) == nil || makes(set, pod) {
		return false
	}
	return !pod.CreationTimestamp.Before(&set.CreationTimestamp)
}

// noteForeign records a pod that has our labels and is not a member. A terminating pod is soon no longer
// selected. Our finalizer makes no difference, because a user who can create pods can write it.
func noteForeign(w *world, pod *corev1.Pod) {
	has := func(label string) bool { return pod.Labels[label] != "" }
	if podstate.Terminating(pod) || !slices.ContainsFunc(ownPodLabels, has) {
		return
	}
	if len(w.foreignPods) < maxForeign {
		w.foreignPods = append(w.foreignPods, pod)
	}
}
