package observe_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

// TestMemoryKnowsWhoseGrantWentLast tests that a proven stop of the primary applies to the last
// primary only.
func TestMemoryKnowsWhoseGrantWentLast(t *testing.T) {
	r := &observe.Reader{}
	seen := func(holders ...types.UID) types.UID {
		set := fixture.SetOf(3, 2)
		set.UID = "set"
		for _, uid := range holders {
			set.Status.Grants = append(set.Status.Grants, v1alpha1.Grant{UID: uid})
		}
		w := &facts.World{Set: set}
		r.Recall(w)
		return w.LossOf
	}
	for _, row := range []struct {
		says    string
		holders []types.UID
		want    types.UID
	}{
		{"all grants exist", []types.UID{"a", "b", "c"}, ""},
		{"one grant was removed", []types.UID{"b", "c"}, "a"},
		{"no further grant was removed", []types.UID{"b", "c"}, "a"},
		{"two grants were removed at once", nil, ""},
		{"a grant returned after two were removed at once", []types.UID{"a"}, ""},
		{"the returned grant was removed", nil, "a"},
	} {
		if got := seen(row.holders...); got != row.want {
			t.Errorf("%s: the last removed grant is of %q, want %q", row.says, got, row.want)
		}
	}
}

// TestMemoryKeepsTheProofOfAStop tests that a proven stop of the last primary is remembered after its pod was
// recreated, as in a rollout with slow passes.
func TestMemoryKeepsTheProofOfAStop(t *testing.T) {
	grant := v1alpha1.Grant{Pod: "rss-db-0", UID: "a", ContainerID: "c1", Since: metav1.NewMicroTime(fixture.Ago(time.Hour))}
	stop := func(ended time.Duration, change func(*podexec.Result)) *podexec.Result {
		r := &podexec.Result{Command: podexec.Command{Name: v1alpha1.CommandStop, UID: "a", ContainerID: "c1", Proven: true}, Outcome: podexec.Succeeded, Ended: fixture.Ago(ended)}
		change(r)
		return r
	}
	as := func(*podexec.Result) {}
	for _, row := range []struct {
		name   string
		result *podexec.Result
		want   bool
	}{
		{"a proven stop", stop(time.Second, as), true},
		{"no stop", nil, false},
		{"a stop without proof", stop(time.Second, func(r *podexec.Result) { r.Proven = false }), false},
		{"a failed stop", stop(time.Second, func(r *podexec.Result) { r.Outcome = podexec.Failed }), false},
		{"a stop before the grant", stop(2*time.Hour, as), false},
		{"a stop in an earlier container", stop(time.Second, func(r *podexec.Result) { r.ContainerID = "c0" }), false},
		{"a stop of another member", stop(time.Second, func(r *podexec.Result) { r.UID = "b" }), false},
	} {
		r := &observe.Reader{}
		pass := func(grants []v1alpha1.Grant, uid types.UID, result *podexec.Result) bool {
			set := fixture.SetOf(3, 1)
			set.UID, set.Status.Grants = "set", grants
			m := &facts.Member{Results: map[string]podexec.Result{}}
			m.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-0", UID: uid}}
			if result != nil {
				m.Results[v1alpha1.CommandStop] = *result
			}
			w := &facts.World{Clock: facts.Clock{Now: fixture.Noon}, Set: set, Members: facts.Members{m}}
			r.Recall(w)
			return w.LossProven
		}
		if pass([]v1alpha1.Grant{grant}, "a", nil) || pass([]v1alpha1.Grant{grant}, "a", row.result) {
			t.Errorf("%s: a loss is proven while the grant exists", row.name)
		}
		for _, when := range []string{"removed", "removed before"} { // the pod was recreated meanwhile
			if got := pass(nil, "new", nil); got != row.want {
				t.Errorf("%s, and the grant was %s: proven %v, want %v", row.name, when, got, row.want)
			}
		}
		next := grant
		next.UID, next.Since = "new", metav1.NewMicroTime(fixture.Noon)
		if pass([]v1alpha1.Grant{next}, "new", nil); pass(nil, "new", nil) {
			t.Errorf("%s: the loss of the next grant is proven by it", row.name)
		}
	}
}
