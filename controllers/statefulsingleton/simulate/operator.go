package simulate

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/pass"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Operator is one operator process. There is no lease that keeps several of them apart.
type Operator struct {
	Name       string
	Reconciler *pass.Reconciler
	// Woken is true if a watch event has queued the key.
	Woken bool
	// Due is when the key is requeued without an event; zero is never.
	Due time.Time
	// Asleep is true while the machine gives the process no CPU time.
	Asleep bool
	// Rests is true if the last pass had nothing to write.
	Rests bool
	// Idle is how many times in a row the process found that pods of a deleted object wait.
	// It repeats this as long as they do.
	Idle int
	// Plans are the earlier plans that wrote something.
	Plans []action.Steps
	// Events are the events that this process emitted.
	Events []string
	// ObjectReads is the number of times that the pass has read the object, or listed the objects.
	ObjectReads int

	s     *Simulation
	shown *objects.Objects              // content of its caches
	known map[objects.Key]client.Object // the same objects, as in the API server
	stop  func()                        // ends the current pass
	next  func() (struct{}, bool)       // continues the current pass; nil if there is none
	yield func(struct{}) bool           // pauses the current pass
	lists [2]*objects.Objects           // content of its two lists of pods
	// missing is true if the pass has found no object, and acted if it has reached the writes of its plan.
	missing, acted bool
	// dead is true if the process was killed in this pass. It then reads and writes nothing more.
	dead bool
}

// Start starts an operator process.
func (s *Simulation) Start(name string) *Operator {
	o := &Operator{s: s, Name: name}
	o.Restart()
	return o
}

// Restart replaces the process with a new one, which has lost all memory.
func (o *Operator) Restart() {
	if o.stop != nil {
		o.stop()
	}
	o.stop, o.next, o.yield, o.Asleep, o.dead = nil, nil, nil, false, false
	guard := observe.NewGuard(nil, "", nil)
	guard.Note(o.s.unguarded)
	read := &observe.Reader{Cache: cached{o}, Live: Live{o}, Guard: guard, Now: func() time.Time { return o.s.Now }}
	o.Reconciler = pass.New(read, hand{o}, recorder{o})
	o.known, o.Due, o.Woken = nil, time.Time{}, false
	o.Look()
}

// Look updates the caches and queues the key for changes.
func (o *Operator) Look() {
	o.s.renew()
	cut := o.s.Cut
	if cut == nil {
		cut = uncut
	}
	before := o.known
	o.shown, o.known = o.s.Snapshot(cut), maps.Clone(o.s.All)
	for k, is := range o.known {
		if was := before[k]; was != is {
			o.Woken = o.Woken || o.wakes(was, is)
		}
	}
	for k, was := range before {
		if o.known[k] == nil {
			o.Woken = o.Woken || o.wakes(was, nil)
		}
	}
}

// uncut returns an object of a kind that the cache holds.
func uncut(obj client.Object) client.Object {
	switch obj.(type) {
	case *corev1.Node, *v1.StatefulSingleton:
		return obj
	}
	return nil
}

// wakes reports whether a change queues the key. A renewal of a Lease does not.
func (o *Operator) wakes(was, is client.Object) bool {
	if o.s.Wakes != nil {
		return o.s.Wakes(o, was, is)
	}
	before, isLease := was.(*coordinationv1.Lease)
	after, exists := is.(*coordinationv1.Lease)
	return !isLease || !exists || fencing.HolderOf(before) != fencing.HolderOf(after)
}

// Moves returns the steps that all others could take now.
func (o *Operator) Moves() (moves []func()) {
	for _, m := range o.s.Moves() {
		moves = append(moves, func() { o.s.try(m.Key) })
	}
	return moves
}

// Queued reports whether a pass is due.
func (o *Operator) Queued() bool {
	return o.Woken || (!o.Due.IsZero() && !o.Due.After(o.s.Now))
}

// Pass makes a whole pass if one is due.
func (o *Operator) Pass() simulation.Passed {
	if !o.Queued() {
		return simulation.Passed{Wait: o.wait()}
	}
	o.yield, o.s.Acting = nil, o
	writes := o.s.Writes()
	err := o.pass()
	o.restartIfDead()
	return simulation.Passed{Acted: o.s.Writes() != writes, Wait: o.wait(), Err: err}
}

// wait returns the time until the key is requeued, or a pod of a StatefulSet becomes available; 0 if neither happens.
func (o *Operator) wait() (wait time.Duration) {
	if !o.Due.IsZero() {
		wait = max(o.Due.Sub(o.s.Now), 1)
	}
	for _, set := range o.s.statefulSets() {
		wait = report.Sooner(wait, o.s.sets.Wait(set))
	}
	return wait
}

// Finish ends the current pass; false if there is none.
func (o *Operator) Finish() bool {
	busy := o.next != nil
	for o.next != nil {
		o.Step()
	}
	return busy
}

// Step begins a pass, or continues it up to its next read or write.
func (o *Operator) Step() {
	if o.next == nil {
		o.next, o.stop = iter.Pull(func(yield func(struct{}) bool) {
			o.yield = yield
			_ = o.pass() // the key is retried
		})
	}
	o.s.Acting = o
	if _, more := o.next(); !more {
		o.next, o.stop, o.yield = nil, nil, nil
		o.restartIfDead()
	}
}

// restartIfDead replaces a process that was killed in its pass.
func (o *Operator) restartIfDead() {
	if o.dead {
		o.Restart()
	}
}

// Pause stops the process for any length of time. It returns false if the process never
// continues.
func (o *Operator) Pause() bool {
	if !o.dead && o.yield != nil {
		o.dead = !o.yield(struct{}{})
	}
	return !o.dead
}

// pass makes a pass of the Reconciler.
func (o *Operator) pass() error {
	o.Woken, o.Due, o.Rests, o.ObjectReads, o.acted = false, time.Time{}, false, 0, false
	writes := o.s.Writes()
	result, err := o.Reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: o.s.Key})
	switch {
	case o.dead:
		return nil
	case err != nil && !o.acted:
		o.again(readAgain)
		return err
	}
	if o.missing {
		o.Idle++
		if o.s.Writes() != writes || result.RequeueAfter != spec.OrphanLook {
			o.Idle = 0
		}
	}
	if err != nil {
		o.again(spec.Again)
		return err
	}
	o.again(result.RequeueAfter)
	o.Rests = o.s.Writes() == writes
	return nil
}

// readAgain is the requeue delay after a failed read.
const readAgain = 50 * time.Millisecond

func (o *Operator) again(after time.Duration) {
	if after > 0 {
		o.Due = o.s.Now.Add(after)
	}
}

// hand writes to the simulated cluster. A killed operator writes nothing.
type hand struct{ o *Operator }

// Run executes the steps.
func (h hand) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	if h.o.dead {
		return nil
	}
	s := h.o.s
	if !h.o.acted && !h.o.missing && len(steps) > 0 {
		h.o.Plans = append(h.o.Plans, steps)
	}
	h.o.acted = true
	lines := len(s.Story)
	outcomes, alive := s.Apply(steps)
	h.o.dead = !alive
	s.HideStatus(lines, outcomes)
	return outcomes
}

// recorder records the events.
type recorder struct{ o *Operator }

// Eventf records an event.
func (r recorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.o.Events = append(r.o.Events, reason+": "+fmt.Sprintf(note, args...))
}
