package statefulsingleton

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// operator is one operator process. There is no lease that keeps several of them apart.
type operator struct {
	s     *stage
	name  string
	r     *Reconciler
	shown *objects.Objects              // content of its caches
	known map[objects.Key]client.Object // the same objects, as in the API server
	woken bool                          // a watch event has queued the key
	due   time.Time                     // when the key is requeued without an event; zero is never
	stop  func()                        // ends the current pass
	next  func() (struct{}, bool)       // continues the current pass; nil if there is none
	yield func(struct{}) bool           // pauses the current pass
	lists [2]*objects.Objects           // content of its two lists of pods
	// objects is the number of times that the pass has listed the objects.
	objects int
	rests   bool // the pass had nothing to write
	// idle is how many times in a row the process found that pods of a deleted object wait.
	// It repeats this as long as they do.
	idle int
	// plans are the earlier plans that wrote something.
	plans []rules.Plan
	// asleep is true while the machine gives the process no CPU time.
	asleep bool
	// dead is true if the process was killed in this pass.
	dead bool
	// told are the events that this process emitted.
	told []string
}

// restart replaces the process with a new one, which has lost all memory.
func (o *operator) restart() {
	if o.stop != nil {
		o.stop()
	}
	o.stop, o.next, o.yield, o.asleep, o.dead = nil, nil, nil, false, false
	read := &observe.Reader{Cache: cached{o}, Live: live{o}, Guard: &observe.Guard{}, Pods: &observe.PodWatch{}, Now: func() time.Time { return o.s.Now }}
	o.r = newReconciler(read, hand{o}, teller{o})
	o.known, o.due, o.woken = nil, time.Time{}, false
	o.look()
}

// look updates the caches and queues the key for changes, as the watches of Setup do.
func (o *operator) look() {
	before := o.known
	o.shown, o.known = o.s.Snapshot(cutAsCached), maps.Clone(o.s.All)
	for k, is := range o.known {
		if was := before[k]; was != is {
			o.woken = o.woken || o.wakes(was, is)
		}
	}
	for k, was := range before {
		if o.known[k] == nil {
			o.woken = o.woken || o.wakes(was, nil)
		}
	}
}

// cutAsCached returns an object as the manager's cache holds it; nil if the cache does not
// hold it.
func cutAsCached(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *corev1.Node, *v1.StatefulSingleton:
		for kind, by := range Cache() {
			if objects.KindOf(kind) == objects.KindOf(obj) {
				cut, err := by.Transform(o)
				if err != nil {
					panic(err)
				}
				return cut.(client.Object)
			}
		}
	}
	return nil
}

func (o *operator) wakes(was, is client.Object) bool {
	ctx := context.Background()
	both := []client.Object{is, was}
	if is == nil {
		both = both[1:]
	}
	var keys []reconcile.Request
	switch obj := both[0].(type) {
	case *corev1.Pod:
		keys = o.r.requestsForPod(ctx, obj)
		if was != nil && !labels.Equals(was.GetLabels(), obj.Labels) {
			keys = append(keys, o.r.requestsForPod(ctx, was)...)
		}
	case *corev1.Node:
		if was == nil || is == nil || enqueue.NodeTurned.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
			keys = o.r.onNode(ctx, obj)
		}
	case *v1.StatefulSingleton:
		return true
	case *corev1.ConfigMap, *policyv1.PodDisruptionBudget:
		return true
	}
	for _, k := range keys {
		if k.NamespacedName == fixture.Key {
			return true
		}
	}
	return false
}

// react finishes the current pass, and makes another one if something queues the key.
func (o *operator) react() bool {
	busy := o.finish()
	o.asleep = false
	o.look()
	if !o.woken && (o.due.IsZero() || o.due.After(o.s.Now)) {
		return busy
	}
	o.yield = nil
	o.s.acting = o
	o.pass()
	return true
}

// finish ends the current pass; false if there is none.
func (o *operator) finish() bool {
	busy := o.next != nil
	for o.next != nil {
		o.step()
	}
	return busy
}

// step begins a pass, or continues it up to its next read or write.
func (o *operator) step() {
	if o.next == nil {
		o.next, o.stop = iter.Pull(func(yield func(struct{}) bool) {
			o.yield = yield
			o.pass()
		})
	}
	o.s.acting = o
	if _, more := o.next(); !more {
		o.next, o.stop, o.yield = nil, nil, nil
	}
}

