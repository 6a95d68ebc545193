// Package workloads simulates the StatefulSet controller, with the rules of Kubernetes 1.36.
package workloads

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Controller is the StatefulSet controller of a simulated cluster.
type Controller struct {
	*simulation.Cluster
	// Create creates a pod as the API server does, which may deny it. If it is nil, all pods are created.
	Create func(set *appsv1.StatefulSet, pod *corev1.Pod)
	// IsDenied reports whether a pod was denied before and would be denied again. If it is nil, no pod is.
	IsDenied func(set *appsv1.StatefulSet, pod *corev1.Pod) bool
	// Deletion returns the line of the story for the deletion of a pod. If it is nil, the line has the pod and the reason.
	Deletion func(set *appsv1.StatefulSet, pod *corev1.Pod) string
	// ObservesFirst gives a step no effect if the status has been updated to the spec since. The real controller changes
	// pods and then updates the status.
	ObservesFirst bool

	// learned are the revisions in the statuses of the StatefulSets with which the simulation began.
	learned map[types.UID]revision
	// templates are the templates in ControllerRevisions.
	templates map[*appsv1.ControllerRevision]*corev1.PodTemplateSpec
}

// New returns the StatefulSet controller of a cluster.
func New(c *simulation.Cluster) *Controller {
	s := &Controller{Cluster: c, learned: map[types.UID]revision{}, templates: map[*appsv1.ControllerRevision]*corev1.PodTemplateSpec{}}
	for _, obj := range c.All {
		set, isSet := obj.(*appsv1.StatefulSet)
		if isSet && set.Status.UpdateRevision != "" && set.Status.ObservedGeneration == set.Generation {
			s.learned[set.UID] = revision{set.Status.UpdateRevision, &set.Spec.Template}
		}
	}
	return s
}

// sync is a StatefulSet with all that belongs to it, and the steps that are possible.
type sync struct {
	*Controller
	set *appsv1.StatefulSet
	// pods are the pods of the StatefulSet by ordinal. They are not modified.
	pods map[int]*corev1.Pod
	// stored are the ControllerRevisions of the StatefulSet, the newest one last.
	stored []*appsv1.ControllerRevision
	moves  []simulation.Move
}

// Moves returns the next steps for a StatefulSet. A step has no effect if the spec of the StatefulSet or the pod of the
// step has changed since.
func (c *Controller) Moves(set *appsv1.StatefulSet) []simulation.Move {
	s := c.look(set)
	s.report()
	if set.DeletionTimestamp == nil && !s.fill() && !s.trim() {
		s.update()
	}
	return s.moves
}

