package promises

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	clusterlabs "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	enge "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissile "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/velero"
)

// Backup are the promises of docs/backup.md.
var Backup = []Promise{
	{Name: "BK-1 objects of all kinds come back from a backup with their data", Site: SharedSite, Faults: true, Long: true, Run: witnessed(fromBackup)},
}

// notMadeAgain is the selector of step 4 of docs/backup.md: what the operator does not make.
const notMadeAgain = "!enge.me/cluster,!fissile.cloudfoundry.org/extendedstatefulset,rss-operator-managed!=true"

// fromBackup has an object of each kind, makes a backup of their namespace, deletes the
// namespace, and restores it in the steps of docs/backup.md. What is played is Velero; the
// volumes are kept in the place of snapshots.
func fromBackup(ctx context.Context, c *Cluster) {
	coder := c.newSet(2)
	members := c.create(ctx, coder)
	db := c.ledger(ctx, "db", 3)
	books := c.extended("books", 2, onClaims, patiently)
	books.create(ctx)
	mail, _ := c.running(ctx, 2, "mail")
	mailed := mail.one(ctx)
	db.goesOnWriting(ctx)
	db.stopClient(ctx)
	written := db.log(ctx, db.primary(ctx))

	free := c.keepVolumes(ctx)
	backup, err := velero.Take(ctx, c.Client, c.Namespace, "monday")
	c.check(err)
	c.during("deleting the namespace", func() { c.emptyNamespace(ctx) })
	free(ctx)
	restore := func(name string, o velero.Options) {
		o.Name = name
		c.Expect(backup.Restore(ctx, c.Client, o)).To(BeEmpty(), "restore %s", name)
	}

	restore("data", velero.Options{Only: []string{"PersistentVolumeClaim", "ConfigMap", "Secret"}, KeepVolumes: true})
	claims := c.claimUIDs(ctx)
	for _, claim := range c.claims(ctx) {
		if claim.Labels[enge.LabelCluster] == coder.Name {
			change(ctx, c, &claim, func(o *corev1.PersistentVolumeClaim) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, enge.AnnotationAdopt, coder.Name)
			})
		}
	}
	restore("objects", velero.Options{Only: velero.Ours})
	selector, err := labels.Parse(notMadeAgain)
	c.check(err)
	restore("rest", velero.Options{Without: []string{"Pod", "ReplicaSet", "ControllerRevision", "Job"}, Selector: selector})

	// Nothing of a status of before may be left in what is read.
	coder = &enge.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: coder.Name}}
	db.set = &clusterlabs.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: db.set.Name}}
	books.set = &fissile.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: books.set.Name}}
	c.during("after the restore", func() {
		for name := range c.settle(ctx, coder) {
			c.Expect(members).To(HaveKey(name))
			starts := c.exec(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, "diary", "/bin/sh", "-c", "wc -l < /data/starts")
			c.Expect(strings.TrimSpace(starts)).To(Equal("2"), "starts that the diary of %s tells of", name)
		}
		books.serves(ctx, 1)
		for name := range books.pods(ctx) {
			told := books.shell(ctx, name, "cat /data/diary")
			c.Expect(strings.Count(told, "begin 1")).To(Equal(2), "the diary of %s: %q", name, told)
		}
		mail.active(ctx, mail.one(ctx, mailed))
		c.Expect(db.log(ctx, db.primary(ctx))).To(HavePrefix(written), "what was acknowledged before is there")
		c.check(os.Rename(db.history(db.folder), db.history(db.folder)+".before"))
		db.writes(ctx)
		c.Expect(c.claimUIDs(ctx)).To(Equal(claims), "no claim is made, and none goes")
	})
}

// keepVolumes has the volumes of the namespace's claims stay when these go. The function that
// it returns gives them to claims of the same names, and has them go with these.
func (c *Cluster) keepVolumes(ctx context.Context) (free func(context.Context)) {
	var volumes []*corev1.PersistentVolume
	before := map[string]corev1.PersistentVolumeReclaimPolicy{}
	for _, claim := range c.claims(ctx) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		change(ctx, c, volume, func(v *corev1.PersistentVolume) {
			before[v.Name] = v.Spec.PersistentVolumeReclaimPolicy
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		volumes = append(volumes, volume)
	}
	return func(ctx context.Context) {
		for _, volume := range volumes {
			change(ctx, c, volume, func(v *corev1.PersistentVolume) {
				v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = "", ""
				v.Spec.PersistentVolumeReclaimPolicy = before[v.Name]
			})
		}
	}
}

// emptyNamespace deletes the namespace, and makes an empty one of its name.
func (c *Cluster) emptyNamespace(ctx context.Context) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	c.read(ctx, namespace)
	c.remove(ctx, namespace)
	c.gone(ctx, namespace)
	c.put(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}})
}

// claimUIDs are the claims of the namespace.
func (c *Cluster) claimUIDs(ctx context.Context) map[string]types.UID {
	found := map[string]types.UID{}
	for name, claim := range c.claims(ctx) {
		found[name] = claim.UID
	}
	return found
}
