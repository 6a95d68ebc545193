package operator

import (
	"context"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/extended"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/replicated"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/singleton"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/statefulcluster"
	"github.com/stateful-operator/stateful-operator/test/velero"
)

// Backup lists the promises of docs/backup.md.
var Backup = []kit.Promise{
	kit.Long(kit.Together("BK-1 objects of all kinds are restored from a backup with their data", restoredInSteps)),
	kit.Long(kit.Together("BK-2 objects that were restored together are repaired by the documented commands", restoredAtOnce)),
}

// backedUp is an object of each kind in a namespace that was backed up and deleted. Velero is
// simulated. Volumes are retained instead of snapshots.
type backedUp struct {
	*kit.Cluster
	backup velero.Backup
	coder  *statefulcluster.Restored
	db     *replicated.Restored
	books  *extended.Restored
	mail   *singleton.Restored
}

// backUp creates an object of each kind, backs the namespace up, and deletes it.
func backUp(ctx context.Context, c *kit.Cluster) *backedUp {
	b := &backedUp{Cluster: c}
	b.coder = statefulcluster.ToRestore(ctx, c)
	b.db = replicated.ToRestore(ctx, c)
	b.books = extended.ToRestore(ctx, c, books)
	b.mail = singleton.ToRestore(ctx, c)
	b.db.Quiesce(ctx)

	free := keepVolumes(ctx, c)
	var err error
	b.backup, err = velero.Take(ctx, c.Client, c.Namespace, "monday")
	c.Check(err)
	c.During("delete the namespace", func() { emptyNamespace(ctx, c) })
	free(ctx)
	b.coder.Forget()
	b.db.Forget()
	b.books.Forget()
	return b
}

// books is the name of the ExtendedStatefulSet.
const books = "books"

// restore restores the backup, and returns the objects that were refused.
func (b *backedUp) restore(ctx context.Context, name string, o velero.Options) map[string]error {
	o.Name = name
	return b.backup.Restore(ctx, b.Client, o)
}

// comesBack waits until all objects run on their previous data.
func (b *backedUp) comesBack(ctx context.Context, claims map[string]types.UID) {
	b.coder.ComesBack(ctx)
	b.books.ComesBack(ctx)
	b.mail.ComesBack(ctx)
	b.db.ComesBack(ctx)
	b.Expect(b.ClaimUIDs(ctx)).To(Equal(claims), "no claim is created or deleted")
}

// restoredInSteps follows the steps of docs/backup.md.
func restoredInSteps(ctx context.Context, c *kit.Cluster) {
	b := backUp(ctx, c)
	inOrder := func(name string, o velero.Options) {
		c.Expect(b.restore(ctx, name, o)).To(BeEmpty(), "restore %s", name)
	}
	inOrder("data", velero.Options{Only: []string{"PersistentVolumeClaim", "ConfigMap", "Secret"}})
	claims := c.ClaimUIDs(ctx)
	b.coder.Adopt(ctx)
	inOrder("objects", velero.Options{Only: velero.Ours})
	selector, err := labels.Parse("!enge.me/cluster,!fissile.cloudfoundry.org/extendedstatefulset,rss-operator-managed!=true")
	c.Check(err)
	inOrder("rest", velero.Options{Without: []string{"Pod", "ReplicaSet", "ControllerRevision", "Job"}, Selector: selector})
	c.During("after the restore", func() { b.comesBack(ctx, claims) })
}

// restoredAtOnce restores everything at once, and repairs the result with the commands of
// docs/backup.md.
func restoredAtOnce(ctx context.Context, c *kit.Cluster) {
	b := backUp(ctx, c)
	refused := b.restore(ctx, "all", velero.Options{})
	// The webhook refuses it if it already sees the objects restored a moment before. Otherwise it
	// becomes Degraded.
	delete(refused, "ReplicatedStatefulSet db")
	c.Expect(refused).To(BeEmpty())
	claims := c.ClaimUIDs(ctx)
	b.coder.ReportsClaims(ctx)
	for _, made := range []client.MatchingLabels{{"rss-operator-managed": "true"}, {"fissile.cloudfoundry.org/extendedstatefulset": books}} {
		for _, kind := range []client.Object{&corev1.Service{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}} {
			c.Check(c.Client.DeleteAllOf(ctx, kind, client.InNamespace(c.Namespace), made))
		}
	}
	c.Expect(b.restore(ctx, "objects", velero.Options{Only: velero.Ours})).To(BeEmpty())
	c.Check(c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Namespace), client.MatchingLabels{velero.LabelRestore: "all"}))
	b.coder.Adopt(ctx)
	c.During("after the repair", func() { b.comesBack(ctx, claims) })
}

// keepVolumes retains the volumes of the namespace's claims when the claims are deleted. The
// returned function makes the volumes available to claims of the same names.
func keepVolumes(ctx context.Context, c *kit.Cluster) (free func(context.Context)) {
	var volumes []*corev1.PersistentVolume
	for _, claim := range c.Claims(ctx) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		c.Read(ctx, volume)
		policy := volume.Spec.PersistentVolumeReclaimPolicy
		kit.Change(ctx, c, volume, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		// an unbound volume with reclaim policy Delete is deleted at once
		c.Cleanup(func() {
			kit.Change(context.WithoutCancel(ctx), c, volume, func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy })
		})
		volumes = append(volumes, volume)
	}
	return func(ctx context.Context) {
		for _, volume := range volumes {
			kit.Change(ctx, c, volume, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = "", "" })
		}
		// A claim that is created before the volume is seen as available gets a new volume.
		c.Until(ctx, "the volumes to be free", func(ctx context.Context) {
			for _, volume := range volumes {
				c.Read(ctx, volume)
				c.Expect(volume.Status.Phase).To(Equal(corev1.VolumeAvailable), "volume %s", volume.Name)
			}
		})
	}
}

// emptyNamespace deletes the namespace, and creates an empty one of the same name.
func emptyNamespace(ctx context.Context, c *kit.Cluster) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	c.Read(ctx, namespace)
	c.Remove(ctx, namespace)
	c.Gone(ctx, namespace)
	c.Put(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}})
}
