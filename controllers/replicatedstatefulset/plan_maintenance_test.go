package replicatedstatefulset

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// listed adds members to spec.maintenance.
func listed(ordinals ...int) thing {
	return with(func(w *facts.World) {
		for _, n := range ordinals {
			w.Set.Spec.Maintenance = append(w.Set.Spec.Maintenance, spec.MemberName(w.Set, n))
		}
	})
}

// in adds a member to spec.maintenance with a recorded state.
func in(state v1alpha1.MaintenanceState, ordinal int) thing {
	return with(func(w *facts.World) {
		listed(ordinal).Into(w)
		w.Set.Status.Maintenance = append(w.Set.Status.Maintenance, v1alpha1.MemberMaintenance{Pod: spec.MemberName(w.Set, ordinal), State: state, Since: metaTime(time.Minute)})
	})
}

func parkedNow(ordinal int) thing { return in(v1alpha1.MaintenanceParked, ordinal) }

func toBeParked(ordinal int) thing { return in(v1alpha1.MaintenanceHandingOver, ordinal) }

// unlabelled sets the labels of a parked member, which has no role, whatever runs in it.
func (f *podFixture) unlabelled() *podFixture {
	f.labels = map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	return f
}

// TestDecideMaintenance tests that a parked member gets queries only.
func TestDecideMaintenance(t *testing.T) {
	at := func(n int) *podFixture { return pod(n).secondary().later("9") }
	idle := func(n int) *podFixture { return pod(n).idle().sequence("9") }
	check(t, []row{
		{"RS-89 record that a listed member is parked, and remove its role label", worldOf(setOf(3, 1), pod(0).primary(), at(1), at(2), listed(2)),
			[]string{"learned: 2 is parked, as spec.maintenance requires", "patch pod 2: Role, none"}},
		{"RS-89 remove the role label of a parked secondary", worldOf(setOf(3, 1), pod(0).primary(), at(1), at(2), parkedNow(2)), []string{"patch pod 2: Role, none"}},
		{"RS-89 no start of a parked member", worldOf(setOf(3, 1), pod(0).primary(), at(1), idle(2), parkedNow(2)), nil},
		{"RS-89 no stop of a failed, parked member", worldOf(setOf(3, 1), pod(0).primary(), at(1), pod(2).status(1), parkedNow(2)), nil},
		{"RS-89 no recreation of a parked member after many failures", worldOf(setOf(3, 1), pod(0).primary(), at(1), pod(2).status(1).failures(9, "stop", 1, true), parkedNow(2)), nil},
		{"RS-89 no update of a parked member", worldOf(setOf(3, 1), pod(0).primary(), at(1), idle(2).outdated(), parkedNow(2)), nil},
		{"RS-89 no update of another member while one is parked", worldOf(setOf(3, 1), pod(0).primary(), at(1).outdated(), idle(2), parkedNow(2)), nil},
		{"RS-89 query the status of a parked member", worldOf(setOf(3, 1), pod(0).primary(), at(1), pod(2), parkedNow(2)), []string{"2 asked status"}},
		{"RS-89 no removal of a parked member", worldOf(setOf(3, 1), pod(0).primary(), at(1), at(2).unlabelled(), parkedNow(2), replicas(2)), nil},
		{"RS-89 no removal of another member while a parked one should be removed", worldOf(setOf(3, 1), pod(0).primary(), at(1), at(2).unlabelled(), parkedNow(2), replicas(0)), nil},
		{"RS-89 a listed member is not parked while a command is running in it", worldOf(setOf(3, 1), pod(0).primary(), at(1), pod(2).idle().runs("secondary", time.Second), listed(2)), []string{"patch status of replicatedstatefulset db: Learned"}},
		{"RS-89 record that a member that left the list is not parked", worldOf(setOf(3, 1), pod(0).primary(), at(1), idle(2), with(func(w *facts.World) {
			w.Set.Status.Maintenance = []v1alpha1.MemberMaintenance{{Pod: "rss-db-2", State: v1alpha1.MaintenanceParked}}
		})), []string{"learned: 2 is no longer parked"}},
		{"RS-89 a parked member is stopped when the object is deleted", worldOf(setOf(2, 1), pod(0).primary().sequence("9"), at(1), parkedNow(1), deletedSince(time.Minute)), []string{"learned: 1 is no longer parked"}},

		{"RS-90 demote a listed primary before it is parked", worldOf(setOf(3, 1), pod(0).primary().sequence("9"), at(1), at(2), toBeParked(0)), []string{"0: Demote, with 0"}},
		{"RS-90 demote a listed primary when one of its successors is parked", worldOf(setOf(3, 1), pod(0).primary().sequence("9"), at(1).unlabelled(), at(2), toBeParked(0), parkedNow(1)), []string{"0: Demote, with 0"}},
		{"RS-90 keep a listed primary when all other members are parked", worldOf(setOf(2, 1), pod(0).primary().sequence("9"), at(1).unlabelled(), toBeParked(0), parkedNow(1)), nil},
		{"RS-90 keep a listed primary while the successor lags, and query it again", worldOf(setOf(2, 1), pod(0).primary().sequence("9"), pod(1).secondary().sequence("8"), toBeParked(0)), []string{"1 asked sequence"}},
		{"RS-90 keep a listed primary while a member is missing", worldOf(setOf(3, 1), pod(0).primary().sequence("9"), at(1), pod(2).pending(), toBeParked(0)), nil},
		{"RS-90 keep a listed primary while paused", worldOf(setOf(2, 1), pod(0).primary().sequence("9"), at(1), toBeParked(0), with(func(w *facts.World) { w.Set.Spec.Paused = true })), nil},
		{"RS-90 demote a listed primary with evictionPolicy Allow", worldOf(allowing(setOf(3, 1)), pod(0).primary().sequence("9"), at(1), at(2), toBeParked(0)), []string{"0: Demote, with 0"}},
		{"RS-90 stop a listed primary when all members are primary", worldOf(setOf(3, 3), pod(0).primary(), pod(1).primary(), pod(2).primary(), toBeParked(2)), []string{"2: Stop, with 0 1 2"}},
		{"RS-90 keep the last running primary although it is listed", worldOf(setOf(2, 2), pod(0).primary(), pod(1).idle(), toBeParked(0), parkedNow(1)), nil},
		{"RS-90 among equal sequences, promote a member that is not listed", worldOf(setOf(3, 1), at(0), at(1), at(2), toBeParked(0)), []string{"1: Promote, alone"}},
		{"RS-90 promote a listed member that has the newest copy", worldOf(setOf(3, 1), at(0), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("8"), toBeParked(0)), []string{"0: Promote, alone"}},
		{"RS-90 park a demoted member when another one runs as primary", worldOf(setOf(3, 1), at(0), pod(1).primary(), at(2), toBeParked(0)),
			[]string{"learned: 0 is parked, as spec.maintenance requires", "patch pod 0: Role, none"}},
		{"RS-90 no parking of a demoted member while the promotion of another one is in progress", worldOf(setOf(3, 1), at(0), pod(1).granted().runs("promote", time.Second), at(2), toBeParked(0)), nil},
		{"RS-90 a parked member that a user started as primary is not parked", worldOf(setOf(3, 1), pod(0).status(8), at(1), at(2), parkedNow(0)),
			[]string{"learned: 0 was found running as primary; 0 is no longer parked"}},
		{"RS-90 demote the listed one of two primaries", worldOf(setOf(3, 1), pod(0).primary().sequence("9"), pod(1).primary().sequence("9"), at(2), toBeParked(0)), []string{"0: Demote, with 0 1"}},
		{"RS-90 no promotion of a listed member when another primary is wanted", worldOf(setOf(4, 2), pod(0).primary(), at(1), at(2), at(3), toBeParked(1)), []string{"2: Promote, with 0"}},

		{"RS-91 hand over for a drain while a member is parked", worldOf(setOf(3, 1), pod(0).primary().cordoned().sequence("9"), at(1), idle(2), parkedNow(2)), []string{"0: Demote, with 0"}},
		{"RS-91 promote the newest member that is not parked", worldOf(setOf(3, 1), pod(0).crashed(), at(1), at(2).unlabelled(), parkedNow(2)), []string{"1: Promote, alone"}},
		{"RS-91 no promotion while a parked secondary is newer", worldOf(setOf(3, 1), pod(0).crashed(), at(1), pod(2).secondary().later("10").unlabelled(), parkedNow(2)), nil},
		{"RS-91 no promotion while a parked, idle member is newer", worldOf(setOf(3, 1), pod(0).crashed(), at(1), pod(2).idle().sequence("10"), parkedNow(2)), nil},
		{"RS-91 query the sequence of a parked member before a promotion", worldOf(setOf(3, 1), pod(0).crashed(), at(1), pod(2).idle(), parkedNow(2)), []string{"2 asked sequence"}},
		{"RS-91 seed the former primary when the parked member is not newer", worldOf(setOf(2, 1), idle(0), at(1).unlabelled(), parkedNow(1)), []string{"0: Seed, alone"}},
		{"RS-91 no seed of the former primary when the parked member is newer", worldOf(setOf(2, 1), pod(0).idle().sequence("8"), at(1).unlabelled(), parkedNow(1)), nil},
		{"RS-91 seed when the sequence of the parked member is known and lower", worldOf(setOf(3, 1), idle(0), idle(1), pod(2).idle().sequence("3"), parkedNow(2)), []string{"0: Seed, alone"}},
		{"RS-91 no seed when the parked member has the newest copy", worldOf(setOf(3, 1), idle(0), idle(1), pod(2).idle().sequence("10"), parkedNow(2)), nil},
		{"RS-91 refuse seed-from for a parked member", worldOf(setOf(2, 1), pod(0).idle().sequence("8"), idle(1), parkedNow(1), annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")),
			[]string{"patch replicatedstatefulset db: Refused, 1 was not seeded: it is in spec.maintenance; remove it from that list first"}},
		{"RS-91 seed-from seeds a member that is not parked", worldOf(setOf(2, 1), pod(0).idle().sequence("8"), idle(1), parkedNow(1), annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")), []string{"0: Seed, alone"}},
		{"RS-90 refuse switchover-to for a parked member", worldOf(setOf(2, 1), pod(0).primary().sequence("9"), at(1).unlabelled(), parkedNow(1), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")),
			[]string{"patch replicatedstatefulset db: Refused, 1 was not promoted: it is in spec.maintenance; remove it from that list first"}},
		{"RS-91 carry out a switchover between members that are not parked", worldOf(setOf(3, 1), pod(0).primary().sequence("9"), at(1), pod(2).status(1), parkedNow(2), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
	})
}

// TestNothingIsSentToAParkedMember tests the safeguard in send.
func TestNothingIsSentToAParkedMember(t *testing.T) {
	f := facts.Derive(worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), parkedNow(1)))
	p := rules.Plan{On: f, Record: f.Record, Asked: map[string]bool{}}
	if p.Send(f, f.Members[1], "stop", "stop", "the caller forgot to ask"); p.Acts() > 0 {
		t.Errorf("the plan is %q", gist(&p))
	}
}

// TestMaintenance tests that the conditions list the parked members, what parking means, and how to
// end it.
func TestMaintenance(t *testing.T) {
	const end = "kubectl -n ns patch rss db --type=merge -p '{\"spec\":{\"maintenance\":null}}'"
	leaving := func() *podFixture { return pod(0).primary().sequence("9") }
	for _, r := range []struct {
		name         string
		world        *facts.World
		kind, reason string
		says         []string
	}{
		{"no member is listed", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary()), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoMaintenance, nil},
		{"RS-92 a member is parked", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle(), parkedNow(1)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonParked, []string{"parked: rss-db-1; they get no command except status and sequence", end}},
		{"RS-92 a listed member has no pod yet", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), parkedNow(7)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuchMember, []string{"without a pod, and parked when it is created: rss-db-7", end}},
		{"RS-92 a listed member belongs to another set", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), with(func(w *facts.World) { w.Set.Spec.Maintenance = []string{"rss-db-1-0"} })), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuchMember, []string{"no member of this set can have the name rss-db-1-0; correct it", end}},
		{"RS-92 a listed primary waits for a successor", worldOf(setOf(2, 1), leaving(), pod(1).secondary().sequence("8"), toBeParked(0)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonHandingOver,
			[]string{"rss-db-0 is primary and will be parked when another member has its role: waiting for rss-db-1 to catch up with rss-db-0"}},
		{"RS-92 a listed primary waits for the end of its demote", worldOf(setOf(2, 1), leaving().runs("demote", time.Second), pod(1).secondary(), toBeParked(0), with(func(w *facts.World) { w.Set.Status.Members.Primary = []string{"rss-db-0"} })), v1alpha1.ConditionMaintenance, v1alpha1.ReasonHandingOver,
			[]string{"rss-db-0 is primary and will be parked when another member has its role: waiting for command demote"}},
		{"RS-92 Progressing is True while a listed primary waits", worldOf(setOf(2, 1), leaving(), pod(1).secondary().sequence("8"), toBeParked(0)), v1alpha1.ConditionProgressing, v1alpha1.ReasonHandingOver, nil},
		{"RS-92 all possible successors are parked", worldOf(setOf(2, 1), leaving(), pod(1).idle(), toBeParked(0), parkedNow(1)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuccessor,
			[]string{"rss-db-1 (it is in spec.maintenance)", "parked: rss-db-1", "{\"spec\":{\"paused\":true}}"}},
		{"RS-92 a listed primary is the only member", worldOf(setOf(1, 1), leaving(), toBeParked(0)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuccessor, []string{"it has no secondary, so no other member has its data"}},
		{"RS-92 a listed member waits for the end of a command", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().runs("secondary", time.Second), listed(1)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonWaitingForCommand, []string{"rss-db-1 will be parked when its command has ended"}},
		{"RS-92 the set is Ready while a failed secondary is parked", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1), parkedNow(1)), v1alpha1.ConditionReady, v1alpha1.ReasonOnTarget, nil},
		{"the set is Ready while one of three primaries is parked", worldOf(setOf(3, 3), pod(0).primary(), pod(1).primary(), pod(2).idle(), parkedNow(2)), v1alpha1.ConditionReady, v1alpha1.ReasonOnTarget, nil},
		{"the set is not Available without a primary", worldOf(setOf(2, 2), pod(0).idle(), pod(1).idle(), parkedNow(0), parkedNow(1)), v1alpha1.ConditionAvailable, v1alpha1.ReasonBelowTarget, nil},
		{"Degraded does not report a parked member", worldOf(setOf(2, 1), pod(0).primary(), pod(1).silent(9), parkedNow(1)), v1alpha1.ConditionDegraded, v1alpha1.ReasonHealthy, nil},
		{"RS-91 a failover waits for the copy of a parked secondary", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().later("9"), pod(2).secondary().later("10"), parkedNow(2)), v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing,
			[]string{"rss-db-2 has the newest copy, sequence 10, and is in spec.maintenance"}},
		{"RS-91 a failover waits for the recorded copy of a parked member", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().later("9"), pod(2).idle(), parkedNow(2), recordedSequence("rss-db-2", "10")), v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing,
			[]string{"rss-db-2 had 10 and is in spec.maintenance"}},
		{"RS-91 a seed waits for the copy of a parked member", worldOf(setOf(2, 1), pod(0).idle().sequence("9"), pod(1).idle().sequence("10"), parkedNow(1)), v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, []string{"is in spec.maintenance"}},
		{"RS-89 a scale-down waits for a parked member", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle(), parkedNow(1), replicas(1)), v1alpha1.ConditionProgressing, v1alpha1.ReasonScaling, []string{"spec.maintenance: rss-db-1"}},
		{"RS-89 an update waits for a parked member", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().outdated(), parkedNow(1)), v1alpha1.ConditionProgressing, v1alpha1.ReasonUpdating, []string{"members in spec.maintenance: rss-db-1"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			c := meta.FindStatusCondition(status.Summarize(&p).Conditions, r.kind)
			if c == nil || c.Reason != r.reason {
				t.Fatalf("the condition is %+v", c)
			}
			for _, text := range r.says {
				if !strings.Contains(c.Message, text) {
					t.Errorf("the message lacks %q: %s", text, c.Message)
				}
			}
			if r.kind == v1alpha1.ConditionMaintenance && (c.Status == metav1.ConditionTrue) == (r.reason == v1alpha1.ReasonNoMaintenance) {
				t.Errorf("the condition is %s", c.Status)
			}
		})
	}
}

// TestMaintenanceOnRecord tests that a parked member stays parked after a restart of the operator.
func TestMaintenanceOnRecord(t *testing.T) {
	w := worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), parkedNow(2), with(func(w *facts.World) {
		w.Set.Spec.Maintenance = append(w.Set.Spec.Maintenance, "rss-other-1", "rss-db-01", "rss-db-2")
	}))
	p := rules.Decide(w)
	s := status.Summarize(&p)
	if len(s.Maintenance) != 1 || !s.Maintenance[0].Since.Time.Equal(ago(time.Minute)) {
		t.Errorf("status.maintenance is %+v", s.Maintenance)
	}
	if s.ReadyReplicas != 2 || slices.Contains(s.Members.Failed, "rss-db-2") {
		t.Errorf("%d members are ready, and the failed ones are %v", s.ReadyReplicas, s.Members.Failed)
	}
}
