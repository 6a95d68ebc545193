package replicatedstatefulset

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// machines returns the possible next steps of the StatefulSet controller, scheduler and kubelets.
func (s *stage) machines() (moves []func()) {
	if set := s.statefulSet(); set != nil {
		moves = append(moves, s.controllerMoves(set)...)
	}
	moves = append(moves, s.garbage()...)
	for _, p := range s.pods() {
		if move := s.kubeletMove(p); move != nil {
			moves = append(moves, move)
		}
	}
	for _, g := range s.db.ghosts { // force-deleted pods
		if s.up(g.node) {
			moves = append(moves, func() {
				s.Say("    %s of a deleted pod ends", g.id)
				s.db.kill(g)
			})
		}
	}
	for _, name := range sortedKeys(s.db.containers) {
		c := s.db.containers[name]
		if s.up(c.node) && s.podOf(c.uid) == nil {
			moves = append(moves, func() {
				s.Say("    %s of a deleted pod ends", c.id)
				s.db.kill(c)
			})
		}
	}
	return moves
}

// anySet has the name of all sets in these tests.
var anySet = fixture.SetOf(1, 1)

func (s *stage) podOf(uid types.UID) *corev1.Pod {
	for _, p := range s.pods() {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

func (s *stage) controllerMoves(set *appsv1.StatefulSet) (moves []func()) {
	if set.Status.ObservedGeneration != set.Generation {
		moves = append(moves, func() {
			next := objects.Clone(s.statefulSet())
			next.Status.ObservedGeneration = next.Generation
			next.Status.UpdateRevision = s.revise(next)
			s.Put(next)
		})
	}
	have := map[string]*corev1.Pod{}
	for _, p := range s.pods() {
		have[p.Name] = p
		if move := s.adoption(set, p); move != nil {
			moves = append(moves, move)
		}
		ordinal, _ := spec.OrdinalOf(anySet, p.Name)
		if !podstate.Terminating(p) && (ordinal >= int(*set.Spec.Replicas) || podstate.Ended(p)) {
			moves = append(moves, func() {
				if ordinal >= int(*s.statefulSet().Spec.Replicas) || podstate.Ended(p) {
					s.Say("    %s is deleted by its StatefulSet", p.Name)
					s.Delete(p)
				}
			})
		}
	}
	for i := range int(*set.Spec.Replicas) {
		name := spec.MemberName(anySet, i)
		if have[name] == nil && set.DeletionTimestamp == nil {
			moves = append(moves, func() {
				if now := s.statefulSet(); now == nil || i >= int(*now.Spec.Replicas) {
					return
				}
				s.Say("    %s is created", name)
				pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
				pod.Name, pod.Namespace = name, set.Namespace
				pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.revise(set)
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
				pod.Status.Phase = corev1.PodPending
				s.Put(pod)
			})
		}
	}
	return moves
}

// revise stores the template of a StatefulSet as a revision, and returns its name.
func (s *stage) revise(set *appsv1.StatefulSet) string {
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": set.Spec.Template}})
	if err != nil {
		s.t.Fatal(err)
	}
	name := fmt.Sprintf("%s-%x", set.Name, sha256.Sum256(data))[:20]
	owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	s.Put(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       runtime.RawExtension{Raw: data},
	})
	return name
}

// adoption returns the StatefulSet controller's reaction to changed labels: it releases or adopts a
// pod.
func (s *stage) adoption(set *appsv1.StatefulSet, p *corev1.Pod) func() {
	selected, owner := p.Labels[v1alpha1.LabelApp] == set.Name[len("rss-"):] && p.Labels[v1alpha1.LabelManaged] == v1alpha1.True, metav1.GetControllerOf(p)
	switch {
	case selected && owner == nil && !podstate.Terminating(p):
		return func() {
			s.Say("    %s is adopted by its StatefulSet", p.Name)
			s.edit(p, func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
			})
		}
	case !selected && owner != nil && owner.UID == set.UID:
		return func() {
			s.Say("    %s is released by its StatefulSet", p.Name)
			s.edit(p, func(p *corev1.Pod) { p.OwnerReferences = nil })
		}
	}
	return nil
}

// garbage returns the garbage collector's steps: it deletes a StatefulSet whose owner is gone, and
// pods whose StatefulSet is gone.
func (s *stage) garbage() (moves []func()) {
	set := s.statefulSet()
	if owner := s.set(); set != nil && metav1.GetControllerOf(set) != nil && (owner == nil || !metav1.IsControlledBy(set, owner)) {
		moves = append(moves, func() {
			if now := s.statefulSet(); now != nil && now.UID == set.UID {
				s.Say("    %s is garbage-collected", set.Name)
				s.DeleteNow(now)
			}
		})
	}
	for _, p := range s.pods() {
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "StatefulSet" && (set == nil || set.UID != owner.UID) && !podstate.Terminating(p) {
			moves = append(moves, func() {
				s.Say("    %s is garbage-collected", p.Name)
				s.Delete(p)
			})
		}
	}
	return moves
}

