package rules_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// grows returns a set whose StatefulSet was created with claims of one size, and which requests
// another size now.
func grows(from, to string) *v1alpha1.ReplicatedStatefulSet {
	set := fixture.SetOf(2, 1)
	set.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{fixture.ClaimSized("data", to)}
	set.Annotations = map[string]string{"made with": from}
	return set
}

// there adds a claim of that phase that lacks our labels, so that no cache has it.
func there(name, size string, phase corev1.PersistentVolumeClaimPhase) fixture.Thing {
	c := fixture.ClaimSized(name, size)
	c.Status.Phase = phase
	return fixture.With(func(w *facts.World) {
		if w.Claims == nil {
			w.Claims = map[string]*corev1.PersistentVolumeClaim{}
		}
		w.Claims[name] = &c
		was := fixture.ClaimSized("data", w.Set.Annotations["made with"])
		w.Stateful.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{was}
	})
}

// TestClaimsGrow tests RS-88: claims grow with their templates, whatever else is in progress, and
// change in no other way.
func TestClaimsGrow(t *testing.T) {
	const bound = corev1.ClaimBound
	grown := func(pod string) string {
		return "patch persistentvolumeclaim data-" + pod + ": Expand, grows to 2Gi"
	}
	members := func(more ...fixture.Thing) []fixture.Thing {
		return append([]fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()}, more...)
	}
	fixture.Check(t, []fixture.Row{
		{"two smaller claims", fixture.WorldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", bound), there("data-rss-db-1", "1Gi", bound))...), []string{grown("0"), grown("1")}},
		{"one of two claims has the wanted size", fixture.WorldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "2Gi", bound), there("data-rss-db-1", "1Gi", bound))...), []string{grown("1")}},
		{"a claim that a user made larger", fixture.WorldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "5Gi", bound))...), nil},
		{"a claim without a volume", fixture.WorldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", corev1.ClaimPending))...), nil},
		{"a claim with another name", fixture.WorldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-2", "1Gi", bound))...), nil},
		{"a template with a smaller size that bypassed admission", fixture.WorldOf(grows("2Gi", "1Gi"), members(there("data-rss-db-0", "2Gi", bound))...), nil},
		{"a claim that was smaller when the set was created", fixture.WorldOf(grows("2Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", bound))...), nil},
		{"a paused set", fixture.WorldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", bound), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true }))...), []string{grown("0")}},
		{"the claim of a foreign pod", fixture.WorldOf(grows("1Gi", "2Gi"), fixture.Pod(0).Primary(), fixture.Pod(1).Strange(), there("data-rss-db-1", "1Gi", bound)), nil},
	})
}

// TestAGrownClaim tests RS-88: an older claim gets our labels with its new size, and keeps its own
// labels.
func TestAGrownClaim(t *testing.T) {
	p := rules.Decide(fixture.WorldOf(grows("1Gi", "2Gi"), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), there("data-rss-db-0", "1Gi", corev1.ClaimBound),
		fixture.With(func(w *facts.World) { w.Claims["data-rss-db-0"].Labels = map[string]string{"mine": "yes"} })))
	a := fixture.LastOf(&p)[0]
	if labels := a.Object.GetLabels(); labels["mine"] != "yes" || labels[v1alpha1.LabelManaged] != v1alpha1.True || !a.Unchanged {
		t.Errorf("%+v", a)
	}
	if was := a.From.(*corev1.PersistentVolumeClaim); len(was.Labels) != 1 {
		t.Error("the claim that was read was modified")
	}
}

// deletingScaled makes the StatefulSet delete the claims of members that are scaled down.
var deletingScaled = fixture.With(func(w *facts.World) {
	w.Stateful.Spec.PersistentVolumeClaimRetentionPolicy = children.Retention("Delete")
})

