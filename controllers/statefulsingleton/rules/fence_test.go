package rules_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

func TestFencing(t *testing.T) {
	const deletesA = "delete pod a: Fenced, its Node n1 is out of service"
	off := fixture.GoneSince(time.Minute)
	fixture.Check(t, []fixture.Row{
		{"S23 an unreachable Node proves nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().OnNode(fixture.Unresponsive), fixture.Waiting("b")), nil},
		{"S23 a terminating pod on a Node that is out of service has stopped", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().OnNode(fixture.OutOfIt), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"S23 a pod on a Node that is out of service is deleted first, because it would start again with its machine", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).OnNode(fixture.OutOfIt), fixture.Waiting("b")), []string{deletesA}},
		{"S23 a holder without a grant on a Node that is out of service is deleted first", fixture.WorldOf(fixture.Held(), fixture.Waiting("a").OnNode(fixture.OutOfIt), fixture.Waiting("b")), []string{deletesA}},
		{"S23 a pod without the gate on a Node that is out of service is deleted first", fixture.WorldOf(fixture.Held(), fixture.Ungated("a").Protect().OnNode(fixture.OutOfIt), fixture.Waiting("b")), []string{deletesA}},
		{"S23 the taint is ignored once the Node is Ready again", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().OnNode(nodestate.Facts{Ready: true, OutOfService: true}), fixture.Waiting("b")), nil},
		{"S23 a pod on a Node that is out of service has stopped if pod garbage collection set its phase", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Collected().OnNode(fixture.OutOfIt), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"S23 a change of spec.containers does not affect the fencing of a pod", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Bare().Deleted().OnNode(fixture.OutOfIt), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"S23 a Node that has been missing for 59 s proves nothing", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().OnNode(fixture.GoneSince(59*time.Second)), fixture.Waiting("b")), nil},
		{"S23 a terminating pod on a Node that has been missing for a minute has stopped", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().OnNode(off), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"S23 a pod that pod garbage collection deleted has stopped when its Node has been missing for a minute", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().Collected().OnNode(off), fixture.Waiting("b")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"no pod starts on an unreachable Node", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").OnNode(fixture.Unresponsive)), nil},
		{"no pod starts on a Node that is out of service", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").OnNode(nodestate.Facts{Ready: true, OutOfService: true})), nil},
	})
	if p := rules.Decide(facts.Derive(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).OnNode(fixture.GoneSince(40*time.Second)), fixture.Waiting("b")))); p.Wait != 20*time.Second {
		t.Errorf("the requeue for a missing Node is after %s, want 20s", p.Wait)
	}
}
