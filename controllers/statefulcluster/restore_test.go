package statefulcluster_test

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/velero"
)

var _ = Describe("SC-50 a set restored from a backup", func() {
	var (
		ns     string
		set    *v1alpha1.StatefulCluster
		before map[string]corev1.Pod
		backup velero.Backup
	)
	// The set has two members with a claim each, is in a backup, and is lost.
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		first := startOperator(operatorOptions{namespaces: []string{ns}})
		set = newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before = settled(ctx, set, 2)
		first.stop()
		var err error
		backup, err = velero.Take(ctx, user, ns, "monday")
		Expect(err).NotTo(HaveOccurred())
		Expect(backup.Count("PersistentVolumeClaim")).To(Equal(2))
		Expect(backup.Count("Pod")).To(Equal(2))
		Expect(backup.Erase(ctx, user)).To(Succeed())
		startOperator(operatorOptions{namespaces: []string{ns}})
	})

	restore := func(ctx context.Context, o velero.Options) {
		GinkgoHelper()
		o.Name = "r"
		Expect(backup.Restore(ctx, user, o)).To(BeEmpty())
		again := newSet(ns, 2)
		Expect(client.IgnoreNotFound(user.Get(ctx, client.ObjectKeyFromObject(again), again))).To(Succeed())
		set = again
	}
	claimUIDs := func(ctx context.Context) map[string]types.UID {
		GinkgoHelper()
		var list corev1.PersistentVolumeClaimList
		Expect(user.List(ctx, &list, client.InNamespace(ns))).To(Succeed())
		uids := map[string]types.UID{}
		for i := range list.Items {
			uids[list.Items[i].Name] = list.Items[i].UID
		}
		return uids
	}
	giveOne := func(ctx context.Context, name string) {
		GinkgoHelper()
		c := &corev1.PersistentVolumeClaim{ObjectMeta: named(name)}
		c.Namespace = ns
		edit(ctx, c, func(c *corev1.PersistentVolumeClaim) {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[v1alpha1.AnnotationAdopt] = set.Name
		})
	}
	give := func(ctx context.Context) {
		GinkgoHelper()
		for name := range claimUIDs(ctx) {
			giveOne(ctx, name)
		}
	}
	// comesBack checks that the members of before return, on the restored claims.
	comesBack := func(ctx context.Context, uids map[string]types.UID) {
		GinkgoHelper()
		after := settled(ctx, set, 2)
		Expect(slices.Sorted(maps.Keys(after))).To(Equal(slices.Sorted(maps.Keys(before))))
		whole(ctx, set)
		Expect(claimUIDs(ctx)).To(Equal(uids), "no claims are created or deleted")
		Eventually(func() []string { return reasonsOf(claims(ctx, set)) }).Should(ConsistOf("", ""))
		for _, c := range claims(ctx, set) {
			Expect(c.Annotations).NotTo(HaveKey(v1alpha1.AnnotationAdopt))
		}
		degraded(ctx, set, v1alpha1.ReasonHealthy)
	}

	It("creates its members at once on claims that were given before", func(ctx SpecContext) {
		restore(ctx, velero.Options{Without: slices.Concat(velero.Children, velero.Ours)})
		uids := claimUIDs(ctx)
		give(ctx)
		restore(ctx, velero.Options{Only: velero.Ours})
		comesBack(ctx, uids)
	})

	It("creates no member until a user gives it the claims", func(ctx SpecContext) {
		restore(ctx, velero.Options{Without: velero.Children})
		uids := claimUIDs(ctx)
		message := degraded(ctx, set, v1alpha1.ReasonRestoredClaims)
		Expect(message).To(HavePrefix("the set was restored from backup monday, and so were claims of a set with the same name: "))
		Expect(pods(ctx, set)).To(BeEmpty())
		Expect(claimUIDs(ctx)).To(Equal(uids))
		give(ctx)
		comesBack(ctx, uids)
	})

	It("creates no member on an empty claim while only some claims are given", func(ctx SpecContext) {
		restore(ctx, velero.Options{Without: velero.Children})
		uids := claimUIDs(ctx)
		degraded(ctx, set, v1alpha1.ReasonRestoredClaims)
		names := slices.Sorted(maps.Keys(uids))
		giveOne(ctx, names[0])
		Eventually(func() int32 {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			return set.Status.ReadyReplicas
		}).Should(BeEquivalentTo(1))
		Expect(degraded(ctx, set, v1alpha1.ReasonRestoredClaims)).To(ContainSubstring(names[1]))
		Consistently(func() map[string]types.UID { return claimUIDs(ctx) }).Should(Equal(uids))
		giveOne(ctx, names[1])
		comesBack(ctx, uids)
	})

	It("waits until pods that were restored with it are deleted", func(ctx SpecContext) {
		restore(ctx, velero.Options{})
		uids := claimUIDs(ctx)
		degraded(ctx, set, v1alpha1.ReasonRestoredClaims)
		var restored corev1.PodList
		Expect(user.List(ctx, &restored, client.InNamespace(ns))).To(Succeed())
		Expect(restored.Items).To(HaveLen(2))
		for i := range restored.Items {
			Expect(restored.Items[i].OwnerReferences).To(BeEmpty(), "the restored pod has no owner")
			Expect(user.Delete(ctx, &restored.Items[i], client.GracePeriodSeconds(0))).To(Succeed())
		}
		give(ctx)
		settled(ctx, set, 2)
		// Its budget was restored too, without an owner. That is reported and affects no member.
		Expect(degraded(ctx, set, v1alpha1.ReasonWriteRefused)).To(ContainSubstring("was restored from a backup and has no owner"))
		Expect(claimUIDs(ctx)).To(Equal(uids))
	})

	It("starts with empty claims when a user removes the backup label", func(ctx SpecContext) {
		restore(ctx, velero.Options{Without: velero.Children})
		degraded(ctx, set, v1alpha1.ReasonRestoredClaims)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { delete(s.Labels, velero.LabelBackup) })
		after := settled(ctx, set, 2)
		for name := range before {
			Expect(after).NotTo(HaveKey(name))
		}
		Expect(claimUIDs(ctx)).To(HaveLen(4), "restored claims are kept")
	})
})
