package statefulcluster

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Disruptions after which members must be recreated with the same names and claims.

// losesNodesSoon has members count as lost after a few seconds, and their claims deleted.
func losesNodesSoon(s *v1alpha1.StatefulCluster) {
	s.Spec.Replacement.NodeLostSeconds = new(int32(5))
	s.Spec.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
}

// unretained returns the UIDs of the claims by name, and expects that none is set aside or
// being deleted.
func unretained(ctx context.Context, c *kit.Cluster) map[string]types.UID {
	for name, claim := range c.Claims(ctx) {
		why := claim.Labels[v1alpha1.LabelRetained]
		c.Expect(why).To(BeEmpty(), "claim %s is set aside (%q) or being deleted", name, why)
		c.Expect(claim.DeletionTimestamp).To(BeNil(), "claim %s is set aside (%q) or being deleted", name, why)
	}
	return c.ClaimUIDs(ctx)
}

// kept waits until the set has settled, and expects the same members on the same claims.
func kept(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod, claims map[string]types.UID) map[string]corev1.Pod {
	after := settle(ctx, c, set)
	for name := range before {
		_, there := after[name]
		c.Expect(there).To(BeTrue(), "%s was replaced: %s", name, describe(set.Status))
	}
	c.Expect(unretained(ctx, c)).To(Equal(claims), "claims")
	c.Expect(set.Status.Lost).To(BeEmpty(), "members were lost")
	whole(ctx, c, set)
	return after
}

// drainsLeader drains the nodes of the operator's leaders. Each of them also has a member whose
// program ends at once. The member is evicted after the old leader has stopped, so that its pod is
// deleted before the next leader observes it.
func drainsLeader(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 4, apart, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionKeeps
		s.Spec.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
	})
	before := create(ctx, c, set)
	claims := unretained(ctx, c)
	for range 3 {
		c.AwaitOperators(ctx)
		leader := c.Leader(ctx)
		drained := leader.Spec.NodeName
		reopen := func() { c.Cordon(context.WithoutCancel(ctx), drained, false) }
		c.Cleanup(reopen)
		c.Cordon(ctx, drained, true)
		c.Log("drain %s, where the leader %s runs", drained, leader.Name)
		evicted(ctx, c, &leader)
		c.Until(ctx, "the leader to stop", func(ctx context.Context) {
			c.Expect(c.LeaseHolder(ctx)).NotTo(Equal(leader.Name), "the old leader is still leader")
		})
		for _, p := range members(ctx, c, set) {
			if p.Spec.NodeName == drained {
				evicted(ctx, c, &p)
				c.Until(ctx, p.Name+" to end", func(ctx context.Context) {
					now, there := allPods(ctx, c, set)[p.Name]
					c.Expect(there && now.UID == p.UID).To(BeFalse(), "%s exists", p.Name)
				})
				c.Log("the pod of %s was deleted; the leader is %q", p.Name, c.LeaseHolder(ctx))
			}
		}
		reopen()
		before = kept(ctx, c, set, before, claims)
	}
}

// evicted evicts a pod, with retries until that is granted.
func evicted(ctx context.Context, c *kit.Cluster, pod *corev1.Pod) {
	c.Until(ctx, pod.Name+" to be evicted", func(ctx context.Context) {
		if err := c.Evict(ctx, pod); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			c.Check(err)
		}
	})
}

// allMembersDark powers off all nodes of a set's members, and powers them on after Kubernetes has
// noticed.
func allMembersDark(ctx context.Context, c *kit.Cluster) {
	// The control plane notices two nodes that fail at the same time up to 15 s apart.
	set := newSet(c, 2, apart, losesNodesSoon, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.NodeLostSeconds = new(int32(20)) })
	before := create(ctx, c, set)
	claims := unretained(ctx, c)
	var off []string
	for _, p := range before {
		off = append(off, p.Spec.NodeName)
	}
	c.Log("power off %v, all nodes that members run on", off)
	c.Cleanup(func() { c.PowerOn(context.WithoutCancel(ctx), off) })
	for _, name := range off {
		c.Check(c.Nodes.StopNode(name))
	}
	degraded(ctx, c, set, v1alpha1.ReasonNoMemberReady)
	// It must stay so even after both have counted as lost for a while.
	c.Throughout(ctx, 20*time.Second, func() {
		c.Expect(unretained(ctx, c)).To(Equal(claims), "claims while all nodes are off")
		kit.Sleep(ctx, time.Second)
	})
	c.PowerOn(ctx, off)
	kept(ctx, c, set, before, claims)
}

// nodeObjectReturns deletes the Node object of a member and recreates it three seconds later, like
// a kubelet that registers again. The kubelet and its pods continue to run.
func nodeObjectReturns(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 3, apart, losesNodesSoon)
	before := create(ctx, c, set)
	claims := unretained(ctx, c)
	victim := one(before)
	was := kit.Node(victim.Spec.NodeName)
	c.Read(ctx, was)
	again := was.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Name: was.Name, Labels: was.Labels, Annotations: was.Annotations}
	register := func(ctx context.Context) error { return c.Client.Create(ctx, again.DeepCopy()) }
	c.Cleanup(func() {
		if err := register(context.WithoutCancel(ctx)); !apierrors.IsAlreadyExists(err) {
			c.Check(err)
		}
		c.NodesReady(context.WithoutCancel(ctx))
	})
	c.Log("delete the Node object %s, where %s runs", was.Name, victim.Name)
	c.Remove(ctx, kit.Node(was.Name))
	kit.Sleep(ctx, 3*time.Second)
	c.Check(register(ctx))
	c.NodesReady(ctx)
	c.Throughout(ctx, 20*time.Second, func() {
		c.Expect(unretained(ctx, c)).To(Equal(claims), "claims after the Node returned")
		now, there := members(ctx, c, set)[victim.Name]
		c.Expect(there).To(BeTrue(), "%s was replaced or recreated", victim.Name)
		c.Expect(now.UID).To(Equal(victim.UID), "%s was replaced or recreated", victim.Name)
		kit.Sleep(ctx, time.Second)
	})
	kept(ctx, c, set, before, claims)
}

// evictedByKubelet has a member fill a volume beyond its limit, so that its kubelet evicts it.
func evictedByKubelet(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionKeeps
		pod := &s.Spec.Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Mi"))}}})
		mounts := &pod.Containers[0].VolumeMounts
		*mounts = append(*mounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	})
	before := create(ctx, c, set)
	claims := unretained(ctx, c)
	victim := one(before)
	pods := c.LookOut(ctx)
	evicted := false
	watched := pods.Hold(func(all map[types.UID]*corev1.Pod) error {
		// The kubelet removes reason Evicted if the program ends with code 0. Nothing else ends the
		// pod.
		p := all[victim.UID]
		evicted = evicted || (p != nil && p.DeletionTimestamp == nil && (p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded))
		return nil
	})
	c.Exec(ctx, client.ObjectKeyFromObject(victim), "diary", "/bin/sh", "-c", "head -c 4000000 /dev/zero > /scratch/full")
	c.Until(ctx, "the kubelet to evict "+victim.Name, func(ctx context.Context) {
		now, there := members(ctx, c, set)[victim.Name]
		c.Expect(there).To(BeTrue(), "%s was not recreated", victim.Name)
		c.Expect(now.UID).NotTo(Equal(victim.UID), "%s was not recreated", victim.Name)
	})
	c.Check(watched.Kept())
	c.Expect(evicted).To(BeTrue(), "the kubelet did not evict %s", victim.Name)
	kept(ctx, c, set, before, claims)
}
