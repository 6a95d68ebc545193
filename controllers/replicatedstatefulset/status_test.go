package replicatedstatefulset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// toldOf returns the status of a world as a user reads it: the phase, the members by role, and the
// conditions that are True.
func toldOf(w *facts.World) (line, reason string) {
	p := rules.Decide(w)
	s := status.Summarize(&p)
	var parts []string
	for _, list := range []struct {
		name  string
		names []string
	}{{"ready", s.Members.Ready}, {"unready", s.Members.Unready}, {"primary", s.Members.Primary}, {"secondary", s.Members.Secondary}, {"failed", s.Members.Failed}} {
		if len(list.names) > 0 {
			parts = append(parts, list.name+" "+strings.ReplaceAll(strings.Join(list.names, " "), "rss-db-", ""))
		}
	}
	var conditions []string
	for _, c := range s.Conditions {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled:
			continue // they follow from the others: see test/readiness
		}
		if c.Status == metav1.ConditionTrue {
			conditions = append(conditions, c.Type+"="+c.Reason)
		}
	}
	slices.Sort(conditions)
	return fmt.Sprintf("%s: %s; %s", s.Phase, strings.Join(parts, ", "), strings.Join(conditions, " ")), s.Reason
}

func TestStatus(t *testing.T) {
	for _, r := range []struct {
		name         string
		world        *facts.World
		want, reason string
	}{
		{"RS-13 a seed waits for a member", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending()),
			"Creating: ready 0 1, unready 2; Progressing=WaitingForPods", "waiting for the data version (command sequence) of 1 of 3 members"},
		{"RS-14 the newest member failed, and no other has its data", worldOf(setOf(2, 1), pod(0).idle().sequence("9").failures(1, "seed", 3, false), pod(1).idle().sequence("8")),
			"Creating: ready 0 1, failed 0; Degraded=MembersFailed Progressing=Recovering", "cannot start rss-db-0, which has the newest data: seed reported with exit code 3 that the member cannot run in this pod"},
		{"RS-15 the sequence of a member is unreadable", worldOf(setOf(2, 1), pod(0).idle().sequence("x"), pod(1).idle().sequence("8")),
			"Creating: ready 0 1; DataLossRisk=SequenceUnknown Progressing=Seeding", "data version unknown for rss-db-0 (sequence must print one unsigned integer, but printed something else (1 bytes))"},
		{"RS-15 the sequence of a member is being queried", worldOf(setOf(2, 1), pod(0).idle(), pod(1).idle().sequence("8")),
			"Creating: ready 0 1; Progressing=Seeding", "data version unknown for rss-db-0: waiting for a response from sequence"},
		{"a primary reports that it is degraded", worldOf(setOf(2, 1), pod(0).status(191).granted(), pod(1).secondary()),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Degraded=MembersDegraded Seeded=Seeded", "status reports degraded members (exit code 190 or 191): rss-db-0"},
		{"RS-19 the start of a primary failed", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).primary(), pod(2).idle().failures(1, "primary", 1, true)),
			"Running: ready 0 1 2, primary 0 1, failed 2; Degraded=MembersFailed Progressing=Recovering Seeded=Seeded", "failed: rss-db-2"},
		{"RS-35 the majority is lost, and the primary keeps running", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary().onNode(off), pod(2).secondary().onNode(off)),
			"Running: ready 0, unready 1 2, primary 0; Available=OnTarget Progressing=Recovering Seeded=Seeded", "not running, or not responding: rss-db-1, rss-db-2"},
		{"RS-38 too few replicas for a set that was stopped", worldOf(setOf(3, 1), replicas(2), with(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), "Paused: ; Paused=ReplicasTooLow", "Replica count (2) for rss-db is too low (should be 3 or higher)"},
		{"RS-41 a primary on a lost node", worldOf(setOf(2, 1), pod(0).granted().onNode(off), pod(1).secondary(), shown("rss-db-0")),
			"Running: ready 1, unready 0, secondary 1; Degraded=NodeUnreachable Progressing=WaitingForStop", "rss-db-0 may be primary on Node n1, which is unreachable, and no other member takes over until it has stopped. " +
				"If the machine is off, mark the Node as out of service: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"},
		{"W13 a primary on a Node that does not exist any more", worldOf(setOf(2, 1), pod(0).granted().onNode(nodestate.Facts{Missing: true, MissingSince: noon}), pod(1).secondary(), shown("rss-db-0")),
			"Running: ready 1, unready 0, secondary 1; Degraded=NodeUnreachable Progressing=WaitingForStop", "rss-db-0 may be primary on Node n1, which no longer exists. " +
				"Another member takes over when the Node has been missing for 1m0s; if its machine is still running, power it off"},
		{"RS-43 a new operator shows the previous status before its first queries", worldOf(setOf(2, 1), pod(0).granted(), pod(1), shown("rss-db-0", "rss-db-1")),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget", "primary: rss-db-0"},
		{"RS-45 paused by a user", worldOf(setOf(2, 1), with(func(w *facts.World) { w.Set.Spec.Paused = true }), pod(0).primary(), pod(1).secondary()),
			"Paused: ready 0 1, primary 0, secondary 1; Available=OnTarget Paused=PausedByUser Seeded=Seeded", "spec.paused is true: no command is run, and the number of pods does not change"},
		{"RS-51 the set is healthy", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary()),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Seeded=Seeded", "primary: rss-db-0"},
		{"an update before the StatefulSet has the template", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), with(func(w *facts.World) { w.Set.Spec.Pod.Containers[0].Image = "next" })),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Progressing=Updating Seeded=Seeded", rules.UpdatingMessage},
		{"an update before the StatefulSet's controller has observed it", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), with(func(w *facts.World) { w.Stateful.Generation = 2 })),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Progressing=Updating Seeded=Seeded", rules.UpdatingMessage},
		{"a newer copy is missing", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), recordedSequence("rss-db-2", "10"), shown("")),
			"Running: ready 0 1; DataLossRisk=NewestCopyMissing Progressing=Recovering",
			"the newest available copy has sequence 9, but rss-db-2 had 10; no member is started until that copy is available, or annotation clusterlabs.org/seed-from names another member"},
	} {
		t.Run(r.name, func(t *testing.T) {
			line, reason := toldOf(r.world)
			if line != r.want {
				t.Errorf("the status is\n  %s\nwant\n  %s", line, r.want)
			}
			if reason != r.reason {
				t.Errorf("the reason is\n  %s\nwant\n  %s", reason, r.reason)
			}
		})
	}
}

