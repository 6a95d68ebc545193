package leasewatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const label = "example.com/db"

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// leaseNamed returns a version of a Lease of the object db.
func leaseNamed(name, version, holder string) *coordinationv1.Lease {
	made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version,
		Labels: map[string]string{label: "db"}}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(10))}}
	if holder != "" {
		made.Spec.HolderIdentity = &holder
	}
	return made
}

func objectIn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// stage is a Watch with a clock, and the passes that it has triggered.
type stage struct {
	*Watch
	t      *testing.T
	now    time.Time
	passes []string
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, now: noon}
	s.Watch = New(func() time.Time { return s.now }, label, nil, func(object types.NamespacedName) { s.passes = append(s.passes, object.String()) })
	s.followed["ns"] = &following{}
	return s
}

// triggered checks which objects had passes since the last check.
func (s *stage) triggered(what string, want ...string) {
	s.t.Helper()
	if !slices.Equal(s.passes, want) {
		s.t.Errorf("%s: passes %q, want %q", what, s.passes, want)
	}
	s.passes = nil
}

// dueAfter lets time pass, and checks which objects are due.
func (s *stage) dueAfter(d time.Duration, want int) {
	s.t.Helper()
	s.now = s.now.Add(d)
	if got := s.due(); len(got) != want {
		s.t.Errorf("%s later these are due: %q, want %d", d, got, want)
	}
}

func TestWatch(t *testing.T) {
	s := newStage(t)
	lease := func(version, holder string) *coordinationv1.Lease { return leaseNamed("db-0.member", version, holder) }
	key := client.ObjectKeyFromObject(lease("", ""))
	s.see(lease("1", ""))
	s.triggered("the first version", "ns/db")
	s.dueAfter(time.Hour, 0) // without a holder
	s.see(lease("2", "a"))
	s.triggered("another holder", "ns/db")
	s.dueAfter(4*time.Second, 0)
	s.see(lease("3", "a"))
	s.triggered("a renewal")
	s.dueAfter(4*time.Second, 0)
	s.see(lease("3", "a")) // a resync
	s.dueAfter(time.Second, 1)
	s.dueAfter(4*time.Second, 0)
	s.dueAfter(time.Second, 1)
	s.dueAfter(9*time.Second, 0)
	s.dueAfter(time.Second, 1)
	if got := s.SeenAt(key, "3"); s.now.Sub(got) != 20*time.Second {
		t.Errorf("version 3 was seen %s ago, want 20s", s.now.Sub(got))
	}
	if got := s.SeenAt(key, "2"); !got.IsZero() {
		t.Errorf("an old version was seen at %s", got)
	}
	s.forget(lease("3", "a"))
	s.triggered("a deletion", "ns/db")
	s.dueAfter(time.Hour, 0)
	s.see(lease("4", "a"))
	s.triggered("a new Lease", "ns/db")
	s.forget(toolscache.DeletedFinalStateUnknown{Obj: lease("4", "a")})
	s.triggered("a deletion that was missed", "ns/db")
	s.see("no Lease")
	s.forget("no Lease")
	s.triggered("another kind")
}

func TestAnObjectWithSeveralLeases(t *testing.T) {
	s := newStage(t)
	first, second := leaseNamed("db-0.member", "1", "a"), leaseNamed("db-1.member", "2", "b")
	s.see(first)
	s.now = s.now.Add(3 * time.Second)
	s.see(second)
	s.triggered("two new Leases", "ns/db", "ns/db")
	for version, lease := range map[string]*coordinationv1.Lease{"1": first, "2": second} {
		if s.SeenAt(client.ObjectKeyFromObject(lease), version).IsZero() {
			t.Errorf("%s was not seen", lease.Name)
		}
	}
	s.dueAfter(2*time.Second, 1)
	s.dueAfter(3*time.Second, 1)
	s.forget(first)
	s.triggered("a deletion", "ns/db")
	s.dueAfter(2*time.Second, 0)
	s.dueAfter(3*time.Second, 1)
	second.Labels, second.ResourceVersion = map[string]string{label: "other"}, "3"
	s.see(second)
	s.triggered("another object", "ns/other")
}

