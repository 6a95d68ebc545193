package promises

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// Disruptions after which members must be recreated with the same names and claims.

// apart keeps the members of a set on different nodes.
func apart(s *v1alpha1.StatefulCluster) {
	s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	s.Spec.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
}

// losesNodesSoon has members count as lost after a few seconds, and their claims deleted.
func losesNodesSoon(s *v1alpha1.StatefulCluster) {
	s.Spec.Replacement.NodeLostSeconds = new(int32(5))
	s.Spec.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
}

// unretained returns the UIDs of the claims by name, and expects that none is set aside or
// being deleted.
func (c *Cluster) unretained(ctx context.Context) map[string]types.UID {
	for name, claim := range c.claims(ctx) {
		why := claim.Labels[v1alpha1.LabelRetained]
		c.Expect(why).To(BeEmpty(), "claim %s is set aside (%q) or being deleted", name, why)
		c.Expect(claim.DeletionTimestamp).To(BeNil(), "claim %s is set aside (%q) or being deleted", name, why)
	}
	return c.claimUIDs(ctx)
}

// kept waits until the set has settled, and expects the same members on the same claims.
func (c *Cluster) kept(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod, claims map[string]types.UID) map[string]corev1.Pod {
	after := c.settle(ctx, set)
	for name := range before {
		_, there := after[name]
		c.Expect(there).To(BeTrue(), "%s was replaced: %s", name, brief(set.Status))
	}
	c.Expect(c.unretained(ctx)).To(Equal(claims), "claims")
	c.Expect(set.Status.Lost).To(BeEmpty(), "members were lost")
	c.whole(ctx, set)
	return after
}

// leader returns the operator's pod that holds the lease.
func (c *Cluster) leader(ctx context.Context) (leader corev1.Pod) {
	c.until(ctx, "an operator to become leader", func(ctx context.Context) {
		holder := c.leaseHolder(ctx)
		var pods corev1.PodList
		c.list(ctx, &pods, client.InNamespace(c.Operator.Namespace))
		at := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Name == holder })
		c.Expect(at).To(BeNumerically(">=", 0), "%q holds the lease", holder)
		leader = pods.Items[at]
	})
	return leader
}

// leaseHolder returns the name of the pod that holds the operator's lease.
func (c *Cluster) leaseHolder(ctx context.Context) string {
	var lease coordinationv1.Lease
	c.check(c.Client.Get(ctx, client.ObjectKey{Namespace: c.Operator.Namespace, Name: operatorLease}, &lease))
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name
}

// drainsLeader drains the nodes of the operator's leaders. Each of them also has a member whose
// program ends at once. The member is evicted after the old leader has stopped, so that its pod is
// deleted before the next leader observes it.
func drainsLeader(ctx context.Context, c *Cluster) {
	set := c.newSet(4, apart, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionKeeps
		s.Spec.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
	})
	before := c.create(ctx, set)
	claims := c.unretained(ctx)
	for range 3 {
		c.awaitOperators(ctx)
		leader := c.leader(ctx)
		drained := leader.Spec.NodeName
		reopen := func() { c.closed(context.WithoutCancel(ctx), drained, false) }
		c.Cleanup(reopen)
		c.closed(ctx, drained, true)
		c.Log("drain %s, where the leader %s runs", drained, leader.Name)
		c.evicted(ctx, &leader)
		c.until(ctx, "the leader to stop", func(ctx context.Context) {
			c.Expect(c.leaseHolder(ctx)).NotTo(Equal(leader.Name), "the old leader is still leader")
		})
		for _, p := range c.members(ctx, set) {
			if p.Spec.NodeName == drained {
				c.evicted(ctx, &p)
				c.until(ctx, p.Name+" to end", func(ctx context.Context) {
					now, there := c.allPods(ctx, set)[p.Name]
					c.Expect(there && now.UID == p.UID).To(BeFalse(), "%s exists", p.Name)
				})
				c.Log("the pod of %s was deleted; the leader is %q", p.Name, c.leaseHolder(ctx))
			}
		}
		reopen()
		before = c.kept(ctx, set, before, claims)
	}
}

// awaitOperators waits until all pods of the operator are Ready.
func (c *Cluster) awaitOperators(ctx context.Context) {
	for _, d := range c.operatorParts() {
		c.read(ctx, d)
		c.awaitScale(ctx, d, *d.Spec.Replicas)
	}
}