func (s *stage) edit(p *corev1.Pod, change func(*corev1.Pod)) {
	if now := s.podOf(p.UID); now != nil {
		next := objects.Clone(now)
		change(next)
		s.Put(next)
	}
}

// kubeletMove returns the next step of a pod: first the change on its node, then, as another step,
// its report in the API.
func (s *stage) kubeletMove(p *corev1.Pod) func() {
	c := s.db.of(p)
	switch {
	case !podstate.Scheduled(p):
		if podstate.Terminating(p) {
			return nil
		}
		ordinal, _ := spec.OrdinalOf(anySet, p.Name)
		node := fmt.Sprintf("n%d", ordinal%s.nodes+1)
		if s.moved[node] != "" {
			node = s.moved[node]
		}
		if s.cordoned(node) {
			node = "n4"
		}
		if !s.up(node) || s.cordoned(node) {
			return nil
		}
		return func() { s.edit(p, func(p *corev1.Pod) { p.Spec.NodeName = node }) }
	case !s.up(p.Spec.NodeName):
		return nil
	case podstate.Terminating(p) && c != nil:
		if s.Now.Before(podstate.DeletedAt(p).Add(hookOf(p))) {
			return nil
		}
		return func() {
			s.Say("    %s ends", c.id)
			s.db.kill(c)
		}
	case podstate.Terminating(p) && !podstate.Ended(p):
		return func() {
			s.edit(p, func(p *corev1.Pod) { ended(s, p) })
		}
	case podstate.Terminating(p):
		if *p.DeletionGracePeriodSeconds == 0 {
			return nil // it waits for a finalizer
		}
		return func() {
			s.Say("    %s is removed by its kubelet", p.Name)
			s.DeleteNow(p)
		}
	case podstate.Ended(p):
		return nil
	case c == nil && s.showsRunning(p): // it crashed
		return func() { s.edit(p, func(p *corev1.Pod) { crashed(s, p) }) }
	case c == nil:
		return func() {
			if s.podOf(p.UID) != nil && s.db.of(p) == nil {
				s.db.start(p)
			}
		}
	case !shows(p, c), !podstate.Ready(p): // its node may have been reported as missing
		return func() { s.edit(p, func(p *corev1.Pod) { runs(s, p, c) }) }
	case p.Status.ObservedGeneration != p.Generation, s.hasRoom(p) && !isSized(p):
		return func() { s.edit(p, s.sizes) }
	}
	return nil
}

func isSized(p *corev1.Pod) bool {
	has := p.Status.ContainerStatuses[0].Resources
	return has != nil && apiequality.Semantic.DeepEqual(*has, p.Spec.Containers[0].Resources)
}

// hasRoom reports whether the node of a pod has the cpu that the pod requests.
func (s *stage) hasRoom(p *corev1.Pod) bool {
	asked := p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	return s.room == 0 || asked.Value() <= s.room
}

// maxRoom is the cpu of an empty node.
const maxRoom = 8

// sizes resizes a changed pod as a kubelet does.
func (s *stage) sizes(p *corev1.Pod) {
	p.Status.ObservedGeneration = p.Generation
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	asked := p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	switch {
	case isSized(p):
		return
	case s.hasRoom(p):
		s.Say("    %s has %s cpu, as its kubelet reports", p.Name, asked.String())
		p.Status.ContainerStatuses[0].Resources = p.Spec.Containers[0].Resources.DeepCopy()
		return
	}
	reason := corev1.PodReasonDeferred
	if asked.Value() > maxRoom {
		reason = corev1.PodReasonInfeasible
	}
	s.Say("    %s cannot have %s cpu: %s", p.Name, asked.String(), reason)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason})
}

// hookOf returns how long the preStop hook of a pod sleeps, if the pod has a grace period.
func hookOf(p *corev1.Pod) time.Duration {
	hook := p.Spec.Containers[0].Lifecycle
	if hook == nil || *p.DeletionGracePeriodSeconds == 0 {
		return 0
	}
	return time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
}

func (s *stage) showsRunning(p *corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
}

func shows(p *corev1.Pod, c *fakeContainer) bool {
	return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].ContainerID == c.id && p.Status.ContainerStatuses[0].State.Running != nil
}

func runs(s *stage, p *corev1.Pod, c *fakeContainer) {
	s.Say("    %s runs", c.id)
	p.Status.ObservedGeneration = p.Generation
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, ContainerID: c.id, RestartCount: int32(c.number), Resources: p.Spec.Containers[0].Resources.DeepCopy(),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}}}}
}

func crashed(s *stage, p *corev1.Pod) {
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		s.Say("    %s has ended, as its kubelet reports", c.ContainerID)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: c.ContainerID, ExitCode: 137}}
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

func ended(s *stage, p *corev1.Pod) {
	crashed(s, p)
	p.Status.Phase = corev1.PodFailed
	if len(p.Status.ContainerStatuses) == 0 {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"})
}