// TestWhenScaled tests RS-93: the StatefulSet's policy is Delete from the patch that lowers
// replicas to a number other than 0, until the pods are gone. Otherwise it is Retain, and
// whenDeleted is always Retain.
func TestWhenScaled(t *testing.T) {
	two := func() []fixture.Thing {
		return []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().Sequence("9")}
	}
	gone := func(more ...fixture.Thing) []fixture.Thing {
		return append(two(), append(more, fixture.Replicas(2))...)
	}
	to := func(n int32) fixture.Thing {
		return fixture.With(func(w *facts.World) { w.Stateful.Spec.Replicas = &n })
	}
	unseen := fixture.With(func(w *facts.World) { w.Stateful.Generation = 7 })
	before := fixture.SetOf(3, 1)
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string // the policy in the patch of the StatefulSet; "" if there is no patch
	}{
		{"a member is scaled down", fixture.WorldOf(fixture.Retaining(fixture.Keep, fixture.Discard), gone(fixture.Pod(2).Idle())...), "Delete"},
		{"the pod of a removed member is terminating", fixture.WorldOf(fixture.Retaining(fixture.Keep, fixture.Discard), gone(fixture.Pod(2).Idle().Deleted(), to(2), deletingScaled)...), ""},
		{"the change of the StatefulSet is not observed yet", fixture.WorldOf(fixture.Retaining(fixture.Keep, fixture.Discard), gone(to(2), deletingScaled, unseen)...), ""},
		{"the pods of all removed members are gone", fixture.WorldOf(fixture.Retaining(fixture.Keep, fixture.Discard), gone(to(2), deletingScaled)...), "Retain"},
		{"the policy was changed to Retain during a scale-down", fixture.WorldOf(fixture.Retaining(fixture.Keep, fixture.Keep), gone(fixture.Pod(2).Idle().Deleted(), to(2), deletingScaled)...), "Retain"},
		{"the set is stopped", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Discard), fixture.Pod(0).Idle(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle(), fixture.Replicas(0)), "Retain"},
		{"the set is stopped right after a scale-down", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Discard), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Idle(), fixture.Pod(2).Idle(), fixture.Replicas(0), deletingScaled), "Retain"},
		{"the object is deleted", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Discard), fixture.Pod(0).Idle(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle(), fixture.DeletedSince(time.Minute)), "Retain"},
		{"the set is scaled up", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Discard), append(two(), fixture.Pod(2).Secondary(), fixture.Replicas(4))...), "Retain"},
		{"a scale-down with Retain", fixture.WorldOf(fixture.Retaining(fixture.Keep, fixture.Keep), gone(fixture.Pod(2).Idle())...), "Retain"},
		{"a scale-down without a policy", fixture.WorldOf(before, gone(fixture.Pod(2).Idle())...), "Retain"},
		{"no scale-down", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Discard), append(two(), fixture.Pod(2).Secondary())...), ""},
		{"a user set Delete on the StatefulSet", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Keep), append(two(), fixture.Pod(2).Secondary(), deletingScaled)...), "Retain"},
	} {
		t.Run("RS-93 "+r.name, func(t *testing.T) {
			p, got := rules.Decide(r.world), ""
			for _, chain := range slices.Concat(p.Steps...) {
				s, ok := chain[0].Object.(*appsv1.StatefulSet)
				if !ok {
					continue
				}
				said := s.Spec.PersistentVolumeClaimRetentionPolicy
				got = string(said.WhenScaled)
				if said.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
					t.Errorf("whenDeleted of the StatefulSet is not Retain")
				}
				if from := chain[0].From.(*appsv1.StatefulSet); from.Spec.Template.Annotations[v1alpha1.AnnotationTemplate] != s.Spec.Template.Annotations[v1alpha1.AnnotationTemplate] {
					t.Error("the patch changes the template hash")
				}
			}
			if got != r.want {
				t.Errorf("whenScaled is %q, want %q: %v", got, r.want, fixture.Gist(&p))
			}
		})
	}
}
