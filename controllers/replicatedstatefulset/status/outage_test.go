package status_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// saidOf returns the columns of kubectl get, and the conditions that tools use, as an administrator
// reads them.
func saidOf(w *facts.World) string {
	p := rules.Decide(w)
	s := status.Summarize(&p)
	line := fmt.Sprintf("%d %d %d %s;", *w.Set.Spec.Replicas, s.ReadyReplicas, s.Primaries, s.Phase)
	for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		line += fmt.Sprintf(" %s=%s/%s", kind[:1], c.Status[:1], c.Reason)
	}
	return line
}

// TestV13TheConditionsSayWhatAPersonSees compares an administrator's view of the pods with the
// status of the object: the columns Desired, Ready, Primaries and Phase, and the conditions
// Available, Progressing and Degraded.
func TestV13TheConditionsSayWhatAPersonSees(t *testing.T) {
	two := func(things ...fixture.Thing) *facts.World { return fixture.WorldOf(fixture.SetOf(2, 1), things...) }
	follower := func() *fixture.PodFixture { return fixture.Pod(1).Secondary().Sequence("9") }
	for _, r := range []struct {
		sentence string
		world    *facts.World
		want     string
	}{
		{"the set is healthy", two(fixture.Pod(0).Primary(), follower()), "2 2 1 Running; A=T/OnTarget P=F/Steady D=F/Healthy"},
		{"the only primary is frozen, and its probe has failed for seconds", two(fixture.Pod(0).Primary().Unready(5*time.Second), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=F/Healthy"},
		{"the only primary is frozen, and its probe has failed for minutes", two(fixture.Pod(0).Primary().Unready(2*time.Minute), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=T/NotServing"},
		{"the only primary is frozen without a probe, and status hangs", two(fixture.Pod(0).Primary().Hangs(31*time.Second), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=T/MembersDegraded"},
		{"status is slow", two(fixture.Pod(0).Primary().Hangs(20*time.Second), follower()), "2 2 1 Running; A=T/OnTarget P=F/Steady D=F/Healthy"},
		{"the only primary is frozen, and the operator is new", two(fixture.Pod(0).WithGranted().But(foundMute), follower(), shown("rss-db-0", "rss-db-1")), "2 1 1 Running; A=F/NotServing P=T/Recovering D=T/MembersDegraded"},
		{"one of two primaries is frozen", fixture.WorldOf(fixture.SetOf(2, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Primary().Unready(2*time.Minute)), "2 1 2 Running; A=F/NotServing P=T/Recovering D=T/NotServing"},
		{"a secondary is frozen, and clients are served", two(fixture.Pod(0).Primary(), follower().Hangs(time.Minute)), "2 1 1 Running; A=T/OnTarget P=F/Steady D=T/MembersDegraded"},
		{"a secondary has not been Ready for less than a minute, and clients are served", two(fixture.Pod(0).Primary(), follower().Unready(59*time.Second)), "2 1 1 Running; A=T/OnTarget P=F/Steady D=F/Healthy"},
		{"W11 a secondary has not been Ready for minutes, and clients are served", two(fixture.Pod(0).Primary(), follower().Unready(2*time.Minute)), "2 1 1 Running; A=T/OnTarget P=F/Steady D=T/MembersNotReady"},
		{"the new primary is not Ready yet", two(fixture.Pod(0).Status(8).GrantedFor(5*time.Second).Unready(time.Hour), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=F/Healthy"},
		{"the primary has crashed, and a failover is in progress", two(fixture.Pod(0).Crashed(), follower(), fixture.Lost(2*time.Second)), "2 1 0 Creating; A=F/BelowTarget P=T/Seeding D=F/Healthy"},
		{"the node of the primary is unreachable, and the failover needs manual intervention", two(fixture.Pod(0).WithGranted().OnNode(fixture.Off), follower(), shown("rss-db-0")), "2 1 0 Running; A=F/BelowTarget P=T/WaitingForStop D=T/NodeUnreachable"},
		{"a surplus primary does not stop", two(fixture.Pod(0).Primary(), fixture.Pod(1).Failures(1, "stop", 0, false).Primary()), "2 2 2 Running; A=T/OnTarget P=T/Recovering D=T/MembersFailed"},
		{"the set is stopped by its spec", fixture.WorldOf(fixture.SetOf(0, 0)), "0 0 0 Creating; A=F/Stopped P=F/Steady D=F/Healthy"},
		{"the set is paused, and its primary is frozen", two(fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true }), fixture.Pod(0).Primary().Unready(2*time.Minute), follower()), "2 1 1 Paused; A=F/NotServing P=F/Steady D=T/NotServing"},
	} {
		t.Run("V13 "+r.sentence, func(t *testing.T) {
			if got := saidOf(r.world); got != r.want {
				t.Errorf("the status is\n  %s\nwant\n  %s", got, r.want)
			}
		})
	}
}

// foundMute makes the status of the object report that the member does not answer.
func foundMute(w *facts.World) {
	m := w.Members[len(w.Members)-1]
	w.Set.Status.Unanswered = []v1alpha1.Unanswered{{Pod: m.Name(), ContainerID: m.Running(), Since: fixture.MetaTime(time.Hour)}}
	s := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
	s.Look(m, w.Set.Status.Unanswered, w.Now)
}

// TestV13TheOperatorLooksAgainInTime tests that conditions change without a watch event.
func TestV13TheOperatorLooksAgainInTime(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  time.Duration
	}{
		{"while status hangs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Hangs(20*time.Second), fixture.Pod(1).Secondary()), 10 * time.Second},
		{"while a primary is not Ready", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Unready(25*time.Second), fixture.Pod(1).Secondary()), 35 * time.Second},
		{"when status is queried", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1)), spec.AnswersWithin},
	} {
		if p := rules.Decide(r.world); p.Wait != r.want {
			t.Errorf("V13 %s: requeued after %s, want %s", r.name, p.Wait, r.want)
		}
	}
}

// TestV13SinceWhenStatusDoesNotAnswer tests V13: which results count as an answer.
func TestV13SinceWhenStatusDoesNotAnswer(t *testing.T) {
	asked := func(age time.Duration) *fixture.PodFixture {
		return fixture.Pod(0).Hangs(age)
	}
	s := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want time.Duration // age; 0 for none
	}{
		{"status is queried", asked(time.Second), time.Second},
		{"status is still running", asked(time.Second), time.Second},
		{"status timed out", fixture.Pod(0).Answered("status", podexec.Unknown, 0, "", 40*time.Second), time.Second},
		{"status answered", fixture.Pod(0).Idle(), 0},
		{"status could not be sent", fixture.Pod(0).Unsent("status", 9*time.Second, 1), 0},
		{"status timed out without a previous record", fixture.Pod(0).WithSilent(1), 5 * time.Second},
		{"the container was restarted", fixture.Pod(0).Restarted(time.Second), 0},
	} {
		s.Look(r.pod.Member, nil, fixture.Noon)
		if got := r.pod.AskedAt; r.want == 0 && !got.IsZero() || r.want > 0 && !got.Equal(fixture.Ago(r.want)) {
			t.Errorf("V13 %s: unanswered since %s, want %s ago", r.name, got, r.want)
		}
	}
}
