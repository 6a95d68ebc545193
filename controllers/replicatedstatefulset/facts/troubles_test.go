package facts_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestTheMostImportantTrouble checks which of several problems is reported.
func TestTheMostImportantTrouble(t *testing.T) {
	invalid := fixture.With(func(w *facts.World) { w.Invalid = "spec.replicas" })
	foreign := fixture.With(func(w *facts.World) {
		w.Stateful.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "x", UID: "x"}}
	})
	failed := func() *fixture.PodFixture {
		return fixture.Pod(1).Idle().Failures(1, v1alpha1.CommandSecondary, 1, true)
	}
	for _, r := range []struct {
		name   string
		things []fixture.Thing
		want   string
	}{
		{"nothing", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()}, v1alpha1.ReasonHealthy},
		{"a degraded member", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Status(190)}, v1alpha1.ReasonMembersDegraded},
		{"a failed member", []fixture.Thing{fixture.Pod(0).Status(191).WithGranted(), failed()}, v1alpha1.ReasonMembersFailed},
		{"an unreachable Node", []fixture.Thing{fixture.Pod(0).Primary().OnNode(fixture.Off), failed()}, v1alpha1.ReasonNodeUnreachable},
		{"a StatefulSet of another owner", []fixture.Thing{fixture.Pod(0).Primary().OnNode(fixture.Off), failed(), foreign}, v1alpha1.ReasonForeignObject},
		{"an invalid spec", []fixture.Thing{fixture.Pod(0).Primary().OnNode(fixture.Off), failed(), foreign, invalid}, v1alpha1.ReasonInvalidSpec},
	} {
		c := facts.Trouble(facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.things...)))
		if c.Reason != r.want || (c.Status == metav1.ConditionTrue) != (r.want != v1alpha1.ReasonHealthy) {
			t.Errorf("%s: %s %s: %s", r.name, c.Status, c.Reason, c.Message)
		}
	}
}

func TestWhoHasFailed(t *testing.T) {
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want bool
	}{
		{"a member that runs", fixture.Pod(1).Secondary(), false},
		{"a failure that status reports", fixture.Pod(1).Status(1), true},
		{"a failed start that needs a stop", fixture.Pod(1).Idle().Failures(1, v1alpha1.CommandSecondary, 1, true), true},
		{"a failed start that was stopped", fixture.Pod(1).Idle().Failures(1, v1alpha1.CommandSecondary, 1, false), false},
		{"a member that cannot work in its pod", fixture.Pod(1).Idle().Failures(1, v1alpha1.CommandSecondary, 5, false).Lately(time.Hour), true},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), r.pod))
		if got := f.HasFailed(f.Members[1]); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}
