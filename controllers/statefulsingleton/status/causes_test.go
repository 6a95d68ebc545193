package status_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// keptFor returns a world in which the cause of a sample has kept a pod from running for
// that long; nil if the sample is not about a pod.
func keptFor(s *causestest.Sample, m *fixture.MemberFixture, age time.Duration) (*facts.World, client.Reader) {
	set, d := fixture.LackingSet("an older reason", 1)
	since := fixture.Noon.Add(-age)
	switch {
	case s.Fails:
		return nil, nil
	case s.Refused != "":
		w := fixture.WorldOf(fixture.Singleton("db"))
		w.RefusedOwners = []facts.Object{set}
		return w, fixture.ServerOf(set, d, fixture.RefusedPod(s.Refused))
	case s.Pod != nil:
		s.Pod(m.Pod, since)
	default:
		m.Pod.CreationTimestamp.Time = since
	}
	return fixture.WorldOf(fixture.Held(), m), fixture.ServerOf(set, d, s.Told)
}

// TestW7EachCauseIsToldOf checks that the cause that keeps the pod whose turn it is from
// running is in condition Degraded after a minute, with the command that helps, and in
// Stalled if it needs manual intervention.
func TestW7EachCauseIsToldOf(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		for what, m := range map[string]*fixture.MemberFixture{"the pod waits": fixture.Waiting("a"), "the pod may run": fixture.Granted("a", 1)} {
			w, live := keptFor(s, fixture.Sampled(m), 70*time.Second)
			if w == nil {
				continue
			}
			t.Run(s.Situation+", "+what, func(t *testing.T) {
				fixture.Look(w, &observe.Reader{Live: live}, 70*time.Second, 69*time.Second, 5*time.Second, 0)
				s.Check(t, v1.ConditionDegraded, w.Object, w.Object.Status.Conditions)
			})
		}
	}
}

// TestW7NothingIsToldOfWhatIsNotHindered checks that no cause is reported for standbys at
// their gates, for leftover pods of a Deployment that is scaled to 0, and for a pod that
// starts.
func TestW7NothingIsToldOfWhatIsNotHindered(t *testing.T) {
	broken := fixture.Sampled(fixture.Waiting("b"))
	fixture.SampleOf(t, "the image cannot be pulled: it is missing, or its registry refuses access").Pod(broken.Pod, fixture.Noon.Add(-time.Hour))
	ended := fixture.Sampled(fixture.Waiting("a"))
	fixture.SampleOf(t, fixture.Sysctl).Pod(ended.Pod, fixture.Noon.Add(-time.Hour))
	young := fixture.Sampled(fixture.Waiting("a"))
	fixture.SampleOf(t, "the scheduler finds no Node for another reason").Pod(young.Pod, fixture.Noon.Add(-30*time.Second))
	elder := &fixture.Singleton("a").StatefulSingleton
	elder.CreationTimestamp.Time = fixture.Noon.Add(-2 * time.Hour)
	set, d := fixture.LackingSet("", 0)
	for what, w := range map[string]*facts.World{
		"pods at their gates":              fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving(), fixture.Waiting("b"), fixture.Waiting("c")),
		"a standby that cannot start":      fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving(), broken),
		"the only pods are at their gates": fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a"), fixture.Waiting("b")),
		"a pod is unschedulable for 30 s":  fixture.WorldOf(fixture.Singleton("db"), young),
		"no pods":                          fixture.WorldOf(fixture.Singleton("db")),
		"an invalid object":                fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), broken), func(w *facts.World) { w.Rivals = []*v1.StatefulSingleton{elder} }),
	} {
		fixture.Look(w, &observe.Reader{Live: fixture.ServerOf(set, d)}, 3*time.Second, 0)
		if got := fixture.SayingOf(w, v1.ConditionDegraded); got != fixture.NoProblem {
			t.Errorf("%s: Degraded is %s", what, got)
		}
	}
	w := fixture.WorldOf(fixture.Singleton("db"), ended)
	fixture.Look(w, &observe.Reader{Live: fixture.ServerOf(set, d)}, 3*time.Second, 0)
	if got := fixture.SayingOf(w, v1.ConditionStalled); !strings.HasPrefix(got, "False") {
		t.Errorf("a Deployment with 0 replicas and a refused pod an hour ago: Stalled is %s", got)
	}
}

// TestW7ALateHandoverSaysWhy checks that a handover that takes too long keeps its reason,
// and reports why its pod does not start.
func TestW7ALateHandoverSaysWhy(t *testing.T) {
	m := fixture.Sampled(fixture.Waiting("a"))
	fixture.SampleOf(t, "no Node has enough cpu, memory or other resources").Pod(m.Pod, fixture.Noon.Add(-time.Hour))
	w := fixture.WorldOf(fixture.Singleton("db").With(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: fixture.Noon.Add(-time.Hour)}
	}), m)
	set, d := fixture.LackingSet("", 1)
	fixture.Look(w, &observe.Reader{Live: fixture.ServerOf(set, d)}, 0)
	got := fixture.SayingOf(w, v1.ConditionDegraded)
	if !strings.HasPrefix(got, "True TransitionTimeout: ") || !strings.Contains(got, "; pod a cannot be scheduled: Unschedulable: ") {
		t.Errorf("Degraded is %s", got)
	}
}
