package replicatedstatefulset

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
)

// TestMessages tests that each message states the situation and its reason.
func TestMessages(t *testing.T) {
	sequence := func(outcome podexec.Outcome, code int, out string) *podFixture {
		return pod(0).idle().answered("sequence", outcome, code, out, 5*time.Second)
	}
	seen := with(func(w *facts.World) { w.Set.Status.Epoch = 2 })
	requested := annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")
	for _, r := range []struct {
		name, condition string
		world           *facts.World
		want            string
	}{
		{"V16 Seeded during a failover", v1alpha1.ConditionSeeded, worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9"), seen, lost(15*time.Second)),
			"NotSeeded: the primary of epoch 2 has stopped, and the next primary is being chosen"},
		{"V16 Seeded during a failover that waits for sequences", v1alpha1.ConditionSeeded, worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary(), pod(2).secondary().sequence("9"), seen, lost(15*time.Second)),
			"NotSeeded: waiting for a response from sequence in rss-db-1, rss-db-2"},
		{"V16 Seeded before the first start", v1alpha1.ConditionSeeded, worldOf(setOf(1, 1), pod(0).idle().sequence("9")), "NotSeeded: no member has been started yet"},
		{"V19 sequence failed", v1alpha1.ConditionSeeded, worldOf(setOf(1, 1), sequence(podexec.Failed, 3, "")), "SequenceUnknown: data version unknown for rss-db-0 (sequence failed with exit code 3)"},
		{"V19 sequence printed no number", v1alpha1.ConditionDataLossRisk, worldOf(setOf(1, 1), sequence(podexec.Succeeded, 0, "GTID 7-9\n")), `SequenceUnknown: data version unknown for rss-db-0 (sequence must print one unsigned integer, but printed something else (8 bytes))`},
		{"V19 sequence printed nothing", v1alpha1.ConditionDataLossRisk, worldOf(setOf(1, 1), sequence(podexec.Succeeded, 0, " \n")), "rss-db-0 (sequence must print one unsigned integer, but printed nothing)"},
		{"V19 sequence printed too many bytes", v1alpha1.ConditionDataLossRisk, worldOf(setOf(1, 1), sequence(podexec.Succeeded, 0, "7").cut()), "rss-db-0 (sequence must print one unsigned integer, but printed something else (more than 64 bytes))"},
		{"V19 the outcome of sequence is unknown", v1alpha1.ConditionSeeded, worldOf(setOf(1, 1), pod(0).idle().hung()), "SequenceUnknown: data version unknown for rss-db-0 (sequence: the stream broke)"},
		{"V23 a switchover waits for a pending pod", v1alpha1.ConditionProgressing, worldOf(setOf(3, 1), pod(0).primary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).pending(), requested),
			"HandingOver: the switchover to rss-db-1 (annotation clusterlabs.org/switchover-to) waits until no member is missing; missing: rss-db-2 (pending)"},
		{"V23 a switchover waits for a missing pod", v1alpha1.ConditionProgressing, worldOf(setOf(3, 1), pod(0).primary().sequence("9"), pod(1).secondary().sequence("9"), requested), "missing: 1 of 3 pods"},
		{"V23 a switchover waits for a running command", v1alpha1.ConditionProgressing, worldOf(setOf(3, 1), pod(0).primary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).runs("stop", time.Second), requested), "missing: rss-db-2 (command stop is in progress)"},
		{"V23 a switchover waits for a lagging successor", v1alpha1.ConditionProgressing, worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(1).secondary().sequence("8"), requested), "HandingOver: waiting for rss-db-1 to catch up with rss-db-0"},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			c := meta.FindStatusCondition(status.Summarize(&p).Conditions, r.condition)
			if got := c.Reason + ": " + c.Message; !strings.Contains(got, r.want) {
				t.Errorf("%s is %q, want %q", r.condition, got, r.want)
			}
		})
	}
	p := rules.Decide(worldOf(setOf(3, 1), pod(0).idle(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("9"), lost(15*time.Second), requested))
	if got, want := gist(&p), []string{"patch replicatedstatefulset db: Refused, 1 was not promoted: 2 has newer data. The former primary was already stopped or demoted for it; promoting 2"}; !slices.Equal(got, want) {
		t.Errorf("V17 the plan is %q, want %q", got, want)
	}
}

