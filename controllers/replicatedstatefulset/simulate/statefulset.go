package simulate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// controllerMoves returns the possible next steps of the StatefulSet controller.
func (s *Simulation) controllerMoves(set *appsv1.StatefulSet) (moves []func()) {
	if set.Status.ObservedGeneration != set.Generation {
		moves = append(moves, func() {
			next := s.StatefulSet()
			next.Status.ObservedGeneration = next.Generation
			next.Status.UpdateRevision = s.revise(next)
			s.Put(next)
		})
	}
	have := map[string]*corev1.Pod{}
	for _, p := range s.Pods() {
		have[p.Name] = p
		if move := s.adoption(set, p); move != nil {
			moves = append(moves, move)
		}
		ordinal, _ := spec.OrdinalOf(named(s.Key), p.Name)
		if !podstate.Terminating(p) && (ordinal >= int(*set.Spec.Replicas) || podstate.Ended(p)) {
			moves = append(moves, func() {
				isExcess := ordinal >= int(*s.StatefulSet().Spec.Replicas)
				if isExcess || podstate.Ended(p) {
					s.Say("    %s is deleted by its StatefulSet", p.Name)
					s.condemn(set, p, isExcess)
					s.Delete(p)
				}
			})
		}
	}
	for i := range int(*set.Spec.Replicas) {
		name := spec.MemberName(named(s.Key), i)
		if have[name] == nil && set.DeletionTimestamp == nil {
			moves = append(moves, func() {
				if now := s.StatefulSet(); now == nil || i >= int(*now.Spec.Replicas) {
					return
				}
				s.Say("    %s is created", name)
				s.create(set, i)
			})
		}
	}
	return moves
}

// create creates a pod of a StatefulSet, and its claims before.
func (s *Simulation) create(set *appsv1.StatefulSet, ordinal int) {
	pod := children.BuildPod(set, ordinal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.revise(set)
	pod.Status.Phase = corev1.PodPending
	for i := range set.Spec.VolumeClaimTemplates {
		claim := set.Spec.VolumeClaimTemplates[i].DeepCopy()
		claim.Name, claim.Namespace = claim.Name+"-"+pod.Name, set.Namespace
		if s.All[objects.KeyOf(claim)] != nil {
			continue
		}
		// UIDs of claims are not those of the cluster, which number the pods.
		claim.UID = types.UID(fmt.Sprintf("%s-%d", claim.Name, s.Now.UnixNano()))
		claim.CreationTimestamp, claim.Generation = metav1.NewTime(s.Now.Truncate(time.Second)), 1
		claim.Labels = spec.Merged(claim.Labels, set.Spec.Selector.MatchLabels)
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: claim.Spec.Resources.Requests}
		s.Put(claim)
	}
	s.Put(pod)
}

// condemn makes the claims of an excess pod depend on it, if the StatefulSet deletes them.
func (s *Simulation) condemn(set *appsv1.StatefulSet, p *corev1.Pod, isExcess bool) {
	retention := set.Spec.PersistentVolumeClaimRetentionPolicy
	if !isExcess || retention == nil || retention.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return
	}
	for _, claim := range s.Claims(p) {
		next := objects.Clone(claim)
		next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: podKind, Name: p.Name, UID: p.UID}}
		s.Put(next)
	}
}

// hashLength is the number of hexadecimal digits of the hash in the name of a revision.
const hashLength = 13

// podKind is the kind of pods in owner references.
const podKind = "Pod"

// claimsOf returns the keys of the claims that a pod mounts.
func claimsOf(p *corev1.Pod) (keys []objects.Key) {
	for _, v := range p.Spec.Volumes {
		if claim := v.PersistentVolumeClaim; claim != nil {
			keys = append(keys, objects.Key{Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: claim.ClaimName})
		}
	}
	return keys
}

