package simulate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/pass"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

const (
	// anyAgent is the image of the agent of a set without an agent on record. The image of the operator is not known.
	anyAgent = "agent"
	// answered is the requeue delay after a query that was answered at once.
	answered = time.Second
	// leaseChanges is the requeue delay while a Lease expires or a command waits for one. In a cluster, a change of the
	// Lease requeues the set.
	leaseChanges = 2 * time.Second
	// observed is the reason of the write of the status.
	observed = "Observed"
)

// passing is the state of a pass.
type passing struct {
	// live is true from the live read of the set to the writes.
	live bool
	// raced is true if the pass began with a Race.
	raced bool
	// acted is true after an action other than a query.
	acted bool
	// dead is true if the process was killed in this pass.
	dead bool
}

// Restart starts a new operator process without the memory of the old one.
func (s *Simulation) Restart() {
	s.DB.forget()
	s.Reader = &observe.Reader{Live: live{s}, Nodes: s.Cluster, Board: s.DB, Now: s.Tick, Book: observe.EvictionBook{Entries: s.Book},
		AgentImage: s.agentImage, ImageVolumes: &nodestate.ImageVolumes{Nodes: s.Cluster, Now: s.Tick}}
	if s.Config != nil {
		s.Reader.Config = s.Config()
	}
	s.reconciler = pass.New(s.Reader, writer{s}, &consistency.Tracker{}, nil)
	s.reconciler.DecidesLive = s.AnswersAtOnce
	s.Look()
}

// agentImage returns the agent on record, because the operator does not replace it without another reason.
func (s *Simulation) agentImage(context.Context) (string, error) {
	if set := s.stored(); set != nil && set.Status.Agent != nil {
		return cmp.Or(set.Status.Agent.Image, anyAgent), nil
	}
	return anyAgent, nil
}

// Look updates the operator's cache. If all passes decide on live objects, the cache is always up to date.
func (s *Simulation) Look() {
	s.shown, s.at = &s.Objects, s.Writes()
	if !s.reconciler.DecidesLive {
		s.shown = s.Snapshot(CutAsCached)
	}
	s.Reader.Cache = cached{s.shown, s.Config == nil}
	if config := s.Reader.Config; config != nil {
		config.Cache, config.Turns.Cache = s.shown, s.shown
	}
}

// CutAsCached returns an object as the cache holds it.
func CutAsCached(obj client.Object) client.Object {
	cut, err := observe.CutPod(obj)
	if err != nil {
		panic(err)
	}
	return cut.(client.Object)
}

// Pass runs one pass.
func (s *Simulation) Pass() simulation.Passed {
	s.KeepUp()
	isBehind := s.at < s.since && !s.Hasty
	if s.Net.Away || isBehind { // it cannot read the Leases, or its own writes are not in its cache yet
		return simulation.Passed{}
	}
	outer, this := s.now, &passing{raced: s.Race != nil}
	s.now = this
	defer func() { s.now = outer }()
	ctx := log.IntoContext(context.Background(), logr.Discard())
	result, err := s.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: s.Key})
	passed := simulation.Passed{Acted: this.acted, Wait: result.RequeueAfter, Err: err}
	if this.dead {
		s.Restart()
	}
	s.since = s.Writes()
	if set := s.stored(); s.Eager && set != nil {
		s.Reader.ForgetPatches(set)
	}
	if !s.AnswersAtOnce {
		return passed
	}
	if s.DB.answer() {
		passed.Wait, passed.Polls = report.Sooner(passed.Wait, answered), !s.waitsLong()
	}
	if s.IsExpiring() || s.DB.Waits() {
		passed.Wait = report.Sooner(passed.Wait, leaseChanges)
	}
	return passed
}

// waitsLong reports whether a member may have to be Ready for longer than the simulation of a polling operator lasts.
func (s *Simulation) waitsLong() bool {
	set := s.stored()
	return set != nil && time.Duration(set.Spec.MinReadySeconds)*time.Second >= simulation.MaxPolling
}

// writer applies steps to the cluster. A killed operator writes nothing.
type writer struct{ *Simulation }

