package rules_test

import (
	"fmt"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

func TestANodeThatDiesUnderAReturningMember(t *testing.T) {
	going := func(d time.Duration) *fixture.PodFixture {
		return fixture.Pod("a").On("n1").Ready().Going().NodeNotReadyFor(d)
	}
	entry := fixture.Updating("a", "uid-of-a", "now")
	fixture.Check(t, []fixture.Row{
		{Name: "a returning member on a lost node is kept for nodeLostSeconds", World: fixture.Seen(fixture.Set("db"), going(30*time.Second-1), fixture.B(), fixture.C(), entry), Wait: 1},
		{Name: "a returning member on a lost node is replaced after nodeLostSeconds, after the status is written",
			World: fixture.Seen(fixture.Set("db"), going(30*time.Second), fixture.B(), fixture.C(), entry),
			Want:  []string{"patch status of statefulcluster db: Update", fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "a returning member on a lost node is limited by maxConcurrent",
			World: fixture.Seen(fixture.Set("db").Replicas(4), going(time.Minute), fixture.B(), fixture.C(), fixture.Pod("d").Aged(time.Minute).InPlaceOf("x", 1).On("n4").Starting(), entry),
			Held:  []string{"db-a"}, Wait: 9 * time.Minute},
		{Name: "a returning member whose Node is deleted is replaced at once",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().Going().NodeGone(), fixture.B(), fixture.C(), entry),
			Want:  []string{"patch status of statefulcluster db: Update", fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "SC-37 a returning member on a Node out of service is replaced at once",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().Going().NodeOutOfService(), fixture.B(), fixture.C(), entry),
			Want:  []string{"patch status of statefulcluster db: Update", fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "an evicted member whose Node is deleted returns, because the control plane removes the pod and its volumes",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.Pod("a").On("n1").Ready().Evicted().NodeGone(), fixture.B(), fixture.C(), fixture.EvictedEntry("a"))},
		{Name: "an evicted member on a lost node is replaced, because its volume may stay attached",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.Pod("a").On("n1").Ready().Evicted().NodeNotReadyFor(time.Minute), fixture.B(), fixture.C()),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1")}},
	})
	if p := fixture.PlanOf(fixture.Seen(fixture.Set("db"), going(time.Minute), fixture.B(), fixture.C(), entry)); len(p.Updating) != 0 {
		t.Errorf("status.updating still has the replaced member: %v", p.Updating)
	}
}

// After an eviction the template is not to blame.
func TestWhyAMemberCameBack(t *testing.T) {
	evicted := fixture.EvictedEntry("a")
	made := fixture.FirstWritten(fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), evicted))
	if got := made.GetAnnotations()[v1alpha1.AnnotationUpdated]; got != string(v1alpha1.UpdatingEviction) {
		t.Errorf("annotation %s is %q, want %q", v1alpha1.AnnotationUpdated, got, v1alpha1.UpdatingEviction)
	}
	fixture.Check(t, []fixture.Row{{Name: "a member that returned from an eviction and is not Ready is lost at its deadline",
		World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").Annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingEviction)).On("n1").Starting(), fixture.B(), fixture.C()),
		Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossStartup)}}})
}

func TestManyAreRecreatedInBatches(t *testing.T) {
	var things []fixture.Thing
	for i := range rules.RecreateBatch + 5 {
		things = append(things, fixture.Pod(fmt.Sprintf("m%04d", i)).On("n1").Ready().Of("old"))
	}
	all := int32(rules.RecreateBatch + 5)
	p := fixture.PlanOf(fixture.Seen(fixture.Set("db").Replicas(all).MaxUnavailable(int(all)), append(things, fixture.OldCommand())...))
	if len(p.Updating) != rules.RecreateBatch || len(p.Steps[2]) != rules.RecreateBatch {
		t.Errorf("%d entries and %d deletes in one pass, want %d", len(p.Updating), len(p.Steps[2]), rules.RecreateBatch)
	}
	fixture.Check(t, []fixture.Row{{Name: "a refused deletion for an update waits for its retry",
		World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Refused(facts.ReasonUpdate, "policy", time.Minute)), Wait: time.Minute}})
}
