package facts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestUnmanagedPods(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"S16 a pod without the gate blocks, and gets the finalizer", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a"), fixture.Waiting("b")), []string{"patch pod a: Protect"}},
		{"S16 a pod without the gate that has the finalizer blocks", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Protect(), fixture.Waiting("b")), nil},
		{"S16 a pod without the gate that has no Node yet blocks", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Unscheduled().Protect(), fixture.Waiting("b")), nil},
		{"a terminating pod without the gate blocks, and gets no finalizer", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Deleted(), fixture.Waiting("b")), nil},
		{"a terminating pod without the gate that has no Node does not block", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Unscheduled().Deleted().Protect(), fixture.Waiting("b")),
			[]string{fixture.ReleaseA, "patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"H3 an ended pod without the gate does not block", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Ended(), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a pod without the gate that its kubelet rejected does not block", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Silent().Phase(corev1.PodFailed), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a pod without the gate that ran, and has phase Failed without container statuses, blocks", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Protect().Silent().Phase(corev1.PodFailed), fixture.Waiting("b")), []string{fixture.AskA}},
		{"a static pod blocks, and is left to its kubelet", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").With(func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}), fixture.Waiting("b")), nil},
	})
}

// TestS53WhoHandsACrashLoopOver tests which holders of a Lease hand over because their program ends again and again.
func TestS53WhoHandsACrashLoopOver(t *testing.T) {
	object := func() *fixture.SingletonFixture { return fixture.HeldByLease().HandsOverCrashLoops() }
	looping := func() *fixture.MemberFixture { return fixture.Leased("a").Crashing() }
	young := func(restarts int32, d time.Duration) *fixture.MemberFixture {
		return fixture.Leased("a").Restarted(restarts).StartedFor(d)
	}
	next := func() *fixture.MemberFixture { return fixture.Leased("b") }
	for name, row := range map[string]struct {
		object *fixture.SingletonFixture
		old    *fixture.MemberFixture
		next   *fixture.MemberFixture
		want   bool
	}{
		"one whose kubelet pauses":                       {object(), looping(), next(), true},
		"one that was in one, and runs":                  {object(), young(2, 9*time.Minute).Looped(), next(), true},
		"one that has been running for long":             {object(), young(2, 10*time.Minute).Looped(), next(), false},
		"one that was only restarted":                    {object(), young(5, time.Second), next(), false},
		"with onCrashLoop Restart":                       {fixture.HeldByLease(), looping(), next(), false},
		"with mode Proof":                                {object().With(func(s *v1.StatefulSingleton) { s.Spec.Fencing.Mode = v1.FencingProof }), looping(), next(), false},
		"one that is being deleted":                      {object(), looping().Deleted(), next(), false},
		"one whose program was ended by its agent":       {object(), looping().LastExit(125), next(), false},
		"one whose image cannot be pulled":               {object(), fixture.Leased("a").Stuck("ImagePullBackOff"), next(), false},
		"the same after a crash loop":                    {object(), fixture.Leased("a").Stuck("ImagePullBackOff").Looped(), next(), true},
		"for a pod that was restarted":                   {object(), looping(), next().Restarted(1), true},
		"for a pod that was in a crash loop":             {object(), looping(), next().Looped(), false},
		"for a pod with the mark of another one":         {object(), looping(), next().With(copied), true},
		"for a pod that has not reached its gate":        {object(), looping(), next().Stuck("ContainerCreating"), false},
		"for a pod that is being deleted":                {object(), looping(), next().Deleted(), false},
		"for a pod without an agent":                     {object(), looping(), fixture.Waiting("b"), false},
		"for a pod on a Node that is not Ready":          {object(), looping(), next().OnNode(fixture.Unresponsive), false},
		"for a pod without the gate, which runs already": {object(), looping(), fixture.Ungated("b"), false},
	} {
		w := fixture.LeasedBy(fixture.WorldOf(row.object, row.old, row.next), "a", 1, time.Second, "")
		facts.Derive(w)
		if got := w.Pods[0].CrashLoops; got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}

// TestS53ACrashLoopOfAPodWithoutTheLease tests a pod that has handed over.
func TestS53ACrashLoopOfAPodWithoutTheLease(t *testing.T) {
	w := fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease().HandsOverCrashLoops(), fixture.Leased("a").Crashing(), fixture.Leased("b"), fixture.Leased("c")), "b", 2, time.Second, "")
	f := facts.Derive(w)
	if w.Pods[0].CrashLoops || w.Pods[0].Fenced || len(f.Waiting) != 2 {
		t.Errorf("a: %+v; %d wait", w.Pods[0], len(f.Waiting))
	}
}

// copied has the mark of another pod, whose manifest was copied.
func copied(p *corev1.Pod) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1.AnnotationCrashLooped, "another")
}

// TestS53APodWithoutACrashLoopIsNext tests that a pod which was not in a crash loop is next, also if it is younger.
func TestS53APodWithoutACrashLoopIsNext(t *testing.T) {
	for policy, want := range map[v1.CrashLoopPolicy]string{v1.CrashLoopHandsOver: "b", v1.CrashLoopRestarts: "a"} {
		object := fixture.Singleton("db").Leased().With(func(s *v1.StatefulSingleton) { s.Spec.OnCrashLoop = policy })
		f := facts.Derive(fixture.LeasedBy(fixture.WorldOf(object, fixture.Leased("a").Age(2).Looped(), fixture.Leased("b").Age(1)), "", 0, time.Second, ""))
		if got := f.Waiting[0].Name(); got != want {
			t.Errorf("%s: %s is next, want %s", policy, got, want)
		}
	}
}

// TestS53TheEndOfACrashLoopIsDue tests when a program that continues to run is no longer in a crash loop.
func TestS53TheEndOfACrashLoopIsDue(t *testing.T) {
	w := fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease().HandsOverCrashLoops(), fixture.Leased("a").Looped().StartedFor(9*time.Minute), fixture.Leased("b")), "a", 1, time.Second, "")
	for _, after := range facts.Derive(w).RequeueDelays() {
		if after == time.Minute {
			return
		}
	}
	t.Error("no pass is due when the program has run for 10 min")
}
