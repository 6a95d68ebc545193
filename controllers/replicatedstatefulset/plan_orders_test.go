package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// inSpec adds an order to the spec of an object that the operator has observed before.
func inSpec(name v1alpha1.OrderName, member, id string) thing {
	return with(func(w *facts.World) {
		w.Set.Status.ObservedGeneration = 2
		o := &v1alpha1.MemberOrder{Member: member, ID: id}
		if name == v1alpha1.OrderSeedFrom {
			w.Set.Spec.SeedFrom = o
		} else {
			w.Set.Spec.SwitchoverTo = o
		}
	})
}

// onRecord adds the recorded result of an order. A started one takes the role of rss-db-0.
func onRecord(name v1alpha1.OrderName, member, id string, result v1alpha1.OrderResult) thing {
	return with(func(w *facts.World) {
		x := v1alpha1.OrderStatus{Order: name, ID: id, Member: member, Result: result, Time: metaTime(time.Minute)}
		if result == v1alpha1.OrderStarted && name == v1alpha1.OrderSwitchoverTo {
			since := metav1.NewMicroTime(ago(time.Hour))
			x.From, x.GrantedAt = "rss-db-0", &since
		}
		w.Set.Status.Orders = append(w.Set.Status.Orders, x)
	})
}

// orderOf adds an order to the spec, with its recorded result.
func orderOf(name v1alpha1.OrderName, member string, result v1alpha1.OrderResult) thing {
	return with(func(w *facts.World) {
		inSpec(name, member, "a").Into(w)
		onRecord(name, member, "a", result).Into(w)
	})
}

func switchingTo(member string, result v1alpha1.OrderResult) thing {
	return orderOf(v1alpha1.OrderSwitchoverTo, member, result)
}

func seedingFrom(member string, result v1alpha1.OrderResult) thing {
	return orderOf(v1alpha1.OrderSeedFrom, member, result)
}

const (
	overIt = ". To retry, give the order a new id"
	noted  = "patch status of replicatedstatefulset db: Learned"
)