// shown sets the status that a previous operator left: a primary, and secondaries.
func shown(primary string, secondaries ...string) thing {
	return with(func(w *facts.World) {
		w.Set.Status.Epoch = 1
		w.Set.Status.Members.Primary, w.Set.Status.Members.Secondary = []string{primary}, secondaries
	})
}

func TestRS50AStatusIsOfThisWorldOnly(t *testing.T) {
	well := func(things ...thing) *facts.World {
		return worldOf(setOf(2, 1), append(things, pod(0).primary(), pod(1).secondary())...)
	}
	statusOf := func(w *facts.World) v1alpha1.ReplicatedStatefulSetStatus {
		p := rules.Decide(w)
		return status.Summarize(&p)
	}
	clean := statusOf(well())
	junk := statusOf(well(with(func(w *facts.World) {
		s := &w.Set.Status
		s.Members = v1alpha1.Members{Ready: []string{"x"}, Unready: []string{"rss-db-0"}, Primary: []string{"rss-db-1"}, Secondary: []string{"rss-db-0"}, Failed: []string{"rss-db-1"}}
		s.Replicas, s.Primaries, s.PrimariesWanted, s.ControlPaused, s.Phase, s.Reason = 9, 9, 9, true, v1alpha1.PhaseFailed, "junk"
		for _, kind := range []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing, v1alpha1.ConditionDataLossRisk, v1alpha1.ConditionPaused} {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Junk"})
		}
	})))
	slices.SortFunc(junk.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	slices.SortFunc(clean.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	if !apiequality.Semantic.DeepEqual(clean, junk) {
		t.Errorf("RS-50, RS-51: invalid fields and old conditions stay:\n%+v\nwant\n%+v", junk, clean)
	}
	w := well()
	w.Set.Status = clean
	w.Now = w.Now.Add(time.Second)
	if again := statusOf(w); !apiequality.Semantic.DeepEqual(clean, again) {
		t.Errorf("RS-50: the status of an unchanged world changed:\n%+v\nwant\n%+v", again, clean)
	}
}

func TestRS5TheEffectiveNumbersAreInTheStatus(t *testing.T) {
	for _, r := range []struct {
		name                string
		replicas, primaries *int32
		want                int
	}{
		{"defaults", nil, nil, 3},
		{"one replica", ptr.To(int32(1)), nil, 1},
		{"primaries follow replicas", ptr.To(int32(5)), nil, 5},
		{"two primaries of five replicas", ptr.To(int32(5)), ptr.To(int32(2)), 2},
		{"no primaries and no replicas", ptr.To(int32(0)), ptr.To(int32(0)), 0},
		{"no primaries of two replicas", ptr.To(int32(2)), ptr.To(int32(0)), 1},
	} {
		t.Run(r.name, func(t *testing.T) {
			set := setOf(1, 1)
			set.Spec.Replicas, set.Spec.Primaries = r.replicas, r.primaries
			w := worldOf(set)
			p := rules.Decide(w)
			if s := status.Summarize(&p); int(s.PrimariesWanted) != r.want {
				t.Errorf("primariesWanted is %d, want %d", s.PrimariesWanted, r.want)
			}
		})
	}
}

// labelsOf returns the role labels that a plan sets on pods, "" for none.
func labelsOf(p *rules.Plan) (lines []string) {
	for _, line := range gist(p) {
		if strings.Contains(line, ": Role, ") {
			lines = append(lines, strings.NewReplacer("patch pod ", "", ": Role,", "").Replace(line))
		}
	}
	return lines
}

func TestRoles(t *testing.T) {
	labelled := func(role string) func(*podFixture) *podFixture {
		return func(f *podFixture) *podFixture {
			f.labels = map[string]string{v1alpha1.LabelRole: role, v1alpha1.LabelActive: v1alpha1.True}
			if role == v1alpha1.RoleNone {
				f.labels[v1alpha1.LabelActive] = v1alpha1.False
			}
			return f
		}
	}
	none, second, first := labelled(v1alpha1.RoleNone), labelled(v1alpha1.RoleSecondary), labelled(v1alpha1.RolePrimary)
	for _, r := range []struct {
		name string
		pod  *podFixture
		want []string
	}{
		{"RS-53 an idle member is not active", first(pod(0).idle()), []string{"0 none"}},
		{"RS-53 a crashed member is not active", first(pod(0).crashed()), []string{"0 none"}},
		{"RS-53 a failed member is not active", second(pod(0).status(1)), []string{"0 none"}},
		{"RS-53 a new operator keeps the label of a secondary", second(pod(0)), nil},
		{"RS-53 a new operator keeps the label of a primary with a grant", first(pod(0).granted()), nil},
		{"RS-53 a new operator removes the label of a primary without a grant", first(pod(0)), []string{"0 none"}},
		{"RS-54 a primary gets its label", second(pod(0).primary()), []string{"0 primary"}},
		{"RS-54 a secondary gets its label", none(pod(0).secondary()), []string{"0 secondary"}},
		{"a correct label stays", first(pod(0).primary()), nil},
		{"the label stays while a stop is in progress", none(pod(0).primary().runs("stop", time.Second)), nil},
		{"the label stays while the node is unreachable", first(pod(0).primary().onNode(off)), nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(worldOf(setOf(2, 1), r.pod, pod(1).secondary()))
			if got := labelsOf(&p); !slices.Equal(got, r.want) {
				t.Errorf("the labels are %q, want %q; the plan is %q", got, r.want, gist(&p))
			}
		})
	}
}

