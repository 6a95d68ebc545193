package statefulcluster

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Restored is a StatefulCluster that is restored from a backup.
type Restored struct {
	*kit.Cluster
	set *v1alpha1.StatefulCluster
	// members are its pods from before the backup.
	members map[string]corev1.Pod
}

// ToRestore creates a StatefulCluster whose members have data.
func ToRestore(ctx context.Context, c *kit.Cluster) *Restored {
	set := newSet(c, 2)
	return &Restored{Cluster: c, set: set, members: create(ctx, c, set)}
}

// Forget clears the object, so that no field of an old status remains after a read.
func (b *Restored) Forget() {
	b.set = &v1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.set.Name}}
}

// Adopt annotates the restored claims for adoption.
func (b *Restored) Adopt(ctx context.Context) {
	for _, claim := range b.Claims(ctx) {
		if claim.Labels[v1alpha1.LabelCluster] == b.set.Name {
			kit.Change(ctx, b.Cluster, &claim, func(o *corev1.PersistentVolumeClaim) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AnnotationAdopt, b.set.Name)
			})
		}
	}
}

// ReportsClaims waits until the status reports that claims were restored and not adopted.
func (b *Restored) ReportsClaims(ctx context.Context) {
	degraded(ctx, b.Cluster, b.set, v1alpha1.ReasonRestoredClaims)
}

// ComesBack waits until the members run on their previous data.
func (b *Restored) ComesBack(ctx context.Context) {
	for name := range settle(ctx, b.Cluster, b.set) {
		b.Expect(b.members).To(HaveKey(name))
		starts := b.Exec(ctx, types.NamespacedName{Namespace: b.Namespace, Name: name}, "diary", "/bin/sh", "-c", "cat /data/starts")
		b.Expect(strings.Count(starts, "\n")).To(BeNumerically(">", 1), "starts listed in the diary of %s: %q", name, starts)
	}
}
