package rules_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestDecideDrain tests that a primary on a cordoned Node hands its role over, at rest only, and
// not to a member that is behind or should leave its Node too.
func TestDecideDrain(t *testing.T) {
	leaving := func() *fixture.PodFixture {
		return fixture.Pod(0).Primary().Cordoned().Sequence("9")
	}
	evicted := func() *fixture.PodFixture {
		return fixture.Pod(0).Primary().WasToGo(time.Minute).Sequence("9")
	}
	ready := func(n int) *fixture.PodFixture {
		return fixture.Pod(n).Secondary().Later("9")
	}
	fixture.Check(t, []fixture.Row{
		{"RS-64 hand over to a member whose Node is not cordoned", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1).Cordoned(), ready(2)), []string{"0: Demote, with 0"}},
		{"RS-64 no change for a secondary on a cordoned Node", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), ready(1).Cordoned(), ready(2)), nil},
		{"RS-65 no handover while all other Nodes are cordoned too", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1).Cordoned(), ready(2).Cordoned()), nil},
		{"RS-65 no handover while the successor lags; query it again", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), fixture.Pod(1).Secondary().Sequence("8"), ready(2).Cordoned()), []string{"1 asked sequence"}},
		{"RS-65 no handover to a degraded member", fixture.WorldOf(fixture.SetOf(2, 1), leaving(), fixture.Pod(1).Status(190).Later("9")), nil},
		{"RS-65 no handover while a member is missing", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1), fixture.Pod(2).Pending()), nil},
		{"RS-65 no handover while an update is in progress", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1), ready(2).Outdated()), []string{"2: Stop, with 0"}},
		{"RS-65 hand over to the member that a user requested", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1), ready(2), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-2")), []string{"0: Demote, with 0"}},
		{"RS-65 no handover while paused", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1), ready(2), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true })), nil},
		{"RS-65 no handover after demote failed", fixture.WorldOf(fixture.SetOf(3, 1), leaving().Failures(1, "demote", 1, false), ready(1), ready(2)), nil},
		{"RS-65 no handover within a minute after one that was undone", fixture.WorldOf(fixture.SetOf(3, 1), leaving().Changed("demote", 50*time.Second), ready(1), ready(2)), nil},
		{"retry a handover a minute after one that was undone", fixture.WorldOf(fixture.SetOf(3, 1), leaving().Changed("demote", 70*time.Second), ready(1), ready(2)), []string{"0: Demote, with 0"}},
		{"RS-66 no handover with evictionPolicy Allow", fixture.WorldOf(fixture.Allowing(fixture.SetOf(3, 1)), leaving(), ready(1), ready(2)), nil},
		{"RS-66 no handover when all members are primary", fixture.WorldOf(fixture.SetOf(2, 2), fixture.Pod(0).Primary().Cordoned(), fixture.Pod(1).Primary()), nil},
		{"RS-66 no handover without secondaries", fixture.WorldOf(fixture.SetOf(2, 1, "secondary", "promote", "demote"), leaving(), fixture.Pod(1).Idle().Sequence("9")), nil},
		{"RS-80 hand over after an eviction request", fixture.WorldOf(fixture.SetOf(3, 1), evicted(), ready(1).Cordoned(), ready(2)), []string{"0: Demote, with 0"}},
		{"RS-80 hand over after an eviction request with a time in the future", fixture.WorldOf(fixture.SetOf(2, 1), evicted().WasToGo(-time.Minute), ready(1)), []string{"0: Demote, with 0"}},
		{"RS-81 no handover after an expired eviction request", fixture.WorldOf(fixture.SetOf(2, 1), evicted().WasToGo(2*time.Minute), ready(1)), nil},
		{"RS-81 no handover to a member with an eviction request", fixture.WorldOf(fixture.SetOf(2, 1), evicted(), ready(1).WasToGo(0)), nil},
		{"RS-81 no handover after an eviction request while a member is missing", fixture.WorldOf(fixture.SetOf(3, 1), evicted(), ready(1), fixture.Pod(2).Pending()), nil},
		{"RS-81 no handover after an eviction request with evictionPolicy Allow", fixture.WorldOf(fixture.Allowing(fixture.SetOf(2, 1)), evicted(), ready(1)), nil},
		{"RS-81 no change for a secondary with an eviction request", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), ready(1).WasToGo(0)), nil},
		{"RS-80 among equal sequences, promote a member without an eviction request", fixture.WorldOf(fixture.SetOf(3, 1), ready(0).WasToGo(0), ready(1), ready(2)), []string{"1: Promote, alone"}},
		{"RS-64 among equal sequences, promote a member whose Node is not cordoned", fixture.WorldOf(fixture.SetOf(3, 1), ready(0).Cordoned(), ready(1), ready(2)), []string{"1: Promote, alone"}},
		{"W11 among equal sequences, promote a Ready member although its Node is cordoned", fixture.WorldOf(fixture.SetOf(3, 1), ready(0).Unready(time.Second), ready(1).Unready(time.Second), ready(2).Cordoned()), []string{"2: Promote, alone"}},
		{"W11 promote the newest copy although its pod is not Ready", fixture.WorldOf(fixture.SetOf(3, 1), ready(0).Unready(time.Second), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Secondary().Sequence("8")), []string{"0: Promote, alone"}},
		{"W11 hand over to a member whose pod is Ready", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1).Unready(time.Second), ready(2)), []string{"0: Demote, with 0"}},
		{"W11 no handover while no other pod is Ready", fixture.WorldOf(fixture.SetOf(3, 1), leaving(), ready(1).Unready(time.Second), ready(2).Unready(time.Second)), nil},
		{"RS-64 promote the newest copy although its Node is cordoned", fixture.WorldOf(fixture.SetOf(3, 1), ready(0).Cordoned(), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Secondary().Sequence("8")), []string{"0: Promote, alone"}},
		{"RS-64 promote an additional primary whose Node is not cordoned", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary(), ready(1).Cordoned(), ready(2), ready(3)), []string{"2: Promote, with 0"}},
	})
}

// handedOver returns the chain that begins the handover of the primary's role.
func handedOver(t *testing.T, w *facts.World) action.Chain {
	t.Helper()
	p := rules.Decide(w)
	for _, chain := range slices.Concat(p.Steps...) {
		if chain[len(chain)-1].Verb == action.Exec {
			return chain
		}
	}
	t.Fatalf("no role is handed over: %s", p.Steps.Strings())
	return nil
}
