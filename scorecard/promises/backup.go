package promises

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterlabs "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	enge "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissile "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/velero"
)

// Backup lists the promises of docs/backup.md.
var Backup = []Promise{
	long(together("BK-1 objects of all kinds are restored from a backup with their data", restoredInSteps)),
	long(together("BK-2 objects that were restored together are repaired by the documented commands", restoredAtOnce)),
}

// backedUp is an object of each kind in a namespace that was backed up and deleted. Velero is
// simulated. Volumes are retained instead of snapshots.
type backedUp struct {
	*Cluster
	backup velero.Backup
	coder  *enge.StatefulCluster
	db     *replica
	books  *extended
	mail   *application
	// members are the pods of coder, mailed is the run of mail, and written is the content of db.
	// All are from before the deletion.
	members map[string]corev1.Pod
	mailed  testimony.Run
	written string
}

func (c *Cluster) backedUp(ctx context.Context) *backedUp {
	b := &backedUp{Cluster: c, coder: c.newSet(2)}
	b.members = c.create(ctx, b.coder)
	b.db = c.ledger(ctx, "db", 3)
	b.books = c.extended("books", 2, onClaims, patiently)
	b.books.create(ctx)
	b.mail, _ = c.running(ctx, 2, "mail")
	b.mailed = b.mail.one(ctx)
	b.db.goesOnWriting(ctx)
	b.db.stopClient(ctx)
	b.written = b.db.log(ctx, b.db.primary(ctx))

	free := c.keepVolumes(ctx)
	var err error
	b.backup, err = velero.Take(ctx, c.Client, c.Namespace, "monday")
	c.check(err)
	c.during("delete the namespace", func() { c.emptyNamespace(ctx) })
	free(ctx)
	// Clear the objects so that no field of an old status remains after a read.
	b.coder = &enge.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: b.coder.Name}}
	b.db.set = &clusterlabs.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: b.db.set.Name}}
	b.books.set = &fissile.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: b.books.set.Name}}
	return b
}

// restore restores the backup, and returns the objects that were refused.
func (b *backedUp) restore(ctx context.Context, name string, o velero.Options) map[string]error {
	o.Name = name
	return b.backup.Restore(ctx, b.Client, o)
}

// adopt annotates the claims of the StatefulCluster for adoption.
func (b *backedUp) adopt(ctx context.Context) {
	for _, claim := range b.claims(ctx) {
		if claim.Labels[enge.LabelCluster] == b.coder.Name {
			change(ctx, b.Cluster, &claim, func(o *corev1.PersistentVolumeClaim) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, enge.AnnotationAdopt, b.coder.Name)
			})
		}
	}
}

// comesBack waits until all objects run on their previous data.
func (b *backedUp) comesBack(ctx context.Context, claims map[string]types.UID) {
	for name := range b.settle(ctx, b.coder) {
		b.Expect(b.members).To(HaveKey(name))
		starts := b.exec(ctx, types.NamespacedName{Namespace: b.Namespace, Name: name}, "diary", "/bin/sh", "-c", "cat /data/starts")
		b.Expect(strings.Count(starts, "\n")).To(BeNumerically(">", 1), "starts listed in the diary of %s: %q", name, starts)
	}
	b.books.serves(ctx, 1)
	for name := range b.books.pods(ctx) {
		told := b.books.shell(ctx, name, "cat /data/diary")
		b.Expect(strings.Count(told, "begin 1")).To(BeNumerically(">", 1), "diary of %s: %q", name, told)
	}
	b.mail.active(ctx, b.mail.one(ctx, b.mailed))
	b.Expect(b.db.log(ctx, b.db.primary(ctx))).To(HavePrefix(b.written), "entries acknowledged before the backup exist")
	b.check(os.Rename(b.db.history(b.db.folder), b.db.history(b.db.folder)+".before"))
	b.db.writes(ctx)
	b.Expect(b.claimUIDs(ctx)).To(Equal(claims), "no claim is created or deleted")
}