// TestDecideOrders tests that an order in the spec has the effect of its annotation, once for each
// id.
func TestDecideOrders(t *testing.T) {
	asked := func() *podFixture {
		return pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second)
	}
	at := func(n int) *podFixture { return pod(n).secondary().sequence("9") }
	to := v1alpha1.OrderSwitchoverTo
	refused := func(text string) []string {
		return []string{"patch status of replicatedstatefulset db: Refused, " + text}
	}
	check(t, []row{
		{"RS-102 record an order before it is carried out", worldOf(setOf(3, 1), asked(), at(1), at(2), inSpec(to, "rss-db-1", "a")), []string{noted}},
		{"RS-102 carry out a recorded order", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderWaiting)), []string{"0: Demote, with 0"}},
		{"RS-102 an order is done when the member is primary", worldOf(setOf(3, 1), at(0), pod(1).primary(), at(2), switchingTo("rss-db-1", v1alpha1.OrderStarted)),
			[]string{"patch status of replicatedstatefulset db: Override, 1 is primary, as requested"}},
		{"RS-102 an order that is done is not repeated", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderDone)), nil},
		{"RS-102 a refused order is not repeated", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderRefused)), nil},
		{"RS-102 an order is not repeated when its id returns after another one", worldOf(setOf(3, 1), asked(), at(1), at(2), onRecord(to, "rss-db-2", "b", v1alpha1.OrderDone), switchingTo("rss-db-1", v1alpha1.OrderDone)), nil},
		{"RS-102 another id is another order", worldOf(setOf(3, 1), asked(), at(1), at(2), onRecord(to, "rss-db-1", "a", v1alpha1.OrderDone), inSpec(to, "rss-db-1", "b")), []string{noted}},
		{"RS-102 the id of a seed order does not block a switchover order", worldOf(setOf(3, 1), asked(), at(1), at(2), onRecord(v1alpha1.OrderSeedFrom, "rss-db-1", "a", v1alpha1.OrderDone), inSpec(to, "rss-db-1", "a")), []string{noted}},
		{"RS-102 a started order without effect is retried", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderStarted)), []string{"0: Demote, with 0"}},
		{"RS-102 a started order is refused when the old primary lost its role", worldOf(setOf(3, 1), at(0), at(1), pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), switchingTo("rss-db-1", v1alpha1.OrderStarted)),
			refused("1 was not promoted: the former primary was already stopped or demoted for it; current primary: 2" + overIt)},
		{"RS-102 a started order is refused when the old primary is primary again", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderStarted), grantedSince(30*time.Second)),
			refused("1 was not promoted: the former primary was already stopped or demoted for it; current primary: 0" + overIt)},
		{"RS-102 a started order is refused after a failed demotion", worldOf(setOf(3, 1), asked().failures(1, "demote", 1, false), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderStarted)),
			refused("1 was not promoted: demote of 0 failed with exit code 1" + overIt)},
		{"RS-102 an order of a missing member is refused", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-7", v1alpha1.OrderWaiting)),
			refused("7 was not promoted: no such member" + overIt)},
		{"RS-102 an order waits while a member is missing", worldOf(setOf(3, 1), asked(), at(1), pod(2).pending(), switchingTo("rss-db-1", v1alpha1.OrderWaiting)), nil},
		{"RS-102 an order waits while the set is paused", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderWaiting), paused2), nil},
		{"RS-102 an order is refused when the annotation names another member", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderWaiting), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-2")),
			refused("1 was not promoted: annotation clusterlabs.org/switchover-to names 2" + overIt)},
		{"RS-102 an order is carried out when the annotation names the same member", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderWaiting), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
		{"RS-102 a waiting order that was removed from the spec is dropped", worldOf(setOf(3, 1), asked(), at(1), at(2), onRecord(to, "rss-db-1", "a", v1alpha1.OrderWaiting), observed), []string{noted}},
		{"RS-102 a started order that was removed from the spec is refused", worldOf(setOf(3, 1), asked(), at(1), at(2), onRecord(to, "rss-db-1", "a", v1alpha1.OrderStarted), observed),
			refused("1 was not promoted: order a was removed from spec.switchoverTo while it was in progress" + overIt)},
		{"RS-103 an order in a new object is ignored", worldOf(setOf(3, 1), asked(), at(1), at(2), inSpec(to, "rss-db-1", "a"), generation(1, 1)),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an order that was added before the first observation is ignored", worldOf(setOf(3, 1), asked(), at(1), at(2), inSpec(to, "rss-db-1", "a"), generation(2, -1)),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an order that waited in a restored object is ignored", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderWaiting), generation(1, 9)),
			[]string{"learned: 1 was not promoted: spec.switchoverTo already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-103 an ignored order stays ignored when the object changes", worldOf(setOf(3, 1), asked(), at(1), at(2), switchingTo("rss-db-1", v1alpha1.OrderIgnored)), nil},
		{"RS-102 an order with an invalid id is ignored", worldOf(setOf(3, 1), asked(), at(1), at(2), inSpec(to, "rss-db-1", "No ID")), nil},
		{"RS-102 an order of a member of another set is ignored", worldOf(setOf(3, 1), asked(), at(1), at(2), inSpec(to, "rss-other-1", "a")), nil},
	})
}

// TestDecideSeedOrders tests that a seed order, which loses data that only other members have, is
// never carried out twice for one id.
func TestDecideSeedOrders(t *testing.T) {
	from := v1alpha1.OrderSeedFrom
	check(t, []row{
		{"RS-102 record a seed order before it is carried out", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), inSpec(from, "rss-db-1", "a")), []string{noted}},
		{"RS-102 carry out a recorded seed order", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), seedingFrom("rss-db-1", v1alpha1.OrderWaiting)), []string{"1: Seed, alone"}},
		{"RS-102 a seed order is done when the member has its grant", worldOf(setOf(3, 1), pod(0).idle(), pod(1).granted().runs("seed", time.Second), pod(2).pending(), seedingFrom("rss-db-1", v1alpha1.OrderStarted)),
			[]string{"patch status of replicatedstatefulset db: Override, 1 is being seeded, as requested"}},
		{"RS-102 a started seed order is not retried", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), seedingFrom("rss-db-1", v1alpha1.OrderStarted)),
			[]string{"patch status of replicatedstatefulset db: Refused, 1 was not seeded: it was started and did not become primary" + overIt}},
		{"RS-102 a seed order that is done is not repeated", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle().sequence("7"), pod(2).pending(), seedingFrom("rss-db-1", v1alpha1.OrderDone)), []string{"0 asked sequence"}},
		{"RS-103 a seed order in a new object is ignored", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), inSpec(from, "rss-db-1", "a"), generation(1, -1)),
			[]string{"learned: 1 was not seeded: spec.seedFrom already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-102 a seed order is refused while a primary runs", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), seedingFrom("rss-db-1", v1alpha1.OrderWaiting)),
			[]string{"patch status of replicatedstatefulset db: Refused, 1 was not seeded: a primary is running or may be running" + overIt}},
	})
}

