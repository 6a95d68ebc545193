package rules_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// undoneBudget makes a policy that reverted the budget a moment ago.
func undoneBudget() fixture.Thing {
	return fixture.With(func(w *facts.World) {
		w.Budget.UID = "budget"
		wanted := w.Budget.DeepCopy()
		w.Budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		patch := action.Action{Verb: action.Patch, Object: wanted, From: w.Budget.DeepCopy()}
		var known undone.Memory
		known.Held(w.Set.Generation, w.Now)
		known.Learn([]action.Outcome{{Action: patch, Answer: w.Budget.DeepCopy()}}, w.Now)
		w.Undone = known.Held(w.Set.Generation, w.Now)
	})
}

func TestNothingIsDone(t *testing.T) {
	deleted := fixture.Set("db")
	deleted.DeletionTimestamp = ptr.To(fixture.Ago(time.Second))
	fixture.Check(t, []fixture.Row{
		{Name: "SC-34 a set that matches its spec has no steps", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C())},
		{Name: "a set that is being deleted has no steps", World: fixture.Seen(deleted, fixture.A().NodeGone())},
		{Name: "SC-28 a set with an invalid spec has no steps, and its pods keep running", World: fixture.Seen(fixture.Set("d.b"), fixture.A().NodeGone(), fixture.B(), fixture.C())},
		{Name: "a foreign pod causes no steps", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) { w.Foreign = []string{"stray"} }))},
		{Name: "SC-4 a set with replicas 0 has no steps", World: fixture.Seen(fixture.Set("db").Replicas(0))},
	})
}

// otherName returns the name that the plan gives a new revision, which must not be taken.
func otherName(t *testing.T, w *facts.World, taken string) string {
	t.Helper()
	got := fixture.FirstWritten(w).GetName()
	if got == taken {
		t.Errorf("the name %s of the new revision is in use", got)
	}
	return got
}

func TestLabelsComeBack(t *testing.T) {
	world := fixture.Seen(fixture.Set("db"), fixture.A().Labelled(v1alpha1.LabelMember, ""), fixture.B(), fixture.C())
	fixture.Check(t, []fixture.Row{{Name: "a member whose labels were removed remains a member and its labels are restored",
		World: world, Want: []string{"patch pod db-a: Relabel, membership depends on the owner, not on labels"}}})
	patched := fixture.FirstWritten(world).GetLabels()
	if patched[v1alpha1.LabelMember] != "a" || patched["app"] != "db" || patched[spec.LabelRevision] != "now" {
		t.Errorf("the patched labels are %v", patched)
	}
}

// The first rule that has something to do acts alone.
func TestRulesComeInOrder(t *testing.T) {
	everything := func() *facts.World {
		return fixture.Seen(fixture.Set("db").KeepsEvicted().ReplacesInOutage().Image("two").MaxConcurrent("3"),
			fixture.With(func(w *facts.World) { w.Budget = nil }),
			fixture.Pod("a").Aged(time.Minute).Labelled(v1alpha1.LabelMember, "").On("n1").Starting().Of("v1"),
			fixture.Pod("b").On("n1").Ready().Of("v1").Evicted(),
			fixture.Pod("c").WithoutClaims().Of("v1"),
			fixture.Pod("d").On("n4").Ready().NodeGone().Of("v1"),
			fixture.Updating("e", "uid-of-e", "v1"), fixture.LooseClaimOf("e"), fixture.LooseClaimOf("x"), fixture.DeletedByUser("x"),
			fixture.RevisionOfImage("v1", "one"))
	}
	// Each remedy removes the cause on which the previous rule acted.
	remedies := []struct {
		rule   string
		remedy func(*facts.World)
	}{
		{"restore the operator's labels", func(w *facts.World) { w.Members[0].Pod.Labels[v1alpha1.LabelMember] = "a" }},
		{"keep evicted members", func(w *facts.World) { fixture.Updating("b", "uid-of-b", "v1").Into(w) }},
		{"create missing claims", func(w *facts.World) { w.Members[2].Claims = fixture.ClaimsOf(w, "c") }},
		{"retire surplus members", func(w *facts.World) { w.Set.Spec.Replicas = ptr.To(int32(5)) }},
		{"recreate updated members", func(w *facts.World) {
			w.Set.Status.Updating, w.Loose = w.Set.Status.Updating[1:], w.Loose[1:]
		}},
		{"replace lost members", func(w *facts.World) { w.Members[3].Node = facts.Node{} }},
		{"create missing members", func(w *facts.World) { w.Set.Spec.Replicas = ptr.To(int32(4)) }},
		{"reconcile the disruption budget", func(w *facts.World) { w.Budget = children.BuildBudget(w.Settings, w.Replicas()) }},
		{"retain or delete claims of former members", func(w *facts.World) { w.Loose = nil }},
		{"update members", func(w *facts.World) {
			for _, m := range w.Members {
				m.Pod.Labels[spec.LabelRevision] = "now"
			}
		}},
		{"", func(*facts.World) {}},
	}
	w := everything()
	for _, r := range remedies {
		if got := fixture.PlanOf(w).Rule; got != r.rule {
			t.Fatalf("rule %q acts, want %q", got, r.rule)
		}
		r.remedy(w)
	}
}
