// Package snapshot reads an object of one of the kinds, and the objects that belong to it.
package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
)

// Snapshot is an object and the objects that belong to it, as read from the API server.
type Snapshot struct {
	Kind   kinds.Kind
	Object client.Object
	// Pods are the pods of the object, sorted by name; ordinals are sorted as numbers.
	Pods []corev1.Pod
	// Claims are the claims that pods use and those that are set aside, by name.
	Claims map[string]corev1.PersistentVolumeClaim
	// Nodes are the nodes of the pods, by name. A missing node does not exist or is forbidden to
	// read: see Unread.
	Nodes map[string]corev1.Node
	// Revisions are the revisions of a StatefulCluster, the oldest first.
	Revisions []appsv1.ControllerRevision
	// StatefulSets are the StatefulSets of an ExtendedStatefulSet or a ReplicatedStatefulSet.
	StatefulSets []appsv1.StatefulSet
	// Workloads are the owners of the pods of a StatefulSingleton.
	Workloads []Workload
	// Unread has a sentence for each resource that is forbidden to read.
	Unread []string
	// unread are the names of these resources.
	unread []string
}

// manyNodes is the number of nodes from which on they are read in one list.
const manyNodes = 20

// Get reads only the object.
func Get(ctx context.Context, c client.Reader, kind kinds.Kind, namespace, name string) (client.Object, error) {
	object := kind.New()
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	return object, nil
}