// TestV24ADrainedPrimaryIsNotAskedForItsCopy tests that a drained primary is stopped while its pod
// terminates. If all others run, it is not asked for its sequence, so a successor that lags takes
// over. Planned work without loss is a separate issue.
func TestV24ADrainedPrimaryIsNotAskedForItsCopy(t *testing.T) {
	check(t, []row{
		{"V24 stop a terminating primary at once", worldOf(setOf(3, 1), pod(0).primary().deleted(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("8")), []string{"0: Stop, alone"}},
		{"V24 promote a secondary when the terminating primary is idle", worldOf(setOf(3, 1), pod(0).changed("stop", 12*time.Second).idle().deleted(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("8"), lastStopped, lost(11*time.Second)),
			[]string{"1: Promote, alone"}},
	})
}

func TestV20WarningsOfAdmission(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.ReplicatedStatefulSet)
		want   string
	}{
		{"a timeout below the minimum", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "1s"}
		}, "spec.pod.commands[stop].timeout is 1s, which is replaced by 10s, the min; set 10s or more"},
		{"a reconcileInterval below the minimum", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ReconcileInterval = "10ms" },
			"spec.reconcileInterval is 10ms, which is replaced by 100ms, the min; set 100ms or more"},
		{"a timeout of 0", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "0"}
		}, ""},
		{"an empty ruleSelector", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.RuleSelector = &metav1.LabelSelector{} },
			"spec.ruleSelector is empty and selects every ConfigMap of the namespace"},
		{"a ruleSelector with a label", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.RuleSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, ""},
		{"RS-92 a missing member in maintenance", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Maintenance = []string{"rss-db-1", "rss-db-3"} },
			"spec.maintenance[1] is rss-db-3, and there is no such member; it will be parked when it is created. The members are rss-db-0 to rss-db-2"},
		{"an order with a typo", annotate(v1alpha1.Prefix + "switchover"),
			"metadata.annotations[clusterlabs.org/switchover] is unknown and ignored; the operator supports clusterlabs.org/seed-from and clusterlabs.org/switchover-to"},
		{"an order with another prefix", annotate("clusterlab.org/seed-from"), "metadata.annotations[clusterlab.org/seed-from] is unknown and ignored"},
		{"an order without a prefix", annotate("switchoverTo"), "metadata.annotations[switchoverTo] is unknown and ignored"},
		{"an annotation of another object", annotate("example.org/owner"), ""},
		{"an order", annotate(v1alpha1.AnnotationSeedFrom), ""},
	} {
		set := setOf(3, 1)
		r.change(set)
		warned := strings.Join(webhooks.Warnings(spec.WithDefaults(set)), "\n")
		if r.want == "" && warned != "" || !strings.HasPrefix(warned, r.want) {
			t.Errorf("V20 %s: the warning is %q, want %q", r.name, warned, r.want)
		}
	}
}

func annotate(key string) func(*v1alpha1.ReplicatedStatefulSet) {
	return func(s *v1alpha1.ReplicatedStatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, "rss-db-1") }
}

// TestOnlyWhatSequencePrintsIsKept tests that the operator keeps no output of commands except one
// number.
func TestOnlyWhatSequencePrintsIsKept(t *testing.T) {
	f := facts.Derive(worldOf(setOf(2, 1), pod(0).idle(), pod(1).idle()))
	for name := range f.Set.Spec.Pod.Commands {
		want := 0
		if name == v1alpha1.CommandSequence {
			want = spec.MaxSequence
		}
		if c := f.Command(f.Members[0], name, name, 0); c.Keep != want {
			t.Errorf("%s keeps %d bytes, want %d", name, c.Keep, want)
		}
	}
	for _, row := range []struct {
		prints podexec.Result
		number bool
	}{
		{podexec.Result{Outcome: podexec.Succeeded, Stdout: "18446744073709551615\n"}, true},
		{podexec.Result{Outcome: podexec.Succeeded, Stdout: "18446744073709551616\n"}, false},
		{podexec.Result{Outcome: podexec.Succeeded, Stdout: "7", Cut: true}, false},
	} {
		if _, ok := record.SequenceOf(row.prints); ok != row.number {
			t.Errorf("%q, cut %t: it is a number: %t", row.prints.Stdout, row.prints.Cut, ok)
		}
	}
}
