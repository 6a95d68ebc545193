package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Nodes, volumes and namespaces of pods.

// onNodes requires one of these nodes by affinity.
func onNodes(names ...string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}}}}}}}
	}
}

func placement(ctx context.Context, c *Cluster) {
	a, _ := c.running(ctx, 2, "spread")
	old := a.one(ctx)
	next := a.handover(ctx, "deletion with a standby on another node", func(old testimony.Run) { a.delete(ctx, old) })
	c.Expect(next.Node).NotTo(Equal(old.Node), "both were on %s", old.Node)
	// The user's own node affinity is kept: only one node is allowed here.
	b, d := c.running(ctx, 1, "narrow", onNodes(old.Node))
	next = b.handover(ctx, "rollout on one node", func(testimony.Run) { b.rollOut(ctx, d) })
	c.Expect(next.Node).To(Equal(old.Node), "%s is on %s, want %s", next.Pod, next.Node, old.Node)
}

// oneNodeVolume has the program's data on a claim that only one node at a time can mount.
func oneNodeVolume(ctx context.Context, c *Cluster) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: c.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}}}}
	a := c.application("volume", func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
		mounts := &t.Spec.Containers[0].VolumeMounts
		*mounts = append(*mounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	})
	a.hold(ctx)
	c.put(ctx, claim)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	next := a.handover(ctx, "rollout with a volume of one node", func(testimony.Run) { a.rollOut(ctx, d) })
	c.Expect(next.Node).To(Equal(old.Node), "%s is not where its volume is", next.Pod)
	a.rolledOut(ctx, d)
}

// restrictedNamespace tests a namespace that enforces the restricted profile. The witness's folder
// is mounted through a claim, because pods may not use hostPath there.
func restrictedNamespace(ctx context.Context, c *Cluster) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	change(ctx, c, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	a := c.application("restricted")
	volume := a.bindFolder(ctx)
	defer func() { _ = c.Client.Delete(context.WithoutCancel(ctx), volume) }()
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: witnessClaim}}
		t.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(12345)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		t.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	})
	// One pod of each mode. The second one waits for the first.
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode, s.StatusSidecar = v1.GateBinary, new(true) })
	a.pod(ctx, "binary")
	a.one(ctx)
	s := a.singleton(ctx)
	change(ctx, c, s, func(s *v1.StatefulSingleton) { s.Spec.GateMode = v1.GateInit })
	// The webhook reads from a cache, which may still have the other mode.
	for n := 0; ; n++ {
		pod := a.pod(ctx, fmt.Sprint("init-", n))
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1.ContainerWait }) {
			break
		}
		c.remove(ctx, pod)
		c.Expect(n).NotTo(BeNumerically("==", 50), "the mode does not change")
	}
	a.held(ctx, 1)
	a.handover(ctx, "deletion in a restricted namespace", func(old testimony.Run) { a.delete(ctx, old) })
}

// witnessClaim is the claim of the witness's folder.
const witnessClaim = "witness"

// bindFolder creates a volume and a claim for the witness's folder.
func (a *application) bindFolder(ctx context.Context) *corev1.PersistentVolume {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	all := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: all, StorageClassName: a.Namespace,
			ClaimRef:               &corev1.ObjectReference{Namespace: a.Namespace, Name: witnessClaim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: a.Folder.Dir()}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: witnessClaim, Namespace: a.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: all, StorageClassName: &a.Namespace, VolumeName: volume.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: size}}}
	a.put(ctx, volume)
	a.put(ctx, claim)
	return volume
}

// nodeOff stops the kubelets of two nodes, powers the nodes off, and then declares each of them off
// in a different way.
func nodeOff(ctx context.Context, c *Cluster) {
	var nodes corev1.NodeList
	c.list(ctx, &nodes)
	c.Expect(len(nodes.Items)).To(BeNumerically(">=", 4), "%d nodes are too few: each of two applications needs one to lose and one to move to", len(nodes.Items))
	names := c.quietNodes(ctx, nodes.Items)
	lost := []string{names[0], names[1]}
	defer func() { c.powerOn(context.WithoutCancel(ctx), lost) }()
	tainted := c.onLostNode(ctx, "tainted", names[0], names[2])
	removed := c.onLostNode(ctx, "removed", names[1], names[3])
	for _, node := range lost {
		c.Log("stop the kubelet of %s", node)
		c.check(c.Nodes.StopKubelet(node))
	}
	both := []*lostApplication{tainted, removed}
	for _, l := range both {
		l.blocks(ctx)
	}
	for i, l := range both {
		c.check(c.Nodes.StopNode(lost[i]))
		l.none(ctx)
	}
	c.declareOff(ctx, tainted, removed)
}

// declareOff declares two nodes off: one by taint, one by deleting the Node.
func (c *Cluster) declareOff(ctx context.Context, tainted, removed *lostApplication) {
	began := time.Now()
	change(ctx, c, node(tainted.run.Node), func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	})
	c.remove(ctx, node(removed.run.Node))
	for _, l := range []*lostApplication{tainted, removed} {
		next := l.one(ctx, l.run)
		c.Log("%s: the next program started %s after the node had been declared off", l.Name, time.Since(began).Round(100*time.Millisecond))
		l.active(ctx, next)
	}
}

// quietNodes returns the names of the nodes, those without the operator first.
func (c *Cluster) quietNodes(ctx context.Context, nodes []corev1.Node) []string {
	var pods corev1.PodList
	_ = c.Client.List(ctx, &pods) // on error any order works, but takes longer
	var quiet, busy []string
	for _, n := range nodes {
		if slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return p.Namespace == c.Operator.Namespace && p.Spec.NodeName == n.Name
		}) {
			busy = append(busy, n.Name)
		} else {
			quiet = append(quiet, n.Name)
		}
	}
	return append(quiet, busy...)
}

// lostApplication runs on a node that will be lost.
type lostApplication struct {
	*application
	run testimony.Run
}

// onLostNode has a pod that runs on one node and another that waits on a second.
func (c *Cluster) onLostNode(ctx context.Context, name, lost, other string) *lostApplication {
	a := c.application(name)
	a.hold(ctx)
	c.during(name, func() { a.pod(ctx, name+"-old", onNodes(lost)) })
	run := a.one(ctx)
	a.pod(ctx, name+"-next", onNodes(other))
	a.held(ctx, 1)
	return &lostApplication{a, run}
}

// blocks deletes the old pod while its kubelet does not run: the program continues to run, and no
// other may take over.
func (l *lostApplication) blocks(ctx context.Context) {
	l.delete(ctx, l.run)
	l.says(ctx, "that the node is lost", isTrue(v1.ConditionDegraded, v1.ReasonNodeLost))
	l.stays(l.run)
}

// powerOn restores nodes: it boots them, waits for their Nodes, and removes the taint.
func (c *Cluster) powerOn(ctx context.Context, names []string) {
	var all error
	for _, name := range names {
		all = errors.Join(all, c.Nodes.StartNode(name), c.Nodes.StartKubelet(name))
	}
	c.check(all)
	for _, name := range names {
		change(ctx, c, node(name), func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		})
	}
	c.nodesReady(ctx)
}