// restoredInSteps follows the steps of docs/backup.md.
func restoredInSteps(ctx context.Context, c *Cluster) {
	b := c.backedUp(ctx)
	inOrder := func(name string, o velero.Options) {
		c.Expect(b.restore(ctx, name, o)).To(BeEmpty(), "restore %s", name)
	}
	inOrder("data", velero.Options{Only: []string{"PersistentVolumeClaim", "ConfigMap", "Secret"}})
	claims := c.claimUIDs(ctx)
	b.adopt(ctx)
	inOrder("objects", velero.Options{Only: velero.Ours})
	selector, err := labels.Parse("!enge.me/cluster,!fissile.cloudfoundry.org/extendedstatefulset,rss-operator-managed!=true")
	c.check(err)
	inOrder("rest", velero.Options{Without: []string{"Pod", "ReplicaSet", "ControllerRevision", "Job"}, Selector: selector})
	c.during("after the restore", func() { b.comesBack(ctx, claims) })
}

// restoredAtOnce restores everything at once, and repairs the result with the commands of
// docs/backup.md.
func restoredAtOnce(ctx context.Context, c *Cluster) {
	b := c.backedUp(ctx)
	refused := b.restore(ctx, "all", velero.Options{})
	// The webhook refuses it if it already sees the objects restored a moment before. Otherwise it
	// becomes Degraded.
	delete(refused, "ReplicatedStatefulSet db")
	c.Expect(refused).To(BeEmpty())
	claims := c.claimUIDs(ctx)
	c.degraded(ctx, b.coder, enge.ReasonRestoredClaims)
	for _, made := range []client.MatchingLabels{{"rss-operator-managed": "true"}, {"fissile.cloudfoundry.org/extendedstatefulset": "books"}} {
		for _, kind := range []client.Object{&corev1.Service{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}} {
			c.check(c.Client.DeleteAllOf(ctx, kind, client.InNamespace(c.Namespace), made))
		}
	}
	c.Expect(b.restore(ctx, "objects", velero.Options{Only: velero.Ours})).To(BeEmpty())
	c.check(c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Namespace), client.MatchingLabels{velero.LabelRestore: "all"}))
	b.adopt(ctx)
	c.during("after the repair", func() { b.comesBack(ctx, claims) })
}

// keepVolumes retains the volumes of the namespace's claims when the claims are deleted. The
// returned function makes the volumes available to claims of the same names.
func (c *Cluster) keepVolumes(ctx context.Context) (free func(context.Context)) {
	var volumes []*corev1.PersistentVolume
	for _, claim := range c.claims(ctx) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		c.read(ctx, volume)
		policy := volume.Spec.PersistentVolumeReclaimPolicy
		change(ctx, c, volume, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		// an unbound volume with reclaim policy Delete is deleted at once
		c.Cleanup(func() {
			change(context.WithoutCancel(ctx), c, volume, func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy })
		})
		volumes = append(volumes, volume)
	}
	return func(ctx context.Context) {
		for _, volume := range volumes {
			change(ctx, c, volume, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = "", "" })
		}
		// A claim that is created before the volume is seen as available gets a new volume.
		c.until(ctx, "the volumes to be free", func(ctx context.Context) {
			for _, volume := range volumes {
				c.read(ctx, volume)
				c.Expect(volume.Status.Phase).To(Equal(corev1.VolumeAvailable), "volume %s", volume.Name)
			}
		})
	}
}

// emptyNamespace deletes the namespace, and creates an empty one of the same name.
func (c *Cluster) emptyNamespace(ctx context.Context) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	c.read(ctx, namespace)
	c.remove(ctx, namespace)
	c.gone(ctx, namespace)
	c.put(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}})
}

// claimUIDs returns the UIDs of the claims of the namespace, by name.
func (c *Cluster) claimUIDs(ctx context.Context) map[string]types.UID {
	found := map[string]types.UID{}
	for name, claim := range c.claims(ctx) {
		found[name] = claim.UID
	}
	return found
}
