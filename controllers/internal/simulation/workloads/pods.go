package workloads

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// kind is the kind of StatefulSets.
var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// claim finds the pods of the StatefulSet. It adds the steps that adopt pods without a controller that the StatefulSet
// selects, and release pods that it no longer selects. Pods that will be adopted already count.
func (s *sync) claim(pods []*corev1.Pod) {
	selector := selectorOf(s.set)
	for _, p := range pods {
		ordinal, isMember := ordinalOf(s.set, p)
		isSelected := isMember && selector.Matches(labels.Set(p.Labels))
		isOurs := metav1.IsControlledBy(p, s.set)
		switch {
		case isOurs && isSelected:
			s.pods[ordinal] = p
		case isOurs:
			s.release(p)
		case isSelected && s.mayAdopt(p):
			s.pods[ordinal] = p
			s.adopt(p)
		}
	}
}

// selectorOf returns the selector of a StatefulSet. Only in tests, StatefulSets have no selector and select all pods.
func selectorOf(set *appsv1.StatefulSet) labels.Selector {
	if set.Spec.Selector == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil { // the API server validates it
		return labels.Nothing()
	}
	return selector
}

// mayAdopt reports whether a pod has no controller and stays, as the StatefulSet does.
func (s *sync) mayAdopt(p *corev1.Pod) bool {
	isFree := metav1.GetControllerOfNoCopy(p) == nil && !podstate.Terminating(p)
	return isFree && s.set.DeletionTimestamp == nil
}

// adopt adds the step that makes the StatefulSet the controller of a pod.
func (s *sync) adopt(p *corev1.Pod) {
	s.stepOf("adopt", p, func(now *corev1.Pod) {
		if metav1.GetControllerOfNoCopy(now) == nil && !podstate.Terminating(now) {
			s.Say("    %s is adopted by its StatefulSet", p.Name)
			s.setOwners(now, append(slices.Clone(now.OwnerReferences), *metav1.NewControllerRef(s.set, kind)))
		}
	})
}

// release adds the step that ends the control of a pod, unless the StatefulSet is being deleted.
func (s *sync) release(p *corev1.Pod) {
	if s.set.DeletionTimestamp != nil {
		return
	}
	s.stepOf("release", p, func(now *corev1.Pod) {
		if metav1.IsControlledBy(now, s.set) {
			s.Say("    %s is released by its StatefulSet", p.Name)
			s.setOwners(now, withoutOwner(now.OwnerReferences, s.set))
		}
	})
}

func withoutOwner(owners []metav1.OwnerReference, owner metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() })
}

func (s *sync) setOwners(p *corev1.Pod, owners []metav1.OwnerReference) {
	next := objects.Clone(p)
	next.OwnerReferences = owners
	s.Put(next)
}

// isBlocked reports whether the pod of an ordinal cannot be created now: another pod has its name, a claim is going to
// be deleted, or the pod was denied.
func (s *sync) isBlocked(ordinal int) bool {
	pod := s.build(ordinal)
	isTaken := s.All[objects.KeyOf(pod)] != nil
	return isTaken || s.awaitsClaims(pod) || (s.IsDenied != nil && s.IsDenied(s.set, pod))
}

// CreatePod creates the pod of an ordinal and its claims, unless a pod of that name exists or a claim is going to be
// deleted.
func (c *Controller) CreatePod(set *appsv1.StatefulSet, ordinal int) {
	s := c.look(set)
	pod := s.build(ordinal)
	if c.All[objects.KeyOf(pod)] != nil || s.awaitsClaims(pod) {
		return
	}
	s.revise()
	s.createClaims(pod)
	if c.Create == nil {
		c.Say("    %s is created", pod.Name)
		c.Put(pod)
	} else {
		c.Create(set, pod)
	}
	if created, exists := c.All[objects.KeyOf(pod)].(*corev1.Pod); exists {
		s.own(created)
	}
}

// build returns the pod of an ordinal. Pods below the partition have the template of the current revision.
func (s *sync) build(ordinal int) *corev1.Pod {
	of := s.revisionFor(ordinal)
	template := of.template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	pod.Name, pod.Namespace = nameOf(s.set, ordinal), s.set.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.set, kind)}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, of.name)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.StatefulSetPodNameLabel, pod.Name)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.PodIndexLabel, strconv.Itoa(ordinal))
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, s.set.Spec.ServiceName
	for i := range s.set.Spec.VolumeClaimTemplates {
		name := s.set.Spec.VolumeClaimTemplates[i].Name
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod.Name}}})
	}
	return pod
}