// revise returns the name of the revision of a StatefulSet's template. It stores the revision if there is none.
func (s *Simulation) revise(set *appsv1.StatefulSet) string {
	for _, obj := range s.All {
		r, isRevision := obj.(*appsv1.ControllerRevision)
		if !isRevision || r.Namespace != set.Namespace || !metav1.IsControlledBy(r, set) {
			continue
		}
		if template := observe.TemplateIn(r); template != nil && apiequality.Semantic.DeepEqual(*template, set.Spec.Template) {
			return r.Name
		}
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": set.Spec.Template}})
	if err != nil {
		panic(err) // a template that was decoded from JSON can be encoded
	}
	sum := sha256.Sum256(data)
	name := fmt.Sprintf("%s-%x", set.Name, sum)[:len(set.Name)+1+hashLength]
	s.Put(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, UID: types.UID(name), Labels: spec.Merged(set.Spec.Template.Labels), OwnerReferences: ownedBy(set)},
		Data:       runtime.RawExtension{Raw: data},
	})
	return name
}

// ownedBy returns the owner references of an object that a StatefulSet controls.
func ownedBy(set *appsv1.StatefulSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
}

// adoption returns the StatefulSet controller's reaction to changed labels: it releases or adopts a
// pod.
func (s *Simulation) adoption(set *appsv1.StatefulSet, p *corev1.Pod) func() {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		panic(err) // the API server has validated it
	}
	selected, owner := selector.Matches(labels.Set(p.Labels)), metav1.GetControllerOf(p)
	switch {
	case selected && owner == nil && !podstate.Terminating(p):
		return func() {
			s.Say("    %s is adopted by its StatefulSet", p.Name)
			s.Edit(p, func(p *corev1.Pod) { p.OwnerReferences = ownedBy(set) })
		}
	case !selected && owner != nil && owner.UID == set.UID:
		return func() {
			s.Say("    %s is released by its StatefulSet", p.Name)
			s.Edit(p, func(p *corev1.Pod) { p.OwnerReferences = nil })
		}
	}
	return nil
}

// garbage returns the garbage collector's steps: it deletes a StatefulSet whose owner is gone, pods whose StatefulSet
// is gone, and claims whose pod is gone.
func (s *Simulation) garbage() (moves []func()) {
	set := s.StatefulSet()
	if set != nil && isOrphan(set, s.Set()) {
		moves = append(moves, func() {
			if now := s.StatefulSet(); now != nil && now.UID == set.UID {
				s.Say("    %s is garbage-collected", set.Name)
				s.DeleteNow(now)
			}
		})
	}
	for _, p := range s.Pods() {
		if !podstate.Terminating(p) && s.isLeft(p, set) {
			moves = append(moves, func() {
				s.Say("    %s is garbage-collected", p.Name)
				s.Delete(p)
			})
		}
	}
	for _, claim := range s.leftClaims() {
		moves = append(moves, func() { s.Delete(claim) })
	}
	return moves
}

// isOrphan reports whether the owner of a StatefulSet is gone. owner is nil if there is no object of its name.
func isOrphan(set *appsv1.StatefulSet, owner *v1alpha1.ReplicatedStatefulSet) bool {
	if metav1.GetControllerOf(set) == nil {
		return false
	}
	return owner == nil || !metav1.IsControlledBy(set, owner)
}

// isLeft reports whether the StatefulSet of a pod is gone. set is nil if there is no StatefulSet of its name.
func (s *Simulation) isLeft(p *corev1.Pod, set *appsv1.StatefulSet) bool {
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "StatefulSet" || owner.Name != spec.StatefulSetName(named(s.Key)) {
		return false
	}
	return set == nil || set.UID != owner.UID
}

// leftClaims returns the claims that are deleted because their pod is gone, sorted by name.
func (s *Simulation) leftClaims() (left []*corev1.PersistentVolumeClaim) {
	for _, obj := range s.All {
		claim, isClaim := obj.(*corev1.PersistentVolumeClaim)
		if !isClaim || claim.DeletionTimestamp != nil || claim.Namespace != s.Key.Namespace {
			continue
		}
		if slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == podKind && s.podOf(o.UID) == nil }) {
			left = append(left, claim)
		}
	}
	slices.SortFunc(left, func(a, b *corev1.PersistentVolumeClaim) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	return left
}
