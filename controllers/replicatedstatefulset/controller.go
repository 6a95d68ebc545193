package replicatedstatefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
)

var _ = fmt.Sprint

// Board tells what runs in a pod and what came of commands; podexec.Board does.
type Board interface {
	Of(owner types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result)
	Keep(owner types.NamespacedName, pods ...types.UID)
}

// Reconciler keeps ReplicatedStatefulSets running.
type Reconciler struct {
	// Cache reads what the watches of this kind brought, Nodes those of Nodes and
	// of the objects themselves; Live reads the API server.
	Cache, Nodes, Live client.Reader
	// Runner is the only writer.
	Runner *action.Runner
	// Tracker knows which writes the cache has not shown yet.
	Tracker *consistency.Tracker
	Board   Board
	Events  events.EventRecorder
	// Now is the clock.
	Now func() time.Time

	memory memory
}

// memory holds what no object says. All of it may be lost: a restart counts the
// absence of Nodes anew, and asks all members again.
type memory struct {
	mu    sync.Mutex
	nodes map[string]time.Time // since when a Node is not there
	sets  map[types.NamespacedName]*remembered
}

type remembered struct {
	uid             types.UID
	rules, versions string // a hash of ConfigMaps, and of which
	grants          []v1alpha1.Grant
	lossAt          time.Time
	pods            map[types.UID]*seen
	refused         string // the last write that the API server refused
	failed          int    // how often in a row
}

// seen is what this process remembers of a pod.
type seen struct {
	container string
	ready     bool
	touched   time.Time
	said      map[string]podexec.Result
	counted   map[string]time.Time // the end of the last result that was counted
	tries     map[string]int
}

// of returns what is remembered of a set, anew for a new UID. One key is
// reconciled by one worker at a time, so only the map needs the lock.
func (m *memory) of(set *v1alpha1.ReplicatedStatefulSet) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(set)
	if m.sets == nil {
		m.sets = map[types.NamespacedName]*remembered{}
	}
	if m.sets[key] == nil || m.sets[key].uid != set.UID {
		m.sets[key] = &remembered{uid: set.UID, pods: map[types.UID]*seen{}}
	}
	return m.sets[key]
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, key)
}

// missingSince is when the Node of that name was first found missing.
func (m *memory) missingSince(name string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		m.nodes = map[string]time.Time{}
	}
	if m.nodes[name].IsZero() {
		m.nodes[name] = now
	}
	return m.nodes[name]
}

// found ends the absence of a Node.
func (m *memory) found(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nodes, name)
}

// recall puts what is remembered into a world, and remembers what is new in it.
func (m *memory) recall(w *world) {
	known := m.of(w.set)
	w.refused = known.refused
	lost := slices.ContainsFunc(known.grants, func(g v1alpha1.Grant) bool {
		return !slices.ContainsFunc(w.set.Status.Grants, func(o v1alpha1.Grant) bool { return o.UID == g.UID && o.ContainerID == g.ContainerID })
	})
	if known.lossAt.IsZero() || lost {
		known.lossAt = w.now
	}
	known.grants, w.lossAt = w.set.Status.Grants, known.lossAt
	before := known.pods
	known.pods = map[types.UID]*seen{}
	for _, member := range w.members {
		s := before[member.pod.UID]
		if s == nil {
			s = &seen{touched: w.now, said: map[string]podexec.Result{}, counted: map[string]time.Time{}, tries: map[string]int{}}
		}
		known.pods[member.pod.UID] = s
		s.look(member, w.now)
	}
}

// look remembers what is new in a pod.
func (s *seen) look(m *member, now time.Time) {
	if container, ready := m.running(), podstate.Ready(m.pod); container != s.container || ready != s.ready {
		s.container, s.ready, s.touched = container, ready, now
	}
	for name, r := range m.results {
		switch {
		case s.counted[name].Equal(r.Ended):
		case r.Outcome == podexec.Unknown:
			s.tries[name]++
		default:
			s.said[name], s.tries[name] = r, 0
		}
		s.counted[name] = r.Ended
	}
	m.touched, m.said, m.tries = s.touched, maps.Clone(s.said), maps.Clone(s.tries)
}

var (
	_ = appsv1.StatefulSet{}
	_ = corev1.Pod{}
	_ = policyv1.PodDisruptionBudget{}
	_ = apierrors.IsNotFound
	_ = metav1.Now
	_ = labels.Everything
	_ = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request]
	_ = ctrl.Result{}
	_ = builder.WithPredicates
	_ cache.ByObject
	_ controller.Options
	_ = controllerutil.AddFinalizer
	_ event.GenericEvent
	_ handler.EventHandler
	_ predicate.Funcs
	_ source.Source
	_ = enqueue.Settle
	_ = report.Done
	_ slim.Kept
	_ context.Context
)
