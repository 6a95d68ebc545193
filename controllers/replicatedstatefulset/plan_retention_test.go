package replicatedstatefulset

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

const keep, discard = v1alpha1.RetainClaims, v1alpha1.DeleteClaims

// retaining returns a set of three with the retention policy.
func retaining(deleted, scaled v1alpha1.RetentionPolicy) *v1alpha1.ReplicatedStatefulSet {
	set := setOf(3, 1)
	set.Spec.PersistentVolumeClaimRetentionPolicy = &v1alpha1.ClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
	return set
}

// deletingScaled makes the StatefulSet delete the claims of members that are scaled down.
var deletingScaled = with(func(w *facts.World) {
	w.Stateful.Spec.PersistentVolumeClaimRetentionPolicy = children.Retention("Delete")
})

// TestWhenScaled tests RS-93: the StatefulSet's policy is Delete from the patch that lowers
// replicas to a number other than 0, until the pods are gone. Otherwise it is Retain, and
// whenDeleted is always Retain.
func TestWhenScaled(t *testing.T) {
	two := func() []thing { return []thing{pod(0).primary(), pod(1).secondary().sequence("9")} }
	gone := func(more ...thing) []thing { return append(two(), append(more, replicas(2))...) }
	to := func(n int32) thing { return with(func(w *facts.World) { w.Stateful.Spec.Replicas = &n }) }
	unseen := with(func(w *facts.World) { w.Stateful.Generation = 7 })
	before := setOf(3, 1)
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string // the policy in the patch of the StatefulSet; "" if there is no patch
	}{
		{"a member is scaled down", worldOf(retaining(keep, discard), gone(pod(2).idle())...), "Delete"},
		{"the pod of a removed member is terminating", worldOf(retaining(keep, discard), gone(pod(2).idle().deleted(), to(2), deletingScaled)...), ""},
		{"the change of the StatefulSet is not observed yet", worldOf(retaining(keep, discard), gone(to(2), deletingScaled, unseen)...), ""},
		{"the pods of all removed members are gone", worldOf(retaining(keep, discard), gone(to(2), deletingScaled)...), "Retain"},
		{"the policy was changed to Retain during a scale-down", worldOf(retaining(keep, keep), gone(pod(2).idle().deleted(), to(2), deletingScaled)...), "Retain"},
		{"the set is stopped", worldOf(retaining(discard, discard), pod(0).idle(), pod(1).idle(), pod(2).idle(), replicas(0)), "Retain"},
		{"the set is stopped right after a scale-down", worldOf(retaining(discard, discard), pod(0).primary().sequence("9"), pod(1).idle(), pod(2).idle(), replicas(0), deletingScaled), "Retain"},
		{"the object is deleted", worldOf(retaining(discard, discard), pod(0).idle(), pod(1).idle(), pod(2).idle(), deletedSince(time.Minute)), "Retain"},
		{"the set is scaled up", worldOf(retaining(discard, discard), append(two(), pod(2).secondary(), replicas(4))...), "Retain"},
		{"a scale-down with Retain", worldOf(retaining(keep, keep), gone(pod(2).idle())...), "Retain"},
		{"a scale-down without a policy", worldOf(before, gone(pod(2).idle())...), "Retain"},
		{"no scale-down", worldOf(retaining(discard, discard), append(two(), pod(2).secondary())...), ""},
		{"a user set Delete on the StatefulSet", worldOf(retaining(discard, keep), append(two(), pod(2).secondary(), deletingScaled)...), "Retain"},
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
				t.Errorf("whenScaled is %q, want %q: %v", got, r.want, gist(&p))
			}
		})
	}
}

// left adds a claim that remains after the last pod of a set. The claim is one hour younger than
// the set.
func left(name string, change ...func(*corev1.PersistentVolumeClaim)) thing {
	c := claimSized(name, "1Gi")
	c.UID, c.CreationTimestamp = "uid-of-claim", metaTime(time.Hour)
	for _, f := range change {
		f(&c)
	}
	return with(func(w *facts.World) { w.LeftClaims = append(w.LeftClaims, &c) })
}

// TestWhenDeleted tests RS-93: only claims that were created for the object are deleted with it.
func TestWhenDeleted(t *testing.T) {
	ends := func(set *v1alpha1.ReplicatedStatefulSet, things ...thing) *facts.World {
		return worldOf(set, append(things, deletedSince(time.Minute), with(func(w *facts.World) {
			w.Set.CreationTimestamp = metaTime(2 * time.Hour)
			w.Stateful.Spec.Replicas = ptr.To[int32](0)
		}))...)
	}
	deletes := func(name string) []string {
		return []string{"delete persistentvolumeclaim " + name + ": Left, as persistentVolumeClaimRetentionPolicy requires"}
	}
	goes := []string{"patch replicatedstatefulset db: Release"}
	older := func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metaTime(3 * time.Hour) }
	going := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metaTime(0)) }
	backedUp := func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{backup.Label: "monday"} }
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "rss-db-0", Controller: ptr.To(true)}}
	}
	late := with(func(w *facts.World) { w.Set.DeletionTimestamp = ptr.To(metaTime(2 * spec.Patience)) })
	check(t, []row{
		{"RS-93 delete the claim of a member", ends(retaining(discard, keep), left("data-rss-db-0")), deletes("data-0")},
		{"RS-93 delete the claim of a member that was scaled down before", ends(retaining(discard, keep), left("data-rss-db-7")), deletes("data-7")},
		{"RS-93 remove the finalizer when all claims are terminating", ends(retaining(discard, keep), left("data-rss-db-0", going)), goes},
		{"RS-93 keep claims with Retain", ends(retaining(keep, discard), left("data-rss-db-0")), goes},
		{"RS-93 keep claims without a policy", ends(setOf(3, 1), left("data-rss-db-0")), goes},
		{"keep a claim that is older than the object", ends(retaining(discard, keep), left("data-rss-db-0", older)), goes},
		{"keep a claim that was restored from a backup", ends(retaining(discard, keep), left("data-rss-db-0", backedUp)), goes},
		{"keep a claim that another object owns", ends(retaining(discard, keep), left("data-rss-db-0", owned)), goes},
		{"keep a claim of another template", ends(retaining(discard, keep), left("logs-rss-db-0")), goes},
		{"keep claims of other sets", ends(retaining(discard, keep), left("data-rss-db-1-0"), left("data-rss-other-0")), goes},
		{"keep claims until the last pod is gone", ends(retaining(discard, keep), left("data-rss-db-0"), pod(0).idle().deleted()), nil},
		{"keep claims when the time for the deletion is over", worldOf(retaining(discard, keep), left("data-rss-db-0"), late, with(func(w *facts.World) { w.Stateful = nil })), goes},
		{"keep claims when the pods are orphaned", ends(retaining(discard, keep), left("data-rss-db-0"), with(func(w *facts.World) {
			w.Set.Finalizers = append(w.Set.Finalizers, metav1.FinalizerOrphanDependents)
		})), goes},
		{"keep claims while the object is not being deleted", worldOf(retaining(discard, keep), left("data-rss-db-0"), pod(0).primary(), pod(1).secondary(), pod(2).secondary()), nil},
	})
}