// TestRS54TheLabelOfAPrimaryIsBound tests that the primary label is bound to the version of the
// pod. A label that an operator sent before it froze can arrive after the member was demoted. Only
// the primary label, which sends clients, does harm then. The others need not wait while a kubelet
// writes to the pod.
func TestRS54TheLabelOfAPrimaryIsBound(t *testing.T) {
	one, other := pod(0).primary(), pod(1).secondary()
	one.labels = map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	other.labels = one.labels
	p := rules.Decide(worldOf(setOf(2, 1), one, other))
	bound := map[string]bool{}
	for _, chain := range slices.Concat(p.Steps...) {
		for _, a := range chain {
			if a.Reason == facts.ReasonRole {
				bound[a.Detail] = a.Unchanged
			}
		}
	}
	if want := map[string]bool{v1alpha1.RolePrimary: true, v1alpha1.RoleSecondary: false}; !maps.Equal(bound, want) {
		t.Errorf("labels that are bound to the version of the pod that was read: %v, want %v", bound, want)
	}
}

// TestRS25AStopWaitsForTheLabel tests that a primary that has not got its label yet, and must stop,
// gets no clients while it stops.
func TestRS25AStopWaitsForTheLabel(t *testing.T) {
	surplus := pod(1).primary().sequence("1")
	surplus.labels = map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	p := rules.Decide(worldOf(setOf(1, 1), pod(0).primary().sequence("9"), surplus))
	if got, want := gist(&p), []string{"patch pod 1: Role, primary"}; !slices.Equal(got, want) {
		t.Errorf("the plan is %q, want %q without the stop", got, want)
	}
}

// TestRS25TheLabelsComeBeforeTheStop tests that the labels change before the stop is sent.
func TestRS25TheLabelsComeBeforeTheStop(t *testing.T) {
	for name, want := range map[string]string{"stop": v1alpha1.RoleNone, "demote": v1alpha1.RoleSecondary} {
		var w *facts.World
		if name == "stop" {
			w = worldOf(setOf(1, 1), pod(0).primary().sequence("1"), replicas(0))
		} else {
			w = worldOf(setOf(3, 1), pod(0).primary().sequence("3"), pod(1).primary().sequence("9"), pod(2).secondary())
		}
		p := rules.Decide(w)
		chain := p.Steps[0][0]
		if name == "demote" && chain[0].Reason == facts.ReasonBudget { // and before that, evictions are blocked
			chain = chain[1:]
		}
		first, last := chain[0], chain[len(chain)-1]
		labels := map[string]string{}
		if pod, ok := first.Object.(*corev1.Pod); ok {
			labels = pod.Labels
		}
		if len(chain) != 3 || labels[v1alpha1.LabelRole] != want || last.Command == nil || last.Command.Name != name {
			t.Errorf("%s: the chain is %v, want the label %s, the record, the command", name, p.Steps.Strings(), want)
		}
	}
}
