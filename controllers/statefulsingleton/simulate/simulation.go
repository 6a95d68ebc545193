// Package simulate simulates passes of a StatefulSingleton together with all others that act on its pods: the
// controllers of Deployments, ReplicaSets and StatefulSets, the scheduler, kubelets, gates and the webhook.
//
// Affinity, quotas and volumes are not simulated, and programs become Ready at once.
package simulate

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/workloads"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Simulation is a simulated cluster with one StatefulSingleton. It also has the programs that really run
// on its machines, regardless of the API.
type Simulation struct {
	*simulation.Cluster
	Hooks
	// Key is the key of the object.
	Key types.NamespacedName
	// Machines are the machines of the Nodes.
	Machines []*Machine
	// Bodies are the real states of the pods, including those that the API no longer has.
	Bodies map[types.UID]*Body
	// Around are the inputs of the webhook. The claims are read for each pod.
	Around children.Surroundings
	// Acting is the operator that acts now.
	Acting *Operator

	// foreign are the pods and their owners that existed at the start and do not belong to the object. They
	// do not change.
	foreign map[types.UID]bool
	// refused are the owners whose pods the webhook rejects.
	refused map[types.UID]refusal
	sets    *workloads.Controller
	// unguarded is the problem with the guard that the object reports.
	unguarded engine.Notice
	letter    int
	// reports is true if the scheduler reports pods that no Node accepts. Stories do not contain these reports.
	reports bool
}

// Hooks are changes that tests make. The zero value makes none.
type Hooks struct {
	// Lives is called when the program of a pod changes its state.
	Lives func(*Body)
	// Blind reports whether the webhook and the guard do not know the object yet.
	Blind func() bool
	// Stale reports whether a list shows the pods of the start of the pass.
	Stale func() bool
	// Wakes reports whether a change queues the key.
	Wakes func(o *Operator, was, is client.Object) bool
	// Cut returns an object as the manager's cache holds it; nil if the cache does not hold it.
	Cut func(client.Object) client.Object
}

// New returns a simulation in a cluster. Containers run that the statuses of pods show as running.
func New(c *simulation.Cluster, key types.NamespacedName) *Simulation {
	s := &Simulation{Cluster: c, Key: key, Bodies: map[types.UID]*Body{}, foreign: map[types.UID]bool{},
		refused: map[types.UID]refusal{}, sets: workloads.New(c)}
	s.sets.Create = s.createMember
	s.sets.Deletion = func(set *appsv1.StatefulSet, p *corev1.Pod) string { return set.Name + " deletes " + p.Name }
	s.sets.IsDenied = func(set *appsv1.StatefulSet, _ *corev1.Pod) bool { return s.isRefused(set) }
	s.findMachines()
	object := s.Object()
	if object == nil {
		return s
	}
	s.findForeign(object)
	if c := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionGuardMissing); c != nil && c.Status == metav1.ConditionTrue {
		message, _, _ := strings.Cut(c.Message, "; a pod that is created while")
		s.unguarded = engine.Notice{Reason: c.Reason, Message: message}
	}
	s.Around = aroundOf(s.Pods())
	for _, p := range s.Pods() {
		if podstate.Scheduled(p) {
			s.Bodies[p.UID] = bodyOf(p, object, s.holdsLease(p))
		}
	}
	return s
}

// findForeign finds the pods that do not belong to the object, and the owners without pods that do.
func (s *Simulation) findForeign(object *v1.StatefulSingleton) {
	owners := map[types.UID]bool{}
	for _, p := range Every[corev1.Pod](s.Cluster) {
		if !owns(object, p) {
			s.foreign[p.UID] = true
		} else if owner := metav1.GetControllerOf(p); owner != nil {
			owners[owner.UID] = true
		}
	}
	for _, set := range Every[appsv1.ReplicaSet](s.Cluster) {
		if owner := metav1.GetControllerOf(set); owner != nil && owners[set.UID] {
			owners[owner.UID] = true
		}
	}
	for _, obj := range s.All {
		switch obj.(type) {
		case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet:
			s.foreign[obj.GetUID()] = !owners[obj.GetUID()]
		}
	}
}

// owns reports whether a pod is a member of the object.
func owns(object *v1.StatefulSingleton, pod *corev1.Pod) bool {
	return pod.Namespace == object.Namespace && (pod.Labels[v1.LabelSingleton] == object.Name || spec.Selects(object, spec.LabelsOf(pod)))
}

// isForeign reports whether an object does not change, because the StatefulSingleton does not select the
// pods with these labels.
func (s *Simulation) isForeign(uid types.UID, labels map[string]string) bool {
	if !s.foreign[uid] {
		return false
	}
	object, exists := s.All[objects.Key{Kind: "StatefulSingleton", Namespace: s.Key.Namespace, Name: s.Key.Name}].(*v1.StatefulSingleton)
	return !exists || !spec.Selects(object, labels)
}

// Object returns the current object; nil if there is none.
func (s *Simulation) Object() *v1.StatefulSingleton {
	var object v1.StatefulSingleton
	if s.Get(context.Background(), s.Key, &object) != nil {
		return nil
	}
	return &object
}

// Pods returns the pods that may change.
func (s *Simulation) Pods() []*corev1.Pod {
	return slices.DeleteFunc(Every[corev1.Pod](s.Cluster), func(p *corev1.Pod) bool { return s.isForeign(p.UID, p.Labels) })
}

// PodOf returns a pod in the API; nil if it was removed.
func (s *Simulation) PodOf(uid types.UID) *corev1.Pod {
	for _, p := range s.Pods() {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

// pod returns the pod of that name; nil if there is none.
func (s *Simulation) pod(name string) *corev1.Pod {
	p, _ := s.All[objects.Key{Kind: "Pod", Namespace: s.Key.Namespace, Name: name}].(*corev1.Pod)
	return p
}

// UIDs returns the UIDs of the bodies, sorted.
func (s *Simulation) UIDs() (uids []types.UID) {
	for uid := range s.Bodies {
		uids = append(uids, uid)
	}
	slices.SortFunc(uids, func(a, b types.UID) int { return strings.Compare(string(a), string(b)) })
	return uids
}

// Move is a possible step of a client other than an operator.
type Move struct {
	Key string
	Do  func()
}

// Moves returns the steps that are possible now.
func (s *Simulation) Moves() []Move {
	return slices.Concat(s.OwnerMoves(), s.controlPlaneMoves(), s.KubeletMoves())
}

// try makes the move with that key, if it is still possible. A ReplicaSet creates or deletes all its pods at once.
func (s *Simulation) try(key string) {
	for range maxAtOnce {
		moves := s.Moves()
		i := slices.IndexFunc(moves, func(m Move) bool { return m.Key == key })
		if i < 0 {
			return
		}
		if moves[i].Do(); !strings.HasPrefix(key, replicateKey) {
			return
		}
	}
}

// maxAtOnce is the max number of pods that a ReplicaSet creates or deletes at once.
const maxAtOnce = 500

// letters returns a name for a number: a, b, ..., z, aa.
func letters(n int) string {
	if n > 26 {
		return letters((n-1)/26) + letters((n-1)%26+1)
	}
	return string(rune('a' + n - 1))
}

// freeName returns the first name of that form that no object of the kind has, and its number.
func (s *Simulation) freeName(kind string, from int, name func(int) string) (string, int) {
	for s.All[objects.Key{Kind: kind, Namespace: s.Key.Namespace, Name: name(from)}] != nil {
		from++
	}
	return name(from), from
}