// evicted evicts a pod, with retries until that is granted.
func (c *Cluster) evicted(ctx context.Context, pod *corev1.Pod) {
	c.until(ctx, pod.Name+" to be evicted", func(ctx context.Context) {
		if err := c.evict(ctx, pod); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			c.check(err)
		}
	})
}

// allMembersDark powers off all nodes of a set's members, and powers them on after Kubernetes has
// noticed.
func allMembersDark(ctx context.Context, c *Cluster) {
	// The control plane notices two nodes that fail at the same time up to 15 s apart.
	set := c.newSet(2, apart, losesNodesSoon, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.NodeLostSeconds = new(int32(20)) })
	before := c.create(ctx, set)
	claims := c.unretained(ctx)
	var off []string
	for _, p := range before {
		off = append(off, p.Spec.NodeName)
	}
	c.Log("power off %v, all nodes that members run on", off)
	c.Cleanup(func() { c.powerOn(context.WithoutCancel(ctx), off) })
	for _, name := range off {
		c.check(c.Nodes.StopNode(name))
	}
	c.degraded(ctx, set, v1alpha1.ReasonNoMemberReady)
	// It must stay so even after both have counted as lost for a while.
	c.throughout(ctx, 20*time.Second, func() {
		c.Expect(c.unretained(ctx)).To(Equal(claims), "claims while all nodes are off")
		sleep(ctx, time.Second)
	})
	c.powerOn(ctx, off)
	c.kept(ctx, set, before, claims)
}

// nodeObjectReturns deletes the Node object of a member and recreates it three seconds later, like
// a kubelet that registers again. The kubelet and its pods continue to run.
func nodeObjectReturns(ctx context.Context, c *Cluster) {
	set := c.newSet(3, apart, losesNodesSoon)
	before := c.create(ctx, set)
	claims := c.unretained(ctx)
	victim := one(before)
	was := node(victim.Spec.NodeName)
	c.read(ctx, was)
	again := was.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Name: was.Name, Labels: was.Labels, Annotations: was.Annotations}
	register := func(ctx context.Context) error { return c.Client.Create(ctx, again.DeepCopy()) }
	c.Cleanup(func() {
		if err := register(context.WithoutCancel(ctx)); !apierrors.IsAlreadyExists(err) {
			c.check(err)
		}
		c.nodesReady(context.WithoutCancel(ctx))
	})
	c.Log("delete the Node object %s, where %s runs", was.Name, victim.Name)
	c.remove(ctx, node(was.Name))
	sleep(ctx, 3*time.Second)
	c.check(register(ctx))
	c.nodesReady(ctx)
	c.throughout(ctx, 20*time.Second, func() {
		c.Expect(c.unretained(ctx)).To(Equal(claims), "claims after the Node returned")
		now, there := c.members(ctx, set)[victim.Name]
		c.Expect(there).To(BeTrue(), "%s was replaced or recreated", victim.Name)
		c.Expect(now.UID).To(Equal(victim.UID), "%s was replaced or recreated", victim.Name)
		sleep(ctx, time.Second)
	})
	c.kept(ctx, set, before, claims)
}

// evictedByKubelet has a member fill a volume beyond its limit, so that its kubelet evicts it.
func evictedByKubelet(ctx context.Context, c *Cluster) {
	set := c.newSet(3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionKeeps
		pod := &s.Spec.Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Mi"))}}})
		mounts := &pod.Containers[0].VolumeMounts
		*mounts = append(*mounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	})
	before := c.create(ctx, set)
	claims := c.unretained(ctx)
	victim := one(before)
	pods := c.lookOut(ctx)
	evicted := false
	watched := pods.hold(func(all map[types.UID]*corev1.Pod) error {
		// The kubelet removes reason Evicted if the program ends with code 0. Nothing else ends the
		// pod.
		p := all[victim.UID]
		evicted = evicted || (p != nil && p.DeletionTimestamp == nil && (p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded))
		return nil
	})
	c.exec(ctx, client.ObjectKeyFromObject(victim), "diary", "/bin/sh", "-c", "head -c 4000000 /dev/zero > /scratch/full")
	c.until(ctx, "the kubelet to evict "+victim.Name, func(ctx context.Context) {
		now, there := c.members(ctx, set)[victim.Name]
		c.Expect(there).To(BeTrue(), "%s was not recreated", victim.Name)
		c.Expect(now.UID).NotTo(Equal(victim.UID), "%s was not recreated", victim.Name)
	})
	c.check(watched.kept())
	c.Expect(evicted).To(BeTrue(), "the kubelet did not evict %s", victim.Name)
	c.kept(ctx, set, before, claims)
}
