package rules_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestGuardsOfWhatGoes tests that pods and copies stay until they are no longer needed.
func TestGuardsOfWhatGoes(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"remove the finalizer of a terminating pod when its container has ended", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ended().Deleted()), []string{"patch pod 1: Release"}},
		{"keep the finalizer of a terminating pod while its container runs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Deleted()), nil},
		{"keep the finalizer of a terminating pod while an ephemeral container runs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ended().Deleted().But(debugged(
			corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))), nil},
		{"remove the finalizer of a terminating pod when its ephemeral container has ended", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ended().Deleted().But(debugged(
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}))), []string{"patch pod 1: Release"}},
		{"keep the finalizer of a terminating pod while it has a grant", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Ended().Deleted(), fixture.Pod(1).Secondary()), []string{"learned: 0 is not primary: its container has ended"}},
		{"no finalizer is added to a terminating pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Deleted().But(func(w *facts.World) { w.Members[1].Pod.Finalizers = nil })), nil},
		{"update the record before other decisions", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).WithGranted().Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Status(1)),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"RS-41 no handover to a terminating or unreachable member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("9").Deleted(), fixture.Pod(1).Secondary().Sequence("9").OnNode(fixture.Off),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Replicas(2)), nil},
		{"RS-14 no seed while a failed member is being stopped", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 1, true).WithRuns("stop", time.Second), fixture.Pod(1).Idle().Sequence("9")),
			nil},
		{"RS-20 no start as secondary while the start of a primary is in progress", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.Pod(2).WithGranted().WithRuns("primary", time.Second), fixture.Pod(3).Idle().Sequence("3")), nil},
		{"no promotion while a failed primary is being stopped", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Status(9).WithRuns("stop", time.Second), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"exit code 6 blocks starts in the next pod too", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("5"), fixture.With(func(w *facts.World) {
			w.Set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", UID: "former", Count: 1, Code: 6, Command: "secondary", Generation: 3}}
		})), nil},
		{"exit code 6 blocks no start after the spec was edited", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("5"), fixture.With(func(w *facts.World) {
			w.Set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", UID: "former", Count: 1, Code: 6, Command: "secondary", Generation: 2}}
		})), []string{"1: Secondary, with 0"}},
		{"RS-39 seed the last ordinal when it has the highest sequence", fixture.WorldOf(fixture.SetOf(5, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Sequence("3"), fixture.Pod(3).Idle().Sequence("3"), fixture.Pod(4).Idle().Sequence("4")),
			[]string{"4: Seed, alone"}},
	})
}

func TestRoles(t *testing.T) {
	labelled := func(role string) func(*fixture.PodFixture) *fixture.PodFixture {
		return func(f *fixture.PodFixture) *fixture.PodFixture {
			f.Labels = map[string]string{v1alpha1.LabelRole: role, v1alpha1.LabelActive: v1alpha1.True}
			if role == v1alpha1.RoleNone {
				f.Labels[v1alpha1.LabelActive] = v1alpha1.False
			}
			return f
		}
	}
	none, second, first := labelled(v1alpha1.RoleNone), labelled(v1alpha1.RoleSecondary), labelled(v1alpha1.RolePrimary)
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want []string
	}{
		{"RS-53 an idle member is not active", first(fixture.Pod(0).Idle()), []string{"0 none"}},
		{"RS-53 a crashed member is not active", first(fixture.Pod(0).Crashed()), []string{"0 none"}},
		{"RS-53 a failed member is not active", second(fixture.Pod(0).Status(1)), []string{"0 none"}},
		{"RS-53 a new operator keeps the label of a secondary", second(fixture.Pod(0)), nil},
		{"RS-53 a new operator keeps the label of a primary with a grant", first(fixture.Pod(0).WithGranted()), nil},
		{"RS-53 a new operator removes the label of a primary without a grant", first(fixture.Pod(0)), []string{"0 none"}},
		{"RS-54 a primary gets its label", second(fixture.Pod(0).Primary()), []string{"0 primary"}},
		{"RS-54 a secondary gets its label", none(fixture.Pod(0).Secondary()), []string{"0 secondary"}},
		{"a correct label stays", first(fixture.Pod(0).Primary()), nil},
		{"the label stays while a stop is in progress", none(fixture.Pod(0).Primary().WithRuns("stop", time.Second)), nil},
		{"the label stays while the node is unreachable", first(fixture.Pod(0).Primary().OnNode(fixture.Off)), nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), r.pod, fixture.Pod(1).Secondary()))
			if got := fixture.LabelsOf(&p); !slices.Equal(got, r.want) {
				t.Errorf("the labels are %q, want %q; the plan is %q", got, r.want, fixture.Gist(&p))
			}
		})
	}
}

// TestRS54TheLabelOfAPrimaryIsBound tests that the primary label is bound to the version of the
// pod. A label that an operator sent before it froze can arrive after the member was demoted. Only
// the primary label, which sends clients, does harm then. The others need not wait while a kubelet
// writes to the pod.
func TestRS54TheLabelOfAPrimaryIsBound(t *testing.T) {
	one, other := fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()
	one.Labels = map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	other.Labels = one.Labels
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), one, other))
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
	surplus := fixture.Pod(1).Primary().Sequence("1")
	surplus.Labels = map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary().Sequence("9"), surplus))
	if got, want := fixture.Gist(&p), []string{"patch pod 1: Role, primary"}; !slices.Equal(got, want) {
		t.Errorf("the plan is %q, want %q without the stop", got, want)
	}
}

// TestRS25TheLabelsComeBeforeTheStop tests that the labels change before the stop is sent.
func TestRS25TheLabelsComeBeforeTheStop(t *testing.T) {
	for name, want := range map[string]string{"stop": v1alpha1.RoleNone, "demote": v1alpha1.RoleSecondary} {
		var w *facts.World
		if name == "stop" {
			w = fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary().Sequence("1"), fixture.Replicas(0))
		} else {
			w = fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("3"), fixture.Pod(1).Primary().Sequence("9"), fixture.Pod(2).Secondary())
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