func TestFollow(t *testing.T) {
	var opened []string
	var failure error
	var handler toolscache.ResourceEventHandler
	open := func(_ context.Context, options cache.Options, by toolscache.ResourceEventHandler, kinds ...client.Object) (context.CancelFunc, error) {
		if len(kinds) != 1 || len(options.ByObject) != 1 {
			t.Errorf("watches %v by %v", kinds, options.ByObject)
		}
		for _, by := range options.ByObject {
			if by.Label.String() != label {
				t.Errorf("the selector is %q", by.Label)
			}
		}
		opened = append(opened, slices.Collect(maps.Keys(options.DefaultNamespaces))...)
		handler = by
		return func() {}, failure
	}
	s := newStage(t)
	s.open, s.followed = open, map[string]*following{}
	failure = errors.New("forbidden")
	if err := s.Follow(t.Context(), objectIn("ns", "db")); !errors.Is(err, failure) {
		t.Errorf("the result is %v", err)
	}
	failure = nil
	for _, namespace := range []string{"ns", "ns", "other"} {
		if err := s.Follow(t.Context(), objectIn(namespace, "db")); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"ns", "ns", "other"}; !slices.Equal(opened, want) {
		t.Errorf("opened %q, want %q", opened, want)
	}
	handler.OnAdd(leaseNamed("db-0.member", "1", "a"), true)
	s.triggered("a Lease", "ns/db")
	handler.OnUpdate(leaseNamed("db-0.member", "1", "a"), leaseNamed("db-0.member", "2", "b"))
	s.triggered("another holder", "ns/db")
	handler.OnDelete(leaseNamed("db-0.member", "2", "b"))
	s.triggered("a deletion", "ns/db")
	if err := New(time.Now, "not a label", open, nil).Follow(t.Context(), objectIn("ns", "db")); err == nil {
		t.Error("an invalid label is accepted")
	}
}

// TestASlowAPIServerBlocksNoOtherPass opens a watch that does not return, and follows the same and another namespace.
func TestASlowAPIServerBlocksNoOtherPass(t *testing.T) {
	opening, answer, ends := make(chan bool), make(chan error, 1), 0
	open := func(_ context.Context, options cache.Options, _ toolscache.ResourceEventHandler, _ ...client.Object) (context.CancelFunc, error) {
		if _, slow := options.DefaultNamespaces["slow"]; slow {
			opening <- true
			return func() { ends++ }, <-answer
		}
		return func() {}, nil
	}
	var tried []types.NamespacedName
	w := New(time.Now, label, open, func(object types.NamespacedName) { tried = append(tried, object) })
	follow := func(namespace, name string) chan error {
		ended := make(chan error, 1)
		go func() { ended <- w.Follow(t.Context(), objectIn(namespace, name)) }()
		return ended
	}
	first := follow("slow", "db")
	<-opening
	for _, namespace := range []string{"slow", "fast"} {
		select {
		case err := <-follow(namespace, "other"):
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("a pass in %s waits for the watch of another object", namespace)
		}
	}
	w.SeenAt(objectIn("slow", "db-0.member"), "1")
	answer <- context.DeadlineExceeded
	if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the result is %v", err)
	}
	if len(tried) != 1 || tried[0] != objectIn("slow", "other") {
		t.Errorf("the objects that try again are %v, want slow/other", tried)
	}
	again := follow("slow", "db") // a retry
	<-opening
	w.Leave(objectIn("slow", "db"))
	answer <- nil
	if err := <-again; err != nil || ends != 1 {
		t.Errorf("a watch without objects was ended %d times, with %v", ends, err)
	}
}

// TestLeave ends a watch with the last object of its namespace.
func TestLeave(t *testing.T) {
	s, ends := newStage(t), 0
	s.followed = map[string]*following{}
	s.open = func(context.Context, cache.Options, toolscache.ResourceEventHandler, ...client.Object) (context.CancelFunc, error) {
		return func() { ends++ }, nil
	}
	first, second := objectIn("ns", "db"), objectIn("ns", "other")
	for _, object := range []types.NamespacedName{first, second, objectIn("elsewhere", "db")} {
		if err := s.Follow(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	s.see(leaseNamed("db-0.member", "1", "a"))
	s.triggered("a Lease", "ns/db")
	for _, step := range []struct {
		object types.NamespacedName
		ends   int
	}{{first, 0}, {first, 0}, {objectIn("nowhere", "db"), 0}, {second, 1}, {second, 1}} {
		s.Leave(step.object)
		if ends != step.ends {
			t.Errorf("without %s, %d watches have ended, want %d", step.object, ends, step.ends)
		}
	}
	s.see(leaseNamed("db-0.member", "2", "b")) // an event that was under way
	s.triggered("a Lease that is not followed")
	s.dueAfter(time.Hour, 0)
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := make(chan types.NamespacedName, 9)
		w := New(time.Now, label, nil, func(object types.NamespacedName) { passes <- object })
		w.followed["ns"] = &following{}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		w.see(leaseNamed("db-0.member", "1", "a"))
		start := time.Now()
		for _, want := range []time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second} {
			<-passes
			if late := time.Since(start) - want; late < 0 || late > tick {
				t.Errorf("a pass came after %s, want %s", time.Since(start), want)
			}
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestANilWatch(t *testing.T) {
	var w *Watch
	w.Leave(objectIn("ns", "db"))
	if err := w.Follow(t.Context(), objectIn("ns", "db")); err != nil || !w.SeenAt(types.NamespacedName{}, "1").IsZero() {
		t.Errorf("a nil Watch: %v", err)
	}
}