var (
	observed = with(func(w *facts.World) { w.Set.Status.ObservedGeneration = 2 })
	paused2  = with(func(w *facts.World) { w.Set.Spec.Paused = true })
)

func generation(is, seen int64) thing {
	return with(func(w *facts.World) { w.Set.Generation, w.Set.Status.ObservedGeneration = is, seen })
}

// grantedSince sets the age of all grants, so that it differs from the grant in a started order.
func grantedSince(age time.Duration) thing {
	return with(func(w *facts.World) {
		for i := range w.Set.Status.Grants {
			w.Set.Status.Grants[i].Since = metav1.NewMicroTime(ago(age))
		}
	})
}

// writtenBefore returns the orders in the status that is written before a command of the plan is
// sent.
func writtenBefore(t *testing.T, p *rules.Plan, command string) []v1alpha1.OrderStatus {
	t.Helper()
	var last []v1alpha1.OrderStatus
	for _, step := range p.Steps {
		for _, chain := range step {
			for _, a := range chain {
				if a.Verb == action.PatchStatus {
					last = a.Object.(*v1alpha1.ReplicatedStatefulSet).Status.Orders
				}
				if a.Verb == action.Exec && a.Command.Name == command {
					return last
				}
			}
		}
	}
	t.Fatalf("no %s is sent in\n%s", command, strings.Join(p.Steps.Strings(), "\n"))
	return nil
}

// TestOrdersAreBegunOnRecord tests RS-102: the write that precedes the first command of an order
// records that the order was started.
func TestOrdersAreBegunOnRecord(t *testing.T) {
	demotes := rules.Decide(worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9"),
		switchingTo("rss-db-1", v1alpha1.OrderWaiting)))
	got := writtenBefore(t, &demotes, v1alpha1.CommandDemote)
	if len(got) != 1 || got[0].Result != v1alpha1.OrderStarted || got[0].From != "rss-db-0" || got[0].GrantedAt == nil || !got[0].Time.Time.Equal(noon) {
		t.Errorf("the orders that are recorded before the demotion are %+v", got)
	}
	seeds := rules.Decide(worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), seedingFrom("rss-db-1", v1alpha1.OrderWaiting)))
	if got = writtenBefore(t, &seeds, v1alpha1.CommandSeed); len(got) != 1 || got[0].Result != v1alpha1.OrderStarted {
		t.Errorf("the orders that are recorded before the seed are %+v", got)
	}
}

// TestOrdersAreBounded tests that the last 16 orders of each kind are remembered, the newest first.
func TestOrdersAreBounded(t *testing.T) {
	w := worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary())
	seedingFrom("rss-db-1", v1alpha1.OrderDone).Into(w)
	for i := range 40 {
		inSpec(v1alpha1.OrderSwitchoverTo, "rss-db-1", fmt.Sprintf("n%d", i)).Into(w)
		f := facts.Derive(w)
		w.Set.Status.Orders = f.Record.Orders.Ended(f.Now, f.Record.Orders.Open(v1alpha1.OrderSwitchoverTo), v1alpha1.OrderDone, "")
	}
	var ids []string
	for _, x := range w.Set.Status.Orders {
		ids = append(ids, x.ID)
	}
	if len(ids) != order.Most+1 || ids[0] != "n39" || ids[15] != "n24" || !slices.Contains(ids, "a") {
		t.Errorf("the recorded orders are %v", ids)
	}
}
