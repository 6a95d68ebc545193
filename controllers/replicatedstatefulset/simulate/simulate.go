// Package simulate simulates ReplicatedStatefulSets: the operator, the controllers of Kubernetes that act on the children,
// the scheduler, the kubelets, the application, and the agents that renew Leases.
package simulate

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/workloads"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/pass"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Kind simulates ReplicatedStatefulSets.
type Kind struct{}

// New returns an empty set.
func (Kind) New() client.Object { return &v1alpha1.ReplicatedStatefulSet{} }

// Reads returns the objects that the operator, the controllers and the agents read. It includes all ConfigMaps of the
// namespace, because spec.ruleSelector can select any of them, and all budgets, which can select its pods.
func (Kind) Reads(key types.NamespacedName) []simulation.Listing {
	inNamespace := client.InNamespace(key.Namespace)
	var listings []simulation.Listing
	of := func(labels client.MatchingLabels, lists ...client.ObjectList) {
		for _, list := range lists {
			listings = append(listings, simulation.Listing{List: list, Options: []client.ListOption{inNamespace, labels}})
		}
	}
	of(spec.OwnLabels(named(key)), &corev1.PodList{}, &appsv1.StatefulSetList{}, &appsv1.ControllerRevisionList{},
		&corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{})
	of(client.MatchingLabels{v1alpha1.LabelLease: key.Name}, &coordinationv1.LeaseList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{})
	return append(listings, simulation.Listing{List: &corev1.ConfigMapList{}, Options: []client.ListOption{inNamespace}},
		simulation.Listing{List: &policyv1.PodDisruptionBudgetList{}, Options: []client.ListOption{inNamespace}},
		simulation.Listing{List: &corev1.NodeList{}})
}

// Start starts an operator for a set. Members have the roles and the data that the status of the set reports.
func (Kind) Start(c *simulation.Cluster, key types.NamespacedName) simulation.Operator {
	s := New(c, key)
	s.AnswersAtOnce = true
	s.resume()
	s.Restart()
	return s
}

// Owns reports whether a pod is a member of the set.
func (Kind) Owns(object client.Object, pod *corev1.Pod) bool {
	set := named(client.ObjectKeyFromObject(object))
	if pod.Namespace != set.Namespace {
		return false
	}
	if pod.Labels[v1alpha1.LabelApp] != set.Name || pod.Labels[v1alpha1.LabelManaged] != v1alpha1.True { // spec.OwnLabels
		return false
	}
	_, isMember := spec.OrdinalOf(set, pod.Name)
	return isMember
}

// Role returns primary or secondary, or "" for any other member.
func (Kind) Role(_ client.Object, pod *corev1.Pod) string {
	switch role := pod.Labels[v1alpha1.LabelRole]; role {
	case v1alpha1.RolePrimary, v1alpha1.RoleSecondary:
		return role
	}
	return ""
}

// Simulation is an operator that reconciles one set, together with all others that act on its pods.
type Simulation struct {
	*simulation.Cluster
	// Key is the key of the set.
	Key types.NamespacedName
	// DB is the application.
	DB *Database
	// Net is the network of the agents.
	Net Network
	// Reader is that of the current operator process.
	Reader *observe.Reader

	// AnswersAtOnce ends queries in the pass that sends them.
	AnswersAtOnce bool
	// Place returns the node of a new pod, or "" if there is none. If it is nil, the least used node is taken.
	Place func(*corev1.Pod) string
	// Room is the max cpu of a resized pod; 0 means any.
	Room int64
	// Race, if set, runs between a live read and the writes that follow it.
	Race func()
	// Between, if set, runs between each live read of the object and the read of its Leases.
	Between func()
	// Two is true while another operator acts. It may not know a running command.
	Two bool
	// Hasty is an operator that does not wait until its cache shows its own writes.
	Hasty bool
	// Eager is an operator that patches a child again without a pause.
	Eager bool
	// Config returns what follows ConfigMaps and Secrets. If it is nil, they are not followed.
	Config func() *observe.ConfigReader
	// Book contains the entries of the webhooks.
	Book map[types.UID]facts.Entry
	// Overlaps, if set, is called for a command that is sent while another one is running in the member.
	Overlaps func(action.Action)
	// ActedAt is when something other than a query was last done.
	ActedAt time.Time

	reconciler *pass.Reconciler
	sets       *workloads.Controller
	// shown is the operator's cache, and at its version. since is the version that it must reach
	// before the next pass.
	shown     *objects.Objects
	at, since int
	now       *passing
	// homes are the nodes of claims.
	homes map[objects.Key]string
	// sized are the generations of pods that had the wanted resources when the simulation began.
	sized map[types.UID]int64
}

// New returns a simulation of a set without processes. Restart starts the operator.
func New(c *simulation.Cluster, key types.NamespacedName) *Simulation {
	s := &Simulation{Cluster: c, Key: key, sets: workloads.New(c), Net: Network{Cut: map[string]bool{}, begun: map[string]int{}}, now: &passing{},
		homes: map[objects.Key]string{}, sized: map[types.UID]int64{}}
	s.DB = newDatabase(s)
	c.Send = s.DB.Send
	return s
}

// named returns a set with only its key.
func named(key types.NamespacedName) *v1alpha1.ReplicatedStatefulSet {
	return &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// Set returns a copy of the stored set. It returns nil if there is none.
func (s *Simulation) Set() *v1alpha1.ReplicatedStatefulSet {
	var set v1alpha1.ReplicatedStatefulSet
	if s.Get(context.Background(), s.Key, &set) != nil {
		return nil
	}
	return &set
}

// stored returns the stored set, which must not be modified. It returns nil if there is none.
func (s *Simulation) stored() *v1alpha1.ReplicatedStatefulSet {
	set, _ := s.All[objects.Key{Kind: "ReplicatedStatefulSet", Namespace: s.Key.Namespace, Name: s.Key.Name}].(*v1alpha1.ReplicatedStatefulSet)
	return set
}

// StatefulSet returns a copy of the stored StatefulSet. It returns nil if there is none.
func (s *Simulation) StatefulSet() *appsv1.StatefulSet {
	var set appsv1.StatefulSet
	key := types.NamespacedName{Namespace: s.Key.Namespace, Name: spec.StatefulSetName(named(s.Key))}
	if s.Get(context.Background(), key, &set) != nil {
		return nil
	}
	return &set
}

// Pods returns the stored pods, sorted by name. They must not be modified.
func (s *Simulation) Pods() (pods []*corev1.Pod) {
	for key, obj := range s.All {
		if p, ok := obj.(*corev1.Pod); ok && key.Namespace == s.Key.Namespace {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func (s *Simulation) podOf(uid types.UID) *corev1.Pod {
	for key, obj := range s.All {
		if p, ok := obj.(*corev1.Pod); ok && p.UID == uid && key.Namespace == s.Key.Namespace {
			return p
		}
	}
	return nil
}

// Edit changes a pod, unless it was deleted.
func (s *Simulation) Edit(p *corev1.Pod, change func(*corev1.Pod)) {
	if now := s.podOf(p.UID); now != nil {
		next := objects.Clone(now)
		change(next)
		s.Put(next)
	}
}

// Tick advances the time a little and returns it, so that no two events are simultaneous.
func (s *Simulation) Tick() time.Time {
	s.Now = s.Now.Add(time.Millisecond)
	return s.Now
}

// Moves returns the possible next steps of all but the operator.
func (s *Simulation) Moves() []func() { return slices.Concat(s.Machines(), s.DB.Moves()) }
