package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
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
	two := func(things ...thing) *facts.World { return worldOf(setOf(2, 1), things...) }
	follower := func() *podFixture { return pod(1).secondary().sequence("9") }
	for _, r := range []struct {
		sentence string
		world    *facts.World
		want     string
	}{
		{"the set is healthy", two(pod(0).primary(), follower()), "2 2 1 Running; A=T/OnTarget P=F/Steady D=F/Healthy"},
		{"the only primary is frozen, and its probe has failed for seconds", two(pod(0).primary().unready(5*time.Second), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=F/Healthy"},
		{"the only primary is frozen, and its probe has failed for minutes", two(pod(0).primary().unready(2*time.Minute), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=T/NotServing"},
		{"the only primary is frozen without a probe, and status hangs", two(pod(0).primary().hangs(31*time.Second), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=T/MembersDegraded"},
		{"status is slow", two(pod(0).primary().hangs(20*time.Second), follower()), "2 2 1 Running; A=T/OnTarget P=F/Steady D=F/Healthy"},
		{"the only primary is frozen, and the operator is new", two(pod(0).granted().but(foundMute), follower(), shown("rss-db-0", "rss-db-1")), "2 1 1 Running; A=F/NotServing P=T/Recovering D=T/MembersDegraded"},
		{"one of two primaries is frozen", worldOf(setOf(2, 2), pod(0).primary(), pod(1).primary().unready(2*time.Minute)), "2 1 2 Running; A=F/NotServing P=T/Recovering D=T/NotServing"},
		{"a secondary is frozen, and clients are served", two(pod(0).primary(), follower().hangs(time.Minute)), "2 1 1 Running; A=T/OnTarget P=F/Steady D=T/MembersDegraded"},
		{"a secondary has not been Ready for less than a minute, and clients are served", two(pod(0).primary(), follower().unready(59*time.Second)), "2 1 1 Running; A=T/OnTarget P=F/Steady D=F/Healthy"},
		{"W11 a secondary has not been Ready for minutes, and clients are served", two(pod(0).primary(), follower().unready(2*time.Minute)), "2 1 1 Running; A=T/OnTarget P=F/Steady D=T/MembersNotReady"},
		{"the new primary is not Ready yet", two(pod(0).status(8).grantedFor(5*time.Second).unready(time.Hour), follower()), "2 1 1 Running; A=F/NotServing P=T/Recovering D=F/Healthy"},
		{"the primary has crashed, and a failover is in progress", two(pod(0).crashed(), follower(), lost(2*time.Second)), "2 1 0 Creating; A=F/BelowTarget P=T/Seeding D=F/Healthy"},
		{"the node of the primary is unreachable, and the failover needs manual intervention", two(pod(0).granted().onNode(off), follower(), shown("rss-db-0")), "2 1 0 Running; A=F/BelowTarget P=T/WaitingForStop D=T/NodeUnreachable"},
		{"a surplus primary does not stop", two(pod(0).primary(), pod(1).failures(1, "stop", 0, false).primary()), "2 2 2 Running; A=T/OnTarget P=T/Recovering D=T/MembersFailed"},
		{"the set is stopped by its spec", worldOf(setOf(0, 0)), "0 0 0 Creating; A=F/Stopped P=F/Steady D=F/Healthy"},
		{"the set is paused, and its primary is frozen", two(with(func(w *facts.World) { w.Set.Spec.Paused = true }), pod(0).primary().unready(2*time.Minute), follower()), "2 1 1 Paused; A=F/NotServing P=F/Steady D=T/NotServing"},
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
	w.Set.Status.Unanswered = []v1alpha1.Unanswered{{Pod: m.Name(), ContainerID: m.Running(), Since: metaTime(time.Hour)}}
	s := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
	s.Look(m, w.Set.Status.Unanswered, w.Now)
}

// TestV13WhatHelps tests that the message contains the remedy, and that the remedy does no harm.
func TestV13WhatHelps(t *testing.T) {
	for _, r := range []struct {
		name, condition string
		world           *facts.World
		want            []string
	}{
		{"a frozen primary with a probe", v1alpha1.ConditionDegraded, worldOf(setOf(2, 1), pod(0).primary().unready(2*time.Minute), pod(1).secondary()),
			[]string{"rss-db-0 is primary, but its pod has not been Ready since 2026-03-01T11:58:00Z", "kubectl -n ns describe pod rss-db-0", "kubectl -n ns delete pod rss-db-0"}},
		{"a frozen primary without a probe", v1alpha1.ConditionDegraded, worldOf(setOf(2, 1), pod(0).primary().hangs(time.Minute), pod(1).secondary()),
			[]string{"status does not respond: rss-db-0 (pending since 2026-03-01T11:59:00Z)", "kubectl -n ns exec rss-db-0 -c main -- /status rss-db-0.db-svc; echo $?", "kubectl -n ns delete pod rss-db-0"}},
		{"a stop that does nothing", v1alpha1.ConditionDegraded, worldOf(setOf(2, 1), pod(0).primary(), pod(1).failures(1, "stop", 0, false).primary()),
			[]string{"stop of rss-db-1 failed: it exited with 0, but status did not confirm it", "kubectl -n ns exec rss-db-1 -c main -- /status"}},
		{"the reason why clients are not served", v1alpha1.ConditionAvailable, worldOf(setOf(2, 1), pod(0).primary().unready(2*time.Minute), pod(1).secondary()),
			[]string{"0 of 1 primaries serve clients: rss-db-0 is primary, but its pod is not Ready"}},
	} {
		p := rules.Decide(r.world)
		s := status.Summarize(&p)
		c := meta.FindStatusCondition(s.Conditions, r.condition)
		for _, want := range r.want {
			if !strings.Contains(c.Message, want) {
				t.Errorf("V13 %s: %s is %q, want it to contain %q", r.name, r.condition, c.Message, want)
			}
		}
	}
}

// TestV13WhatHelpsIsQuoted tests that a command in a message is one command in a shell and does not
// end the shell.
func TestV13WhatHelpsIsQuoted(t *testing.T) {
	for _, r := range []struct {
		argv []string
		want string
	}{
		{[]string{"/status", "rss-db-0.db-svc"}, "/status rss-db-0.db-svc"},
		{[]string{"sh", "-c", "pg_isready || exit 7"}, "sh -c 'pg_isready || exit 7'"},
		{[]string{"sh", "-c", "test $1 = 'a b'", ""}, `sh -c 'test $1 = '\''a b'\''' ''`},
		{[]string{"sh", "-c", strings.Repeat("true; ", 100)}, "(command status of the spec)"},
	} {
		if got := facts.Quoted(r.argv); got != r.want {
			t.Errorf("V13 %q is shown as %s, want %s", r.argv, got, r.want)
		}
	}
}

// TestV13TheOperatorLooksAgainInTime tests that conditions change without a watch event.
func TestV13TheOperatorLooksAgainInTime(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  time.Duration
	}{
		{"while status hangs", worldOf(setOf(2, 1), pod(0).primary().hangs(20*time.Second), pod(1).secondary()), 10 * time.Second},
		{"while a primary is not Ready", worldOf(setOf(2, 1), pod(0).primary().unready(25*time.Second), pod(1).secondary()), 35 * time.Second},
		{"when status is queried", worldOf(setOf(2, 1), pod(0).primary(), pod(1)), spec.AnswersWithin},
	} {
		if p := rules.Decide(r.world); p.Wait != r.want {
			t.Errorf("V13 %s: requeued after %s, want %s", r.name, p.Wait, r.want)
		}
	}
}

// TestV13WhoDoesNotAnswerIsOnRecord tests that an unanswered status is remembered after a restart
// of the operator, until the member answers or its container changes.
func TestV13WhoDoesNotAnswerIsOnRecord(t *testing.T) {
	s := newStage(t, setOf(3, 1))
	s.settle(20 * time.Second)
	hang("rss-db-0 status")(s)
	for end := s.Now.Add(3 * time.Minute); s.Now.Before(end) && !s.degraded(); s.Now = s.Now.Add(time.Second) {
		s.round()
	}
	record := s.set().Status.Unanswered
	if len(record) != 1 || record[0].Pod != "rss-db-0" || !s.degraded() {
		t.Fatalf("V13: Degraded is %t, and the record is %v", s.degraded(), record)
	}
	s.restart()
	for range 20 { // it has not been asking for long enough
		s.round()
		s.Now = s.Now.Add(500 * time.Millisecond)
		if !s.degraded() || !slices.Equal(s.set().Status.Unanswered, record) {
			t.Fatalf("V13: status.unanswered changed after a restart of the operator: %v", s.set().Status.Unanswered)
		}
	}
	unhang(s)
	s.settle(20 * time.Second)
	if s.degraded() || len(s.set().Status.Unanswered) > 0 {
		t.Errorf("V13: after an answer Degraded is %t, and the record is %v", s.degraded(), s.set().Status.Unanswered)
	}
}

// round is a pass, followed by the steps of the cluster and the commands.
func (s *stage) round() {
	s.look()
	s.pass()
	s.check()
	for _, move := range append(s.machines(), s.db.moves()...) {
		move()
	}
}

func (s *stage) degraded() bool {
	return meta.IsStatusConditionTrue(s.set().Status.Conditions, v1alpha1.ConditionDegraded)
}

// TestV13SinceWhenStatusDoesNotAnswer tests V13: which results count as an answer.
func TestV13SinceWhenStatusDoesNotAnswer(t *testing.T) {
	asked := func(age time.Duration) *podFixture {
		return pod(0).hangs(age)
	}
	s := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
	for _, r := range []struct {
		name string
		pod  *podFixture
		want time.Duration // age; 0 for none
	}{
		{"status is queried", asked(time.Second), time.Second},
		{"status is still running", asked(time.Second), time.Second},
		{"status timed out", pod(0).answered("status", podexec.Unknown, 0, "", 40*time.Second), time.Second},
		{"status answered", pod(0).idle(), 0},
		{"status could not be sent", pod(0).unsent("status", 9*time.Second, 1), 0},
		{"status timed out without a previous record", pod(0).silent(1), 5 * time.Second},
		{"the container was restarted", pod(0).restarted(time.Second), 0},
	} {
		s.Look(r.pod.Member, nil, noon)
		if got := r.pod.AskedAt; r.want == 0 && !got.IsZero() || r.want > 0 && !got.Equal(ago(r.want)) {
			t.Errorf("V13 %s: unanswered since %s, want %s ago", r.name, got, r.want)
		}
	}
}

// TestV13NoMemberIsBlamedWhilePaused tests V13: while a set is paused no query is sent, so no
// member counts as unresponsive.
func TestV13NoMemberIsBlamedWhilePaused(t *testing.T) {
	s := newStage(t, setOf(3, 1))
	s.settle(20 * time.Second)
	hang("rss-db-0 status")(s)
	for s.db.command("rss-db-0 status") == nil {
		s.round()
		s.Now = s.Now.Add(time.Second)
	}
	pause(true)(s)
	for range 90 {
		s.round()
		s.Now = s.Now.Add(time.Second)
	}
	if s.degraded() || len(s.set().Status.Unanswered) > 0 {
		t.Errorf("a member of a paused set counts as unresponsive: %v", s.set().Status.Unanswered)
	}
}
