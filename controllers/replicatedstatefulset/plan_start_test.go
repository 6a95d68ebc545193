package replicatedstatefulset

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestWhyAMemberIsNotStarted tests that each start check has a separate reason.
func TestWhyAMemberIsNotStarted(t *testing.T) {
	ready := func() *podFixture { return pod(1).idle().sequence("3") }
	for _, r := range []struct {
		pod  *podFixture
		want string
	}{
		{ready(), ""},
		{pod(1).secondary(), ""},
		{ready().onNode(off), "its Node is unreachable"},
		{ready().strange(), "its pod belongs to another object"},
		{ready().crashed(), "its container is not running"},
		{ready().deleted(), "its pod is being deleted"},
		{pod(3).idle(), "it is being scaled down"},
		{ready().began("stop", time.Second), "waiting for command stop"},
		{ready().failures(1, "primary", 1, true), "primary failed, and the member must be stopped first"},
		{pod(1), "status has not responded"},
		{pod(1).status(1), "status reports that it failed"},
		{pod(1).primary(), "it is primary"},
		{ready().failures(1, "seed", 3, false), "seed reported with exit code 3 that the member cannot run in this pod"},
		{ready().but(func(w *facts.World) { w.Members[1].Pod.Finalizers = nil }), "its pod has no finalizer yet"},
		{ready().failures(5, "secondary", 1, false).lately(time.Second), "backing off until 12:00:15"},
	} {
		f := facts.Derive(worldOf(setOf(2, 1), pod(0).primary(), r.pod))
		if got := f.Members[1].Hindrance; got != r.want {
			t.Errorf("%s is not started because %q, want %q", f.Members[1].Name(), got, r.want)
		}
	}
	p := rules.Decide(worldOf(setOf(1, 1), pod(0).idle().sequence("9").failures(5, v1alpha1.CommandSeed, 1, false).lately(time.Second)))
	if want := "cannot start rss-db-0, which has the newest data: backing off until 12:00:15"; p.Waiting.Message != want {
		t.Errorf("the status is %q, want %q", p.Waiting.Message, want)
	}
}
