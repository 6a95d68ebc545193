package facts_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestV13WhatHelps tests that the message contains the remedy, and that the remedy does no harm.
func TestV13WhatHelps(t *testing.T) {
	for _, r := range []struct {
		name, condition string
		world           *facts.World
		want            []string
	}{
		{"a frozen primary with a probe", v1alpha1.ConditionDegraded, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Unready(2*time.Minute), fixture.Pod(1).Secondary()),
			[]string{"rss-db-0 is primary, but its pod has not been Ready since 2026-03-01T11:58:00Z", "kubectl -n ns describe pod rss-db-0", "kubectl -n ns delete pod rss-db-0"}},
		{"a frozen primary without a probe", v1alpha1.ConditionDegraded, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Hangs(time.Minute), fixture.Pod(1).Secondary()),
			[]string{"status does not respond: rss-db-0 (pending since 2026-03-01T11:59:00Z)", "kubectl -n ns exec rss-db-0 -c main -- /status rss-db-0.db-svc; echo $?", "kubectl -n ns delete pod rss-db-0"}},
		{"a stop that does nothing", v1alpha1.ConditionDegraded, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Failures(1, "stop", 0, false).Primary()),
			[]string{"stop of rss-db-1 failed: it exited with 0, but status did not confirm it", "kubectl -n ns exec rss-db-1 -c main -- /status"}},
		{"the reason why clients are not served", v1alpha1.ConditionAvailable, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Unready(2*time.Minute), fixture.Pod(1).Secondary()),
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
		{[]string{"sh", "-c", strings.Repeat("true; ", 100)}, "(command leave of the spec)"},
	} {
		if got := facts.Quoted(r.argv, "leave"); got != r.want {
			t.Errorf("V13 %q is shown as %s, want %s", r.argv, got, r.want)
		}
	}
}
