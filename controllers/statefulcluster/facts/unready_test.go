package facts_test

import (
	"fmt"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestDeadlines(t *testing.T) {
	var rows []fixture.Row
	for _, d := range deadlines {
		rows = append(rows,
			fixture.Row{Name: fmt.Sprintf("SC-13 a member is not lost one nanosecond before its deadline of %v: %s", d.deadline, d.reason),
				World: fixture.Seen(fixture.Set("db"), d.member(d.deadline-time.Nanosecond), fixture.B(), fixture.C()),
				Wait:  time.Nanosecond},
			fixture.Row{Name: fmt.Sprintf("SC-9 SC-14 SC-36 a member is replaced under another name at its deadline: %s", d.reason),
				World: fixture.Seen(fixture.Set("db"), d.member(d.deadline), fixture.B(), fixture.C()),
				Want:  []string{fixture.Replaces("a", "f1", d.reason)}},
		)
	}
	fixture.Check(t, rows)
}

func TestDeadlinesThatNeverCome(t *testing.T) {
	zero := new(int32)
	never := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Replacement.UnreadySeconds, s.Replacement.StartupSeconds, s.Replacement.PendingSeconds = zero, zero, zero
	})
	fixture.Check(t, []fixture.Row{
		{Name: "unreadySeconds 0 disables the deadline", World: fixture.Seen(never, fixture.Pod("a").On("n1").UnreadyFor(24*time.Hour), fixture.B(), fixture.C())},
		{Name: "startupSeconds 0 disables the deadline", World: fixture.Seen(never, fixture.Pod("a").Aged(24*time.Hour).On("n1").Starting(), fixture.B(), fixture.C())},
		{Name: "W6 a member whose claims a quota refuses is not replaced", World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").UnschedulableFor(24*time.Hour).WithoutClaims(), fixture.B(), fixture.C(),
			fixture.Refused(facts.ReasonClaim, "exceeded quota", time.Minute)), Wait: time.Minute},
		{Name: "W6 pendingSeconds counts from the creation of the claims", World: fixture.Seen(fixture.Set("db"), claimedFor("a", 299*time.Second), fixture.B(), fixture.C()), Wait: time.Second},
		{Name: "W6 a pending member is replaced pendingSeconds after the creation of its claims", World: fixture.Seen(fixture.Set("db"), claimedFor("a", 300*time.Second), fixture.B(), fixture.C()),
			Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossPending)}},
		{Name: "pendingSeconds 0 disables the deadline", World: fixture.Seen(never, fixture.Pod("a").UnschedulableFor(24*time.Hour), fixture.B(), fixture.C())},
		{Name: "a Node that is not Ready makes its member lost with deadlines of 0",
			World: fixture.Seen(never, fixture.A().NodeNotReadyFor(time.Minute), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{Name: "an unready member on a Node that was just lost waits for the deadline of the Node",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").UnreadyFor(50*time.Minute).NodeNotReadyFor(10*time.Second), fixture.B(), fixture.C()),
			Wait:  20 * time.Second},
	})
}

func TestUnreadinessOfMany(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "no unready member is replaced if more members than maxConcurrent are unready",
			World:       fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").UnreadyFor(50*time.Minute), fixture.Pod("b").On("n2").UnreadyFor(50*time.Minute), fixture.C()),
			ManyUnready: 2},
		{Name: "unready members are replaced if they are no more than maxConcurrent",
			World: fixture.Seen(fixture.Set("db").MaxConcurrent("2"), fixture.Pod("a").On("n1").UnreadyFor(50*time.Minute), fixture.Pod("b").On("n2").UnreadyFor(50*time.Minute), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossUnready), fixture.Replaces("b", "f2", v1alpha1.LossUnready)}},
		{Name: "a member on a lost node is replaced while many members are unready",
			World: fixture.Seen(fixture.Set("db").ReplacesInOutage(), fixture.Pod("a").On("n1").UnreadyFor(50*time.Minute), fixture.Pod("b").On("n2").UnreadyFor(50*time.Minute), fixture.C().NodeGone()),
			Want:  []string{fixture.Replaces("c", "f1", v1alpha1.LossNodeGone)}, ManyUnready: 2},
		{Name: "members on lost nodes do not count as unready",
			World: fixture.Seen(fixture.Set("db").MaxConcurrent("2").ReplacesInOutage(), fixture.Pod("a").On("n1").UnreadyFor(50*time.Minute), fixture.B().NodeGone(), fixture.Pod("c").On("n3").UnreadyFor(50*time.Minute)),
			Want:  []string{fixture.Replaces("b", "f1", v1alpha1.LossNodeGone), fixture.Replaces("a", "f2", v1alpha1.LossUnready)},
			Held:  []string{"db-c"}},
		{Name: "members that are starting do not count as unready, and the next deadline is requeued",
			World: fixture.Seen(fixture.Set("db").Replicas(5), fixture.A(), fixture.B(), fixture.C(), fixture.Pod("d").Aged(time.Minute).On("n1").Starting(), fixture.Pod("e").Aged(2*time.Minute).On("n1").Starting()),
			Wait:  8 * time.Minute},
	})
}
