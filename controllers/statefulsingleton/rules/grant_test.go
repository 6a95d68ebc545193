package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

func TestWhoMayStart(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"the first pod starts", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), []string{fixture.GrantA}},
		{"a lone pod starts before its gate runs", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Coming()), []string{fixture.GrantA}},
		{"a lone pod with a script as gate waits until the script runs", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Coming().Scripted()), nil},
		{"a lone pod waits while its script has just started", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Scripted().HeldFor(time.Second)), nil},
		{"a lone pod starts when its script has run long enough", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Scripted().HeldFor(spec.GateSteadyAfter)), []string{fixture.GrantA}},
		{"the pod whose script has run long enough starts first", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Scripted().HeldFor(time.Second), fixture.Waiting("b").Scripted().HeldFor(spec.GateSteadyAfter)),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"no pod starts while the holder runs", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"no pod starts while the holder is terminating", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted(), fixture.Waiting("b")), nil},
		{"the next pod starts when the holder has stopped", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().Ended(), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"a holder whose program ended is replaced", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Ended(), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"the next pod starts if the kubelet observed the deletion of a holder that never ran", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unstarted(2), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"the next pod waits if the status of a holder that never ran is older than its deletion", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unstarted(1), fixture.Waiting("b")), nil},
		{"the next pod waits if the kubelet does not report observedGeneration", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unstarted(0), fixture.Waiting("b")), nil},
		{"the next pod waits if pods have no generation", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unstarted(0).With(func(p *corev1.Pod) { p.Generation = 0 }), fixture.Waiting("b")), nil},
		{"the next pod waits if a holder that never ran has a sandbox", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unstarted(2).With(func(p *corev1.Pod) {
			p.Status.Conditions[len(p.Status.Conditions)-1].Status = corev1.ConditionTrue
		}), fixture.Waiting("b")), nil},
		{"the next pod starts when the holder is deleted", fixture.WorldOf(fixture.Held(), fixture.Waiting("b")), []string{fixture.GrantB}},
		{"S14 a crashed container of a living pod proves nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Exited(), fixture.Waiting("b")), nil},
		{"S14 a crash loop proves nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Stuck("CrashLoopBackOff"), fixture.Waiting("b")), nil},
		{"a phase without terminated containers proves nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Phase(corev1.PodFailed), fixture.Waiting("b")), nil},
		{"phase Failed by pod garbage collection proves nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Collected(), fixture.Waiting("b")), nil},
		{"phase Failed by pod garbage collection proves nothing for a pod without a kubelet status", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Silent().Collected(), fixture.Waiting("b")), nil},
		{"a granted pod with phase Failed and no container statuses may run, and is deleted", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Silent().Phase(corev1.PodFailed), fixture.Waiting("b")), []string{fixture.AskA}},
		{"a granted pod with phase Failed and no container statuses is deleted only once", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Silent().Phase(corev1.PodFailed).Deleted(), fixture.Waiting("b")), nil},
		{"containers that terminated before another client set the phase prove nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Exited().Phase(corev1.PodFailed).Deleted(), fixture.Waiting("b")), nil},
		{"a holder that its kubelet rejected gets no grant", fixture.WorldOf(fixture.Held(), fixture.Waiting("a").Silent().Phase(corev1.PodFailed), fixture.Waiting("b")), []string{fixture.GrantB}},
		{"a pod with the copied grant of another pod waits like any other", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Protect().With(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1.AnnotationGrant: "uid-of-x 9"}
		})), []string{fixture.GrantA}},
		{"S17 a pod with a grant counts although another pod is the holder", fixture.WorldOf(fixture.Singleton("db").Held("x", 5), fixture.Granted("a", 1), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 5"}},
		{"a pod that lost its annotation counts by its finalizer", fixture.WorldOf(fixture.Singleton("db").Held("x", 5), fixture.Waiting("a").Protect(), fixture.Waiting("b")), nil},
		{"epochs continue from the highest grant", fixture.WorldOf(fixture.Singleton("db"), fixture.Granted("a", 7).Ended(), fixture.Waiting("b")),
			[]string{fixture.ReleaseA, "patch status of statefulsingleton db: Holder, b, epoch 8 > patch pod b: Grant, epoch 8"}},
		{"a grant with another pod's UID is ignored", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").With(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1.AnnotationGrant: "uid-of-b 9"}
		})), []string{fixture.GrantA}},
	})
}

func TestTwoWrites(t *testing.T) {
	named := fixture.Singleton("db").Held("a", 3)
	fixture.Check(t, []fixture.Row{
		{"S24 the second write is repeated for the same holder", fixture.WorldOf(named, fixture.Waiting("a"), fixture.Waiting("b").Age(60)), []string{"patch pod a: Grant, epoch 3"}},
		{"S24 the second write is repeated although the Node has become unreachable", fixture.WorldOf(named, fixture.Waiting("a").OnNode(fixture.Unresponsive), fixture.Waiting("b")), []string{"patch pod a: Grant, epoch 3"}},
		{"S24 a holder that is deleted before its grant is skipped", fixture.WorldOf(named, fixture.Waiting("a").Deleted(), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 4 > patch pod b: Grant, epoch 4"}},
		{"S24 the readiness condition is repaired", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).With(func(p *corev1.Pod) { p.Status.Conditions = nil })),
			[]string{"set a condition of pod a: Ready, True"}},
		{"a waiting pod is not Ready", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1), fixture.Waiting("b").With(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: v1.ReadinessGate, Status: corev1.ConditionTrue}}
		})), []string{"set a condition of pod b: Ready, False"}},
		{"a finalizer that a user removed is added again", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unprotected()), []string{"patch pod a: Protect"}},
		{"S25 a new object adopts the pod that runs", fixture.WorldOf(fixture.Singleton("db"), fixture.Granted("a", 4), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 4"}},
	})
	p := rules.Decide(facts.Derive(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a"))))
	for _, a := range p.Steps[0][0] {
		if a.Verb == "patch" && !a.Unchanged {
			t.Errorf("%s is not bound to the version of the pod that was read", a)
		}
	}
}

func TestAGrantIsSaidTwice(t *testing.T) {
	const remindA = "patch pod a: Remind, epoch 1"
	unreminded := func() *fixture.MemberFixture {
		return fixture.Granted("a", 1).With(func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationReminder) })
	}
	since := func(d time.Duration) func(*v1.StatefulSingleton) {
		return func(s *v1.StatefulSingleton) { s.Status.Holder.Since.Time = fixture.Noon.Add(-d) }
	}
	fixture.Check(t, []fixture.Row{
		{"a kubelet that may have missed the grant is reminded", fixture.WorldOf(fixture.Held(), unreminded()), []string{remindA}},
		{"a kubelet is reminded of each grant", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).With(func(p *corev1.Pod) { p.Annotations[v1.AnnotationReminder] = "7" })), []string{remindA}},
		{"a kubelet is not reminded immediately after the grant", fixture.WorldOf(fixture.Held().With(since(spec.RemindAfter-1)), unreminded()), nil},
		{"a kubelet is not reminded of a terminating pod", fixture.WorldOf(fixture.Held(), unreminded().Deleted()), nil},
		{"a kubelet is not reminded of a pod without the gate", fixture.WorldOf(fixture.Held(), unreminded().Bare()), nil},
	})
	if p := rules.Decide(facts.Derive(fixture.WorldOf(fixture.Held().With(since(time.Second)), unreminded()))); p.Wait != spec.RemindAfter-time.Second {
		t.Errorf("requeued after %s", p.Wait)
	}
}