// Load reads the object and the objects that belong to it. Forbidden resources are skipped and
// reported in Unread.
func Load(ctx context.Context, c client.Reader, kind kinds.Kind, namespace, name string) (*Snapshot, error) {
	object, err := Get(ctx, c, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Kind: kind, Object: object, Nodes: map[string]corev1.Node{}, Claims: map[string]corev1.PersistentVolumeClaim{}}
	for _, step := range []struct {
		what string
		read func(context.Context, client.Reader) error
	}{
		{"pods", s.readPods},
		{"children of the object", s.readChildren},
		{"claims", s.readClaims},
		{"nodes", s.readNodes},
	} {
		err := step.read(ctx, c)
		if apierrors.IsForbidden(err) {
			s.unread = append(s.unread, step.what)
			s.Unread = append(s.Unread, fmt.Sprintf("you cannot read %s: %v", step.what, err))
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Node returns the Node of that name, or nil if it is unknown.
func (s *Snapshot) Node(name string) *corev1.Node {
	if node, ok := s.Nodes[name]; ok {
		return &node
	}
	return nil
}

// ownership returns a selector for pods that may belong to the object, and a predicate for those
// that do.
func (s *Snapshot) ownership() (labels.Selector, func(*corev1.Pod) bool, error) {
	owner := func(pod *corev1.Pod) *metav1.OwnerReference { return metav1.GetControllerOf(pod) }
	switch o := s.Object.(type) {
	case *stcv1alpha1.StatefulCluster:
		return labels.SelectorFromSet(labels.Set{stcv1alpha1.LabelCluster: o.Name}), func(pod *corev1.Pod) bool {
			ref := owner(pod)
			return ref != nil && ref.UID == o.UID
		}, nil
	case *rssv1alpha1.ReplicatedStatefulSet:
		return labels.SelectorFromSet(labels.Set{rssv1alpha1.LabelApp: o.Name, rssv1alpha1.LabelManaged: rssv1alpha1.True}), func(pod *corev1.Pod) bool {
			ref := owner(pod)
			return ref != nil && ref.Kind == "StatefulSet" && ref.Name == StatefulSetOf(o)
		}, nil
	case *estsv1alpha1.ExtendedStatefulSet:
		return labels.SelectorFromSet(labels.Set{estsv1alpha1.LabelSet: o.Name}), func(pod *corev1.Pod) bool {
			ref := owner(pod)
			return ref != nil && ref.Kind == "StatefulSet"
		}, nil
	case *ssnv1.StatefulSingleton:
		selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
		return selector, func(pod *corev1.Pod) bool { return !ended(pod) }, err
	}
	return labels.Nothing(), func(*corev1.Pod) bool { return false }, nil
}

// StatefulSetOf returns the name of the StatefulSet of a ReplicatedStatefulSet.
func StatefulSetOf(set *rssv1alpha1.ReplicatedStatefulSet) string { return "rss-" + set.Name }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (s *Snapshot) readPods(ctx context.Context, c client.Reader) error {
	selector, belongs, err := s.ownership()
	if err != nil {
		return fmt.Errorf("spec.selector cannot be read: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(s.Object.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return err
	}
	for i := range pods.Items {
		if belongs(&pods.Items[i]) {
			s.Pods = append(s.Pods, pods.Items[i])
		}
	}
	slices.SortFunc(s.Pods, func(a, b corev1.Pod) int { return compareNames(a.Name, b.Name) })
	return nil
}

// compareNames sorts names that end in a number by that number.
func compareNames(a, b string) int {
	stemA, numberA := splitNumber(a)
	stemB, numberB := splitNumber(b)
	if stemA != stemB || len(numberA) == len(numberB) {
		return strings.Compare(a, b)
	}
	return len(numberA) - len(numberB)
}

func splitNumber(name string) (stem, number string) {
	stem = strings.TrimRight(name, "0123456789")
	return stem, name[len(stem):]
}

func (s *Snapshot) readChildren(ctx context.Context, c client.Reader) error {
	in := client.InNamespace(s.Object.GetNamespace())
	switch s.Kind.Kind {
	case kinds.StatefulCluster.Kind:
		var revisions appsv1.ControllerRevisionList
		if err := c.List(ctx, &revisions, in, client.MatchingLabels{stcv1alpha1.LabelCluster: s.Object.GetName()}); err != nil {
			return err
		}
		s.Revisions = owned(s.Object, revisions.Items, func(r *appsv1.ControllerRevision) metav1.Object { return r })
		slices.SortFunc(s.Revisions, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	case kinds.ReplicatedStatefulSet.Kind, kinds.ExtendedStatefulSet.Kind:
		var sets appsv1.StatefulSetList
		if err := c.List(ctx, &sets, in); err != nil {
			return err
		}
		s.StatefulSets = owned(s.Object, sets.Items, func(set *appsv1.StatefulSet) metav1.Object { return set })
		slices.SortFunc(s.StatefulSets, func(a, b appsv1.StatefulSet) int { return compareNames(a.Name, b.Name) })
		s.dropStrangers()
	case kinds.StatefulSingleton.Kind:
		return s.readWorkloads(ctx, c)
	}
	return nil
}

// dropStrangers removes pods whose StatefulSet does not belong to the object.
func (s *Snapshot) dropStrangers() {
	s.Pods = slices.DeleteFunc(s.Pods, func(pod corev1.Pod) bool {
		ref := metav1.GetControllerOf(&pod)
		return !slices.ContainsFunc(s.StatefulSets, func(set appsv1.StatefulSet) bool { return set.UID == ref.UID })
	})
}

// owned returns the objects whose controller is the object.
func owned[T any](object client.Object, all []T, meta func(*T) metav1.Object) []T {
	return slices.DeleteFunc(all, func(one T) bool { return !metav1.IsControlledBy(meta(&one), object) })
}

func (s *Snapshot) readClaims(ctx context.Context, c client.Reader) error {
	var claims corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &claims, client.InNamespace(s.Object.GetNamespace())); err != nil {
		return err
	}
	used := map[string]bool{}
	for i := range s.Pods {
		for _, name := range ClaimsOf(&s.Pods[i]) {
			used[name] = true
		}
	}
	for _, claim := range claims.Items {
		if used[claim.Name] || s.setAside(&claim) {
			s.Claims[claim.Name] = claim
		}
	}
	return nil
}

// setAside reports whether the claim belonged to a member that was removed.
func (s *Snapshot) setAside(claim *corev1.PersistentVolumeClaim) bool {
	return s.Kind.Is(kinds.StatefulCluster) && claim.Labels[stcv1alpha1.LabelCluster] == s.Object.GetName() && claim.Labels[stcv1alpha1.LabelRetained] != ""
}

// ClaimsOf returns the names of the claims of a pod.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			names = append(names, pod.Name+"-"+volume.Name)
		}
	}
	return names
}

func (s *Snapshot) readNodes(ctx context.Context, c client.Reader) error {
	wanted := map[string]bool{}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName != "" {
			wanted[pod.Spec.NodeName] = true
		}
	}
	if len(wanted) >= manyNodes {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes); err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if wanted[node.Name] {
				s.Nodes[node.Name] = node
			}
		}
		return nil
	}
	for name := range wanted {
		var node corev1.Node
		err := c.Get(ctx, client.ObjectKey{Name: name}, &node)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.Nodes[name] = node
	}
	return nil
}

// Read reports whether "pods", "claims" or "nodes" could be read.
func (s *Snapshot) Read(what string) bool {
	return !slices.Contains(s.unread, what)
}
