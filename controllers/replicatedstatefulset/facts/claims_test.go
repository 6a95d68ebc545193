package facts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// left adds a claim that remains after the last pod of a set. The claim is one hour younger than
// the set.
func left(name string, change ...func(*corev1.PersistentVolumeClaim)) fixture.Thing {
	c := fixture.ClaimSized(name, "1Gi")
	c.UID, c.CreationTimestamp = "uid-of-claim", fixture.MetaTime(time.Hour)
	for _, f := range change {
		f(&c)
	}
	return fixture.With(func(w *facts.World) { w.LeftClaims = append(w.LeftClaims, &c) })
}

// TestWhenDeleted tests RS-93: only claims that were created for the object are deleted with it.
func TestWhenDeleted(t *testing.T) {
	ends := func(set *v1alpha1.ReplicatedStatefulSet, things ...fixture.Thing) *facts.World {
		return fixture.WorldOf(set, append(things, fixture.DeletedSince(time.Minute), fixture.With(func(w *facts.World) {
			w.Set.CreationTimestamp = fixture.MetaTime(2 * time.Hour)
			w.Stateful.Spec.Replicas = ptr.To[int32](0)
		}))...)
	}
	deletes := func(name string) []string {
		return []string{"delete persistentvolumeclaim " + name + ": Left, as persistentVolumeClaimRetentionPolicy requires"}
	}
	goes := []string{"patch replicatedstatefulset db: Release"}
	older := func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = fixture.MetaTime(3 * time.Hour) }
	going := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(fixture.MetaTime(0)) }
	backedUp := func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{backup.Label: "monday"} }
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "rss-db-0", Controller: ptr.To(true)}}
	}
	late := fixture.With(func(w *facts.World) { w.Set.DeletionTimestamp = ptr.To(fixture.MetaTime(2 * spec.Patience)) })
	fixture.Check(t, []fixture.Row{
		{"RS-93 delete the claim of a member", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0")), deletes("data-0")},
		{"RS-93 delete the claim of a member that was scaled down before", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-7")), deletes("data-7")},
		{"RS-93 remove the finalizer when all claims are terminating", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0", going)), goes},
		{"RS-93 keep claims with Retain", ends(fixture.Retaining(fixture.Keep, fixture.Discard), left("data-rss-db-0")), goes},
		{"RS-93 keep claims without a policy", ends(fixture.SetOf(3, 1), left("data-rss-db-0")), goes},
		{"keep a claim that is older than the object", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0", older)), goes},
		{"keep a claim that was restored from a backup", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0", backedUp)), goes},
		{"keep a claim that another object owns", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0", owned)), goes},
		{"keep a claim of another template", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("logs-rss-db-0")), goes},
		{"keep claims of other sets", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-1-0"), left("data-rss-other-0")), goes},
		{"keep claims until the last pod is gone", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0"), fixture.Pod(0).Idle().Deleted()), nil},
		{"keep claims when the time for the deletion is over", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0"), late, fixture.With(func(w *facts.World) { w.Stateful = nil })), goes},
		{"keep claims when the pods are orphaned", ends(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0"), fixture.With(func(w *facts.World) {
			w.Set.Finalizers = append(w.Set.Finalizers, metav1.FinalizerOrphanDependents)
		})), goes},
		{"keep claims while the object is not being deleted", fixture.WorldOf(fixture.Retaining(fixture.Discard, fixture.Keep), left("data-rss-db-0"), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()), nil},
	})
}
