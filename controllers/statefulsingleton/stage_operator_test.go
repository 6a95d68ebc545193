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
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/objects"
)

// operator is one process. No lease keeps several of them apart.
type operator struct {
	s     *stage
	name  string
	r     *Reconciler
	shown *objects.Objects              // what its caches show
	known map[objects.Key]client.Object // the same, as the API server has it
	woken bool                          // an event has put the key into the queue
	due   time.Time                     // when it looks again without one; zero is never
	stop  func()                        // ends the pass that is on the way
	next  func() (struct{}, bool)       // goes on with it; nil if there is none
	yield func(struct{}) bool           // pauses it
	lists [2]*objects.Objects           // what its two lists of pods show
	// objects is how often the pass has listed the objects.
	objects int
	rests   bool // the pass had nothing to write
	// idle is how often in a row it looked at pods of an object that is gone, and
	// found that they wait. It does so as long as they do.
	idle int
	// plans are those of the past that wrote something.
	plans []plan
	// asleep is a process that the machine gives no time, however long.
	asleep bool
	// dead is true of one that was killed in this pass.
	dead bool
	// told are the events of this process.
	told []string
}

// restart is a new process: what the old one knew is lost.
func (o *operator) restart() {
	if o.stop != nil {
		o.stop()
	}
	o.stop, o.next, o.yield, o.asleep, o.dead = nil, nil, nil, false, false
	o.r = &Reconciler{Cache: cached{o}, Live: live{o}, Runner: hand{o}, Events: teller{o}, Guard: &Guard{}, pods: &podWatch{}, Now: func() time.Time { return o.s.Now }}
	o.known, o.due, o.woken = nil, time.Time{}, false
	o.look()
}

// look shows the caches what there is now, and wakes the key for what changed,
// as the watches of Setup do.
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

// cutAsCached leaves out what the manager's cache does not hold.
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
		keys = o.r.concerned(ctx, obj)
		if was != nil && !labels.Equals(was.GetLabels(), obj.Labels) {
			keys = append(keys, o.r.concerned(ctx, was)...)
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
		if k.NamespacedName == key {
			return true
		}
	}
	return false
}

// react finishes a pass, and makes one if something wakes the key.
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

// finish ends the pass that is on the way; false if there is none.
func (o *operator) finish() bool {
	busy := o.next != nil
	for o.next != nil {
		o.step()
	}
	return busy
}

// step begins a pass, or goes on with it up to its next read or write.
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

// pause is where a process may be stopped for as long as you like. It is false
// for one that never goes on.
func (o *operator) pause() bool { return o.yield == nil || o.yield(struct{}{}) }

// pass is Reconcile.
func (o *operator) pass() {
	o.woken, o.due, o.rests, o.objects = false, time.Time{}, false, 0
	ctx, writes := context.Background(), o.s.Writes()
	w, err := o.r.observe(ctx, key)
	if err != nil {
		o.again(50 * time.Millisecond)
		return
	}
	f := derive(w)
	p := decide(f)
	if len(p.Steps) > 0 && w.object != nil {
		o.plans = append(o.plans, p)
	}
	outcomes := o.r.Runner.Run(ctx, key, p.Steps)
	if o.dead {
		o.restart()
		return
	}
	if w.object == nil {
		if o.idle++; len(outcomes) > 0 || len(f.waiting) == 0 {
			o.idle = 0
		}
	}
	result, err := o.r.report(ctx, key, f, &p, outcomes).Result()
	switch {
	case o.dead:
		o.restart()
	case err != nil:
		o.again(again)
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

// hand writes to the simulated cluster. One that was killed writes no more.
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
		s.Story = s.Story[:lines] // the status is told where it comes to rest
	}
	return outcomes
}

// teller keeps the events.
type teller struct{ o *operator }

func (t teller) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	t.o.told = append(t.o.told, reason+": "+fmt.Sprintf(note, args...))
}

// live reads the API server, and may be held up at each read.
type live struct{ o *operator }

func (l live) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, first := into.(*v1.StatefulSingleton); first {
		return l.begin(func() error { return l.o.s.Get(ctx, name, into, opts...) })
	}
	if !l.o.pause() {
		return simtest.ErrKilled
	}
	return l.o.s.Get(ctx, name, into, opts...)
}

// begin reads the object, with which a pass begins, and pauses. The lists of pods
// come after it: they are made at the same time, and each shows the pods at any
// moment from then on.
func (l live) begin(read func() error) error {
	o, shown := l.o, &l.o.s.Objects
	missing := read()
	o.objects++
	then := &objects.Objects{All: maps.Clone(shown.All)}
	if !o.pause() {
		return simtest.ErrKilled
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

// List pauses before each list but those of pods.
func (l live) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o, shown := l.o, &l.o.s.Objects
	switch into.(type) {
	case *corev1.PodList:
		shown = o.lists[0]
		if selector := (&client.ListOptions{}).ApplyOptions(opts).LabelSelector; selector != nil && strings.Contains(selector.String(), v1.LabelSingleton) {
			shown = o.lists[1]
		}
	case *v1.StatefulSingletonList:
		o.objects++ // of one that is gone
		if !o.pause() {
			return simtest.ErrKilled
		}
	default:
		if !o.pause() {
			return simtest.ErrKilled
		}
	}
	return shown.List(ctx, into, opts...)
}

// cached reads what the caches show.
type cached struct{ o *operator }

func (c cached) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.o.shown.Get(ctx, name, into, opts...)
}

func (c cached) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return c.o.shown.List(ctx, into, opts...)
}
