package children_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

func claimsNamed(names ...string) (claims []corev1.PersistentVolumeClaim) {
	for _, name := range names {
		claims = append(claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return claims
}

// TestStoppedSetThatWasRestored tests RS-113: a stopped set whose former number of members is
// unknown gets the number from its claims. So it does not start without the newest copy.
func TestStoppedSetThatWasRestored(t *testing.T) {
	young := func(labels map[string]string) fixture.Thing {
		return fixture.With(func(w *facts.World) {
			claims := claimsNamed("data-rss-db-4")
			claims[0].CreationTimestamp, claims[0].Labels = fixture.MetaTime(0), labels
			w.MembersWithClaims = facts.CopiesIn(w, claims)
		})
	}
	found := fixture.With(func(w *facts.World) {
		w.MembersWithClaims = facts.CopiesIn(w, claimsNamed("data-rss-db-4", "data-rss-db-0", "logs-rss-db-7", "data-rss-db-x", "data-rss-db-01", "data-rss-other-9"))
	})
	diskless := fixture.With(func(w *facts.World) { w.Set.Spec.Pod.VolumeClaimTemplates = nil })
	had := func(n int32) fixture.Thing {
		return fixture.With(func(w *facts.World) { w.Set.Status.RestoreReplicas = n })
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		want  int32
	}{
		{"claims of a restored set", fixture.WorldOf(fixture.SetOf(0, 1), found), 5},
		{"younger claims that were restored from the backup", fixture.WorldOf(fixture.SetOf(0, 1), young(map[string]string{backup.Label: "monday"})), 5},
		{"claims that were created for the set", fixture.WorldOf(fixture.SetOf(0, 1), young(nil)), 0},
		{"a recorded number of members", fixture.WorldOf(fixture.SetOf(0, 1), found, had(2)), 2},
		{"a set that is not stopped", fixture.WorldOf(fixture.SetOf(3, 1), found), 0},
		{"a set without claim templates", fixture.WorldOf(fixture.SetOf(0, 1), found, diskless), 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			if s := status.Summarize(&p); s.RestoreReplicas != r.want {
				t.Errorf("restoreReplicas is %d, want %d", s.RestoreReplicas, r.want)
			}
		})
	}
	w := fixture.WorldOf(fixture.SetOf(3, 1), fixture.With(func(w *facts.World) { w.Set.Status.RestoreReplicas, w.Stateful = 5, nil }))
	p := rules.Decide(w)
	s := status.Summarize(&p)
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionPaused); c.Reason != v1alpha1.ReasonReplicasTooLow {
		t.Errorf("the reason of Paused with fewer replicas than before is %s", c.Reason)
	}
}

// TestChildrenWithoutAnOwner tests that a child that was restored from a backup without an owner
// must be deleted.
func TestChildrenWithoutAnOwner(t *testing.T) {
	disowned := func(labels map[string]string) fixture.Thing {
		return fixture.With(func(w *facts.World) { w.Stateful.OwnerReferences, w.Stateful.Labels = nil, labels })
	}
	for _, r := range []struct {
		name   string
		labels map[string]string
		says   string
	}{
		{"a restored StatefulSet", map[string]string{v1alpha1.LabelManaged: v1alpha1.True},
			"StatefulSet rss-db has no owner, like an object restored from a backup, and is not changed. To have it recreated, delete it; claims are kept: kubectl -n ns delete statefulset/rss-db"},
		{"a foreign StatefulSet", nil, "StatefulSet rss-db belongs to another object and is not changed; rename or delete it"},
	} {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(3, 1), disowned(r.labels)))
		s := status.Summarize(&p)
		if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDegraded); c.Reason != v1alpha1.ReasonForeignObject || c.Message != r.says {
			t.Errorf("%s: %s: %s", r.name, c.Reason, c.Message)
		}
	}
}