// Run applies the steps. The story contains neither queries nor dry runs, and the status only at rest.
func (w writer) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	s, this := w.Simulation, w.now
	if this.dead {
		return nil
	}
	if this.live && s.Race != nil {
		s.Race()
	}
	this.live = false
	isRaced := this.raced && s.Race == nil
	rivals := s.Two || isRaced || s.Between != nil
	lines := len(s.Story)
	outcomes, alive := s.Apply(steps)
	this.dead = !alive
	if alive && reports(steps) {
		s.Story = s.Story[:lines]
	}
	s.quiet(lines)
	s.noteNotSent(steps, outcomes)
	for _, o := range outcomes {
		if errors.Is(o.Err, action.ErrNotBegun) && !rivals && s.Overlaps != nil {
			s.Overlaps(o.Action)
		}
	}
	if hasChanges(steps) {
		this.acted, s.ActedAt = true, s.Now
	}
	return outcomes
}

// reports reports whether the steps only write the status for users.
func reports(steps action.Steps) bool {
	return len(steps) == 1 && len(steps[0]) == 1 && len(steps[0][0]) == 1 && steps[0][0][0].Reason == observed
}

// hasChanges reports whether the steps do more than send queries.
func hasChanges(steps action.Steps) bool {
	for _, chain := range slices.Concat(steps...) {
		if slices.ContainsFunc(chain, func(a action.Action) bool { return a.Verb != action.Exec || !spec.Asks(a.Command.Name) }) {
			return true
		}
	}
	return false
}

// quiet removes queries and dry runs from the story.
func (s *Simulation) quiet(from int) {
	s.Story = append(s.Story[:from], slices.DeleteFunc(s.Story[from:], func(line string) bool {
		return strings.Contains(line, ": Ask, ") || strings.Contains(line, ": Trial, ")
	})...)
}

// noteNotSent stores the results of commands that were not sent because a write failed after the record was written, as
// a Runner does.
func (s *Simulation) noteNotSent(steps action.Steps, outcomes []action.Outcome) {
	for _, chain := range slices.Concat(steps...) {
		last, isStored := chain[len(chain)-1], false
		if last.Verb != action.Exec {
			continue
		}
		for _, a := range chain[:len(chain)-1] {
			i := slices.IndexFunc(outcomes, func(o action.Outcome) bool { return o.Verb == a.Verb && o.Object == a.Object })
			if isStored && i >= 0 && outcomes[i].Err != nil {
				s.DB.notSent(*last.Command, outcomes[i].Err.Error())
			}
			isStored = isStored || a.Verb == action.PatchStatus
		}
	}
}

// live reads from the API server.
type live struct{ s *Simulation }

// Get reads an object. A namespace that is not in the cluster exists.
func (l live) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, isSet := into.(*v1alpha1.ReplicatedStatefulSet); isSet {
		l.s.now.live = true
	}
	err := l.s.Get(ctx, key, into, opts...)
	if namespace, isNamespace := into.(*corev1.Namespace); isNamespace && apierrors.IsNotFound(err) {
		namespace.Name = key.Name
		return nil
	}
	return err
}

// List reads objects. It runs Between before it reads Leases.
func (l live) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	s := l.s
	if _, areLeases := into.(*coordinationv1.LeaseList); areLeases && s.now.live && s.Between != nil {
		act := s.Between
		s.Between = nil
		act()
		s.Between = act
	}
	return s.List(ctx, into, append(opts, client.UnsafeDisableDeepCopy)...) // decisions modify no object that they read
}

// cached reads from the cache.
type cached struct {
	*objects.Objects
	// hidesSecrets is true if Secrets are not in the cluster.
	hidesSecrets bool
}

// Get reads an object. The operator cannot see whether a hidden Secret exists.
func (c cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := c.Objects.Get(ctx, key, into, opts...)
	_, isMetadata := into.(*metav1.PartialObjectMetadata)
	if c.hidesSecrets && isMetadata && objects.KindOf(into) == configuration.KindSecret && apierrors.IsNotFound(err) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("the simulation has no Secrets"))
	}
	return err
}
