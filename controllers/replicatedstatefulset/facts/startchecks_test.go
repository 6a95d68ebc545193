package facts_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestWhyAMemberIsNotStarted tests that each start check has a separate reason.
func TestWhyAMemberIsNotStarted(t *testing.T) {
	ready := func() *fixture.PodFixture { return fixture.Pod(1).Idle().Sequence("3") }
	for _, r := range []struct {
		pod  *fixture.PodFixture
		want string
	}{
		{ready(), ""},
		{fixture.Pod(1).Secondary(), ""},
		{ready().OnNode(fixture.Off), "its Node is unreachable"},
		{ready().Strange(), "its pod belongs to another object"},
		{ready().Crashed(), "its container is not running"},
		{ready().Deleted(), "its pod is being deleted"},
		{fixture.Pod(3).Idle(), "it is being scaled down"},
		{ready().Began("stop", time.Second), "waiting for command stop"},
		{ready().Failures(1, "primary", 1, true), "primary failed, and the member must be stopped first"},
		{fixture.Pod(1), "status has not responded"},
		{fixture.Pod(1).Status(1), "status reports that it failed"},
		{fixture.Pod(1).Primary(), "it is primary"},
		{ready().Failures(1, "seed", 3, false), "seed reported with exit code 3 that the member cannot run in this pod"},
		{ready().But(func(w *facts.World) { w.Members[1].Pod.Finalizers = nil }), "its pod has no finalizer yet"},
		{ready().Failures(5, "secondary", 1, false).Lately(time.Second), "secondary failed with exit code 1; backing off until 12:00:15"},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), r.pod))
		if got := f.Members[1].WhyNotStartable; got != r.want {
			t.Errorf("%s is not started because %q, want %q", f.Members[1].Name(), got, r.want)
		}
	}
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Idle().Sequence("9").Failures(5, v1alpha1.CommandSeed, 1, false).Lately(time.Second)))
	if want := "cannot start rss-db-0, which has the newest data: seed failed with exit code 1; backing off until 12:00:15"; p.Waiting.Message != want {
		t.Errorf("the status is %q, want %q", p.Waiting.Message, want)
	}
}
