package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// losesLabels returns the text of the patch of a pod that is no member.
func losesLabels(id string) string { return "patch pod db-" + id + ": Foreign, it is not a member" }

// ofAnother is a pod with the set's labels that another object controls.
func ofAnother(id string) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		w.Labelled = append(w.Labelled, &corev1.Pod{ObjectMeta: fixture.Named("db-" + id)})
	})
}

func TestForeign(t *testing.T) {
	many := []fixture.Thing{fixture.A(), fixture.B(), fixture.C()}
	want := []string(nil)
	for range facts.MaxLabelled {
		many, want = append(many, fixture.Stray("x")), append(want, losesLabels("x"))
	}
	fixture.Check(t, []fixture.Row{
		{Name: "the operator's labels are removed from a pod of another owner", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), ofAnother("x")), Want: []string{losesLabels("x")}},
		{Name: "the operator's labels are removed from a pod without an owner and claims", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Stray("x")), Want: []string{losesLabels("x")}},
		{Name: "a pod without an owner but with the claims of a member keeps its labels until a user decides", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Orphan("x"))},
		{Name: "a foreign pod blocks no replacement", World: fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), ofAnother("x")), Want: append(fixture.Creates("f1"), losesLabels("x"))},
		{Name: "a pass removes labels from maxLabelled pods only", World: fixture.Seen(fixture.Set("db"), append(many, ofAnother("y"))...), Want: append([]string{losesLabels("y")}, want[1:]...)},
		{Name: "a refused patch is retried later", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Stray("x"), fixture.Refused(facts.ReasonForeign, "no", time.Minute)), Wait: time.Minute},
	})
}
