package simulate

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/pass"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/workloads"
)

// Simulation is a process of the operator in a simulated cluster, together with the controllers of Kubernetes.
type Simulation struct {
	*simulation.Cluster
	// Key is the key of the simulated object.
	Key types.NamespacedName
	// Reader is the reader of the present process of the operator.
	Reader *observe.Reader
	// JobEnd returns the condition with which a Job ends, or "" if it does not end. If it is nil, all Jobs complete.
	JobEnd func(*batchv1.Job) batchv1.JobConditionType

	reconciler *pass.Reconciler
	tracker    *consistency.Tracker
	sets       *workloads.Controller
	probes     *application
	// refusals are the reasons why pods were refused, by name.
	refusals map[string]string
	// killed is true from the end of the process until its restart.
	killed bool
	// acted is true if the present pass wrote something other than a probe without news.
	acted bool
}

// Start starts an operator for the object of that key.
func Start(c *simulation.Cluster, key types.NamespacedName) *Simulation {
	s := &Simulation{Cluster: c, Key: key, sets: workloads.New(c), refusals: map[string]string{}}
	s.sets.Create, s.sets.IsDenied, s.sets.ObservesFirst = s.create, s.isRefused, true
	s.probes = startApplication(s)
	c.Send = s.probes.send
	s.Restart()
	return s
}

// Restart replaces the process of the operator with a new one, which has no memory.
func (s *Simulation) Restart() {
	s.killed = false
	s.Reader = &observe.Reader{Live: s.Cluster, Board: s.probes, Now: func() time.Time { return s.Now }}
	s.tracker = &consistency.Tracker{}
	s.reconciler = pass.New(s.Reader, writer{s}, s.tracker, noEvents{})
	s.Look()
}

// Look updates the cache of the operator. The cache then contains all writes.
func (s *Simulation) Look() {
	s.Reader.Cache = s.Snapshot(asCached)
	s.tracker.Forget(s.Key)
}

// asCached returns an object as the cache of the operator holds it; nil if the cache does not hold it.
func asCached(obj client.Object) client.Object {
	cut := func(obj any) (any, error) { return obj, nil }
	switch obj.(type) {
	case *v1alpha1.ExtendedStatefulSet:
		return obj
	case *corev1.Service:
		return must(observe.CutService(obj))
	case *corev1.Pod:
		cut = observe.CutPod
	case *batchv1.Job:
		cut = observe.CutJob
	}
	if obj.GetLabels()[v1alpha1.LabelSet] == "" {
		return nil
	}
	return must(cut(obj))
}

func must(obj any, err error) client.Object {
	if err != nil {
		panic(err)
	}
	return obj.(client.Object)
}

// Pass runs one pass of the operator.
func (s *Simulation) Pass() simulation.Passed {
	s.acted = false
	result, err := s.reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: s.Key})
	if s.killed {
		s.Restart()
		return simulation.Passed{Acted: true}
	}
	wait := result.RequeueAfter
	for _, set := range s.statefulSets() {
		wait = report.Sooner(wait, s.sets.Wait(set))
	}
	return simulation.Passed{Acted: s.acted, Wait: wait, Err: err}
}

// Moves returns the next steps of the controllers of Kubernetes, the operator's pod webhook, the scheduler
// and the kubelets.
func (s *Simulation) Moves() (moves []func()) {
	s.probes.elect()
	for _, set := range s.statefulSets() {
		moves = append(moves, simulation.Steps(s.sets.Moves(set))...)
	}
	moves = append(moves, simulation.Steps(simulation.Collector{IsRead: s.isRead}.Moves(s.Cluster))...)
	moves = append(moves, s.jobMoves()...)
	return append(moves, kubelet.Moves(s.Cluster)...)
}

// writer writes to the simulated cluster. A killed process writes nothing.
type writer struct{ s *Simulation }

func (w writer) Run(_ context.Context, key types.NamespacedName, steps action.Steps) []action.Outcome {
	s := w.s
	if s.killed || len(steps) == 0 {
		return nil
	}
	lines := len(s.Story)
	outcomes, alive := s.Apply(steps)
	if s.killed = !alive; s.killed {
		return nil
	}
	for _, o := range outcomes {
		s.acted = s.acted || o.Verb != action.Exec
		switch {
		case o.Err != nil, o.Verb == action.Exec, o.Verb == action.Try, o.Answer.GetResourceVersion() == "": // nothing was written
		case o.Verb == action.Delete:
			s.tracker.Deleted(key, o.Answer)
		default:
			s.tracker.Wrote(key, o.Answer)
		}
	}
	if isObserved(steps) {
		s.Story = s.Story[:lines] // the story contains the observed state only at rest
	}
	return outcomes
}

// isObserved reports whether steps write only the observed state into the status, and no record.
func isObserved(steps action.Steps) bool {
	all := slices.Concat(slices.Concat(steps...)...)
	return len(all) == 1 && all[0].Verb == action.PatchStatus && all[0].Rebase
}

// noEvents drops events.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
