package rules_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestDecideOrders tests that an order in the spec has the effect of its annotation, once for each
// id.
func TestDecideOrders(t *testing.T) {
	asked := func() *fixture.PodFixture {
		return fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second)
	}
	at := func(n int) *fixture.PodFixture { return fixture.Pod(n).Secondary().Sequence("9") }
	to := v1alpha1.OrderSwitchoverTo
	refused := func(text string) []string {
		return []string{"patch status of replicatedstatefulset db: Refused, " + text}
	}
	fixture.Check(t, []fixture.Row{
		{"RS-102 record an order before it is carried out", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.InSpec(to, "rss-db-1", "a")), []string{noted}},
		{"RS-102 carry out a recorded order", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting)), []string{"0: Demote, with 0"}},
		{"RS-102 an order is done when the member is primary", fixture.WorldOf(fixture.SetOf(3, 1), at(0), fixture.Pod(1).Primary(), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderStarted)),
			[]string{"patch status of replicatedstatefulset db: Override, 1 is primary, as requested"}},
		{"RS-102 an order that is done is not repeated", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderDone)), nil},
		{"RS-102 a refused order is not repeated", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderRefused)), nil},
		{"RS-102 an order is not repeated when its id returns after another one", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.OnRecord(to, "rss-db-2", "b", v1alpha1.OrderDone), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderDone)), nil},
		{"RS-102 another id is another order", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.OnRecord(to, "rss-db-1", "a", v1alpha1.OrderDone), fixture.InSpec(to, "rss-db-1", "b")), []string{noted}},
		{"RS-102 the id of a seed order does not block a switchover order", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.OnRecord(v1alpha1.OrderSeedFrom, "rss-db-1", "a", v1alpha1.OrderDone), fixture.InSpec(to, "rss-db-1", "a")), []string{noted}},
		{"RS-102 a started order without effect is retried", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderStarted)), []string{"0: Demote, with 0"}},
		{"RS-102 a started order is refused when the old primary lost its role", fixture.WorldOf(fixture.SetOf(3, 1), at(0), at(1), fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderStarted)),
			refused("1 was not promoted: the former primary was already stopped or demoted for it; current primary: 2" + overIt)},
		{"RS-102 a started order is refused when the old primary is primary again", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderStarted), grantedSince(30*time.Second)),
			refused("1 was not promoted: the former primary was already stopped or demoted for it; current primary: 0" + overIt)},
		{"RS-102 a started order is refused after a failed demotion", fixture.WorldOf(fixture.SetOf(3, 1), asked().Failures(1, "demote", 1, false), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderStarted)),
			refused("1 was not promoted: demote of 0 failed with exit code 1" + overIt)},
		{"RS-102 an order of a missing member is refused", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-7", v1alpha1.OrderWaiting)),
			refused("7 was not promoted: no such member" + overIt)},
		{"RS-102 an order waits while a member is missing", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), fixture.Pod(2).Pending(), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting)), nil},
		{"RS-102 an order waits while the set is paused", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting), paused2), nil},
		{"RS-102 an order is refused when the annotation names another member", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-2")),
			refused("1 was not promoted: annotation clusterlabs.org/switchover-to names 2" + overIt)},
		{"RS-102 an order is carried out when the annotation names the same member", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
		{"RS-102 a waiting order that was removed from the spec is dropped", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.OnRecord(to, "rss-db-1", "a", v1alpha1.OrderWaiting), observed), []string{noted}},
		{"RS-102 a started order that was removed from the spec is refused", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.OnRecord(to, "rss-db-1", "a", v1alpha1.OrderStarted), observed),
			refused("1 was not promoted: order a was removed from spec.switchoverTo while it was in progress" + overIt)},
		{"RS-103 an order in a new object is ignored", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.InSpec(to, "rss-db-1", "a"), generation(1, 1)),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an order that was added before the first observation is ignored", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.InSpec(to, "rss-db-1", "a"), generation(2, -1)),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an order that waited in a restored object is ignored", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting), generation(1, 9)),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an order of an object whose first spec could not be decoded is ignored after the correction", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.InSpec(to, "rss-db-1", "a"), fixture.With(func(w *facts.World) {
			w.Set.Generation, w.Set.Status.ObservedGeneration, w.Set.Status.Phase = 2, 1, v1alpha1.PhaseNone
		})),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an ignored order stays ignored when the object changes", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.SwitchingTo("rss-db-1", v1alpha1.OrderIgnored)), nil},
		{"RS-102 an order with an invalid id is ignored", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.InSpec(to, "rss-db-1", "No ID")), nil},
		{"RS-102 an order of a member of another set is ignored", fixture.WorldOf(fixture.SetOf(3, 1), asked(), at(1), at(2), fixture.InSpec(to, "rss-other-1", "a")), nil},
	})
}
