package replicated

import (
	"context"
	"slices"
	"sync"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// unansweredSecondary kills the primary while no command reaches a secondary, whose Node is Ready.
// The failover waits, and a condition has the command that ends the wait. With
// spec.failover.recreateUnresponsiveAfter the operator recreates the pod itself.
func unansweredSecondary(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "unanswered", 3)
	old := r.primary(ctx)
	silent := r.pod(ctx, r.set.Status.Members.Secondary[0])
	unblock := blockKubelet(c, silent.Spec.NodeName)
	at := testimony.Now()
	r.killServer(ctx, old)
	r.conditionSays(ctx, v1alpha1.ConditionProgressing, "kubectl -n "+r.Namespace+" delete pod "+silent.Name)
	all := r.reigns()
	c.Expect(all[len(all)-1].Start).To(BeNumerically("<", at), "a primary was chosen while %s may have newer data", silent.Name)

	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Failover = &v1alpha1.FailoverPolicy{RecreateUnresponsiveAfter: "1m"}
	})
	c.During("after the member was recreated", func() {
		r.newPrimary(ctx, at)
		r.goesOnWriting(ctx)
		r.anotherPod(ctx, silent)
	})
	unblock()
	r.whole(ctx)
	r.goesOnWriting(ctx)
	r.judge(ctx)
}

// blockKubelet makes the kubelet of a node unreachable for the API server until the returned
// function is called.
func blockKubelet(c *kit.Cluster, name string) (unblock func()) {
	c.Check(c.Nodes.BlockKubelet(name))
	unblock = sync.OnceFunc(func() { c.Check(c.Nodes.UnblockKubelet(name)) })
	c.Cleanup(unblock)
	return unblock
}

// unreadySecondaries breaks two of three members: a condition names them, the budget allows the
// eviction of one of them, and the primary stays.
func unreadySecondaries(ctx context.Context, c *kit.Cluster) {
	const broken = "/data/broken"
	r := &replica{Cluster: c, set: dummy(c, "unready")}
	pod := &r.set.Spec.Pod
	for name, script := range map[string]string{
		"status": "test -e /tmp/running || exit 7; test ! -e /tmp/primary || exit 8",
		"seed":   "touch /tmp/running /tmp/primary", "primary": "touch /tmp/running /tmp/primary", "promote": "touch /tmp/primary",
		"secondary": "touch /tmp/running", "demote": "rm -f /tmp/primary", "stop": "rm -f /tmp/running /tmp/primary",
	} {
		pod.Commands[name] = v1alpha1.Command{Command: []string{"/bin/sh", "-c", script}, Timeout: "60s"}
	}
	r.set.Spec.Primaries = new(int32(1))
	pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}}
	main := &pod.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	main.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "! test -e " + broken}}}}
	c.Put(ctx, r.set)
	r.whole(ctx)
	primary, secondaries := r.primary(ctx), slices.Clone(r.set.Status.Members.Secondary)
	c.Expect(secondaries).To(HaveLen(2))
	before := r.lives(ctx)
	for _, name := range secondaries {
		c.Exec(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, "dummy", "/bin/sh", "-c", "touch "+broken)
	}
	r.conditionSays(ctx, v1alpha1.ConditionDegraded, "2 of 3 members run as secondaries, but their pods are not Ready")
	c.Expect(meta.IsStatusConditionFalse(r.set.Status.Conditions, "Ready")).To(BeTrue(), "%s", describe(r.set))
	err := c.Evict(ctx, primary)
	c.Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "the eviction of the only Ready primary returned %v", err)
	r.conditionSays(ctx, v1alpha1.ConditionDraining, "no member can take over")

	one := r.pod(ctx, secondaries[0])
	c.Check(c.Evict(ctx, one))
	r.anotherPod(ctx, one)
	for _, name := range secondaries {
		r.Until(ctx, name+" to be repaired", func(ctx context.Context) {
			_, err := c.TryExec(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, "dummy", "/bin/sh", "-c", "rm -f "+broken)
			r.Check(err)
		})
	}
	r.whole(ctx)
	r.ReportsNothing(ctx, r.set)
	r.untouched(ctx, before, primary.Name)
}