// pause stops the process for any length of time. It returns false if the process never
// continues.
func (o *operator) pause() bool { return o.yield == nil || o.yield(struct{}{}) }

// pass makes the pass of Reconcile.
func (o *operator) pass() {
	o.woken, o.due, o.rests, o.objects = false, time.Time{}, false, 0
	ctx, writes := context.Background(), o.s.Writes()
	w, err := o.r.reader.Observe(ctx, fixture.Key)
	if err != nil {
		o.again(50 * time.Millisecond)
		return
	}
	f := facts.Derive(w)
	p := rules.Decide(f)
	if len(p.Steps) > 0 && w.Object != nil {
		o.plans = append(o.plans, p)
	}
	outcomes := o.r.runner.Run(ctx, fixture.Key, p.Steps)
	if o.dead {
		o.restart()
		return
	}
	if w.Object == nil {
		if o.idle++; len(outcomes) > 0 || len(f.Waiting) == 0 {
			o.idle = 0
		}
	}
	result, err := o.r.reporter.Report(ctx, fixture.Key, f, &p, outcomes).Result()
	switch {
	case o.dead:
		o.restart()
	case err != nil:
		o.again(spec.Again)
	default:
		o.again(result.RequeueAfter)
		o.rests = o.s.Writes() == writes
	}
}

func (o *operator) again(after time.Duration) {
	if after > 0 {
		o.due = o.s.Now.Add(after)
	}
}

// hand writes to the simulated cluster. A killed operator writes nothing.
type hand struct{ o *operator }

func (h hand) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	if h.o.dead {
		return nil
	}
	s := h.o.s
	lines := len(s.Story)
	outcomes, alive := s.Apply(steps)
	h.o.dead = !alive
	if len(outcomes) == 1 && outcomes[0].Reason == "Observed" && outcomes[0].Err == nil && len(s.Story) == lines+1 {
		s.Story = s.Story[:lines] // the story contains the status only at rest
	}
	return outcomes
}

// teller records the events.
type teller struct{ o *operator }

func (t teller) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	t.o.told = append(t.o.told, reason+": "+fmt.Sprintf(note, args...))
}

// live reads the API server, and may pause at each read.
type live struct{ o *operator }

func (l live) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, first := into.(*v1.StatefulSingleton); first {
		return l.begin(func() error { return l.o.s.Get(ctx, name, into, opts...) })
	}
	if !l.o.pause() {
		return simulation.ErrKilled
	}
	return l.o.s.Get(ctx, name, into, opts...)
}

// begin reads the object, which is the first read of a pass, and pauses. The two lists of
// pods are read after it and concurrently. Each of them shows the pods at any later moment.
func (l live) begin(read func() error) error {
	o, shown := l.o, &l.o.s.Objects
	missing := read()
	o.objects++
	then := &objects.Objects{All: maps.Clone(shown.All)}
	if !o.pause() {
		return simulation.ErrKilled
	}
	now := &objects.Objects{All: maps.Clone(shown.All)}
	o.lists = [2]*objects.Objects{now, now}
	for i := range o.lists {
		if o.s.chance != nil && o.s.chance.Intn(2) == 0 {
			o.lists[i] = then
		}
	}
	return missing
}

// List pauses before each list, except for lists of pods.
func (l live) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o, shown := l.o, &l.o.s.Objects
	switch into.(type) {
	case *corev1.PodList:
		shown = o.lists[0]
		if selector := (&client.ListOptions{}).ApplyOptions(opts).LabelSelector; selector != nil && strings.Contains(selector.String(), v1.LabelSingleton) {
			shown = o.lists[1]
		}
	case *v1.StatefulSingletonList:
		o.objects++ // for a deleted object
		if !o.pause() {
			return simulation.ErrKilled
		}
	default:
		if !o.pause() {
			return simulation.ErrKilled
		}
	}
	return shown.List(ctx, into, opts...)
}

// cached reads the content of the caches.
type cached struct{ o *operator }

func (c cached) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.o.shown.Get(ctx, name, into, opts...)
}

func (c cached) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return c.o.shown.List(ctx, into, opts...)
}