// Wait returns the time until the next Ready pod of a StatefulSet has been Ready for minReadySeconds; 0 if there is none.
func (c *Controller) Wait(set *appsv1.StatefulSet) (soonest time.Duration) {
	if set.Spec.MinReadySeconds == 0 {
		return 0
	}
	for _, p := range c.look(set).pods {
		if _, wait := podstate.Available(p, minReady(set), c.Now); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return soonest
}

// look reads the pods and revisions of a StatefulSet. The first steps adopt and release pods.
func (c *Controller) look(set *appsv1.StatefulSet) *sync {
	s := &sync{Controller: c, set: set, pods: map[int]*corev1.Pod{}}
	var pods []*corev1.Pod
	for key, obj := range c.All {
		if key.Namespace != set.Namespace {
			continue
		}
		switch obj := obj.(type) {
		case *corev1.Pod:
			pods = append(pods, obj)
		case *appsv1.ControllerRevision:
			if metav1.IsControlledBy(obj, set) {
				s.stored = append(s.stored, obj)
			}
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.stored, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	s.claim(pods)
	return s
}

// step adds a step that has no effect if the spec of the StatefulSet has changed.
func (s *sync) step(key string, do func()) {
	s.moves = append(s.moves, simulation.Move{Key: key, Do: func() {
		now, exists := s.All[objects.KeyOf(s.set)].(*appsv1.StatefulSet)
		switch {
		case !exists, now.UID != s.set.UID, now.Generation != s.set.Generation:
		case s.ObservesFirst && now.Status.ObservedGeneration != s.set.Status.ObservedGeneration:
		default:
			do()
		}
	}})
}

// stepOf adds a step for a pod. It has no effect if the pod is gone.
func (s *sync) stepOf(key string, p *corev1.Pod, do func(now *corev1.Pod)) {
	s.step(key+p.Name, func() {
		if now, exists := s.All[objects.KeyOf(p)].(*corev1.Pod); exists && now.UID == p.UID {
			do(now)
		}
	})
}

// remove adds the step that deletes a pod.
func (s *sync) remove(p *corev1.Pod, why string) {
	s.stepOf("order", p, func(now *corev1.Pod) {
		if metav1.IsControlledBy(now, s.set) && !podstate.Terminating(now) {
			if s.Deletion != nil {
				s.Say("    %s", s.Deletion(s.set, now))
			} else {
				s.Say("    %s is deleted by its StatefulSet%s", now.Name, why)
			}
			s.own(now)
			s.Delete(now)
		}
	})
}

// fill adds the steps that create missing pods, delete ended ones, and change the owners of their claims. It reports
// whether the StatefulSet waits for a pod before it deletes others.
func (s *sync) fill() (waits bool) {
	count := int(replicas(s.set))
	for i := 0; i < count; i++ {
		ordinal := start(s.set) + i
		p := s.pods[ordinal]
		switch {
		case p == nil && !isOrdered(s.set) && s.awaitsEarlier(ordinal):
			// Other pods do not wait for the claims of this one.
		case p == nil && !s.isBlocked(ordinal):
			s.step("order"+nameOf(s.set, ordinal), func() { s.CreatePod(s.set, ordinal) })
		case p == nil:
			count, waits = min(count, endOfBatch(i)), true
		case podstate.Ended(p) && !podstate.Terminating(p):
			s.remove(p, "")
		default:
			s.claims(p)
		}
		if isOrdered(s.set) && !s.isAvailable(p) {
			return true
		}
	}
	return waits
}

// endOfBatch returns the end of the batch with the ith pod. Pods that are not ordered are created in batches of 1, 2, 4
// and so on, and a batch begins only if all pods of the one before were created.
func endOfBatch(i int) int { return 1<<bits.Len(uint(i)+1) - 1 }

// trim adds the steps that delete pods beyond the replicas. Ordered ones are deleted one by one, the last one first. It
// reports whether the StatefulSet waits for one.
func (s *sync) trim() (waits bool) {
	excess := slices.DeleteFunc(slices.Sorted(maps.Keys(s.pods)), func(ordinal int) bool { return isWanted(s.set, ordinal) })
	if len(excess) == 0 {
		return false
	}
	for _, ordinal := range excess {
		s.claims(s.pods[ordinal])
	}
	if isOrdered(s.set) {
		last := len(excess) - 1
		unavailable := slices.IndexFunc(excess, func(ordinal int) bool { return !s.isAvailable(s.pods[ordinal]) })
		p := s.pods[excess[last]]
		// An unavailable pod is deleted only if no lower one is unavailable.
		isBlocked := unavailable >= 0 && unavailable < last && !s.isAvailable(p)
		if !podstate.Terminating(p) && !isBlocked {
			s.remove(p, "")
		}
		return true
	}
	for _, ordinal := range excess {
		if !podstate.Terminating(s.pods[ordinal]) {
			s.remove(s.pods[ordinal], "")
		}
	}
	return false
}

// update adds the steps that delete pods of another revision, the last ones first.
func (s *sync) update() {
	if s.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	present, last := s.revision(), start(s.set)+int(replicas(s.set))-1
	left, waits := s.room()
	for ordinal := last; ordinal >= firstUpdated(s.set) && left > 0; ordinal-- {
		p := s.pods[ordinal]
		isOld := p != nil && !podstate.Terminating(p) && p.Labels[appsv1.ControllerRevisionHashLabelKey] != present
		switch {
		case isOld:
			s.remove(p, ", for its new template")
			left--
		case waits && !s.isAvailable(p):
			return
		}
	}
}

// room returns how many pods an update may delete now, and whether it waits for each updated pod. With maxUnavailable,
// all unavailable pods count. Without it, the last old pod is deleted even if it is unavailable.
func (s *sync) room() (left int, waits bool) {
	rolling := s.set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1, true
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(replicas(s.set)), false)
	if err != nil {
		return 0, false // the controller does nothing
	}
	left = max(1, most)
	for i := range int(replicas(s.set)) {
		if !s.isAvailable(s.pods[start(s.set)+i]) {
			left--
		}
	}
	return left, false
}

// isAvailable reports whether a pod exists, stays, and has been Ready for minReadySeconds.
func (s *sync) isAvailable(p *corev1.Pod) bool {
	if p == nil || podstate.Terminating(p) {
		return false
	}
	isAvailable, _ := podstate.Available(p, minReady(s.set), s.Now)
	return isAvailable
}

func minReady(set *appsv1.StatefulSet) time.Duration {
	return time.Duration(set.Spec.MinReadySeconds) * time.Second
}

func replicas(set *appsv1.StatefulSet) int32 { return ptr.Deref(set.Spec.Replicas, 1) }

// start returns the ordinal of the first pod of a StatefulSet.
func start(set *appsv1.StatefulSet) int {
	return int(ptr.Deref(set.Spec.Ordinals, appsv1.StatefulSetOrdinals{}).Start)
}

// firstUpdated returns the first ordinal whose pod gets the present template.
func firstUpdated(set *appsv1.StatefulSet) int {
	return start(set) + int(ptr.Deref(ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{}).Partition, 0))
}

// isWanted reports whether a StatefulSet keeps a pod of that ordinal.
func isWanted(set *appsv1.StatefulSet, ordinal int) bool {
	return ordinal >= start(set) && ordinal < start(set)+int(replicas(set))
}

// isOrdered reports whether a StatefulSet waits for each pod before it continues with the next one.
func isOrdered(set *appsv1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

func nameOf(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// ordinalOf returns the ordinal of a pod. It returns false if the pod does not have the name of a pod of the StatefulSet.
func ordinalOf(set *appsv1.StatefulSet, pod *corev1.Pod) (int, bool) {
	text, isMember := strings.CutPrefix(pod.Name, set.Name+"-")
	ordinal, err := strconv.Atoi(text)
	return ordinal, isMember && err == nil && ordinal >= 0 && strconv.Itoa(ordinal) == text
}
