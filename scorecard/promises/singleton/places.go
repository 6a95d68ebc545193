package singleton

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Nodes, volumes and namespaces of pods.

func placement(ctx context.Context, c *kit.Cluster) {
	a, _ := startApplication(ctx, c, 2, "spread")
	old := a.one(ctx)
	next := a.handover(ctx, "deletion with a standby on another node", func(old testimony.Run) { a.delete(ctx, old) })
	c.Expect(next.Node).NotTo(Equal(old.Node), "both were on %s", old.Node)
	// The user's own node affinity is kept: only one node is allowed here.
	b, d := startApplication(ctx, c, 1, "narrow", kit.OnNodes(old.Node))
	next = b.handover(ctx, "rollout on one node", func(testimony.Run) { b.rollOut(ctx, d) })
	c.Expect(next.Node).To(Equal(old.Node), "%s is on %s, want %s", next.Pod, next.Node, old.Node)
}

// oneNodeVolume has the program's data on a claim that only one node at a time can mount.
func oneNodeVolume(ctx context.Context, c *kit.Cluster) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: c.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}}}}
	a := newApplication(c, "volume", func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
		mounts := &t.Spec.Containers[0].VolumeMounts
		*mounts = append(*mounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	})
	a.hold(ctx)
	c.Put(ctx, claim)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	next := a.handover(ctx, "rollout with a volume of one node", func(testimony.Run) { a.rollOut(ctx, d) })
	c.Expect(next.Node).To(Equal(old.Node), "%s is not where its volume is", next.Pod)
	a.rolledOut(ctx, d)
}

// restrictedNamespace tests a namespace that enforces the restricted profile. The witness's folder
// is mounted through a claim, because pods may not use hostPath there.
func restrictedNamespace(ctx context.Context, c *kit.Cluster) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	kit.Change(ctx, c, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	a := newApplication(c, "restricted")
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
	kit.Change(ctx, c, s, func(s *v1.StatefulSingleton) { s.Spec.GateMode = v1.GateInit })
	// The webhook reads from a cache, which may still have the other mode.
	for n := 0; ; n++ {
		pod := a.pod(ctx, fmt.Sprint("init-", n))
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1.ContainerWait }) {
			break
		}
		c.Remove(ctx, pod)
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
	a.Put(ctx, volume)
	a.Put(ctx, claim)
	return volume
}

// nodeOff stops the kubelets of two nodes, powers the nodes off, and then declares each of them off
// in a different way.
func nodeOff(ctx context.Context, c *kit.Cluster) {
	names := quietNodes(ctx, c)
	c.Expect(len(names)).To(BeNumerically(">=", 4), "%d nodes are too few: each of two applications needs one to lose and one to move to", len(names))
	lost := []string{names[0], names[1]}
	defer func() { c.PowerOn(context.WithoutCancel(ctx), lost) }()
	tainted := onLostNode(ctx, c, "tainted", names[0], names[2])
	removed := onLostNode(ctx, c, "removed", names[1], names[3])
	for _, node := range lost {
		c.Log("stop the kubelet of %s", node)
		c.Check(c.Nodes.StopKubelet(node))
	}
	both := []*lostApplication{tainted, removed}
	for _, l := range both {
		l.blocks(ctx)
	}
	for i, l := range both {
		c.Check(c.Nodes.StopNode(lost[i]))
		l.none(ctx)
	}
	declareOff(ctx, c, tainted, removed)
}

// declareOff declares two nodes off: one by taint, one by deleting the Node.
func declareOff(ctx context.Context, c *kit.Cluster, tainted, removed *lostApplication) {
	began := time.Now()
	kit.Change(ctx, c, kit.Node(tainted.run.Node), func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	})
	c.Remove(ctx, kit.Node(removed.run.Node))
	for _, l := range []*lostApplication{tainted, removed} {
		next := l.one(ctx, l.run)
		c.Log("%s: the next program started %s after the node had been declared off", l.Name, time.Since(began).Round(100*time.Millisecond))
		l.active(ctx, next)
	}
}

// quietNodes returns the names of the nodes, those without the operator first.
func quietNodes(ctx context.Context, c *kit.Cluster) []string {
	var nodes corev1.NodeList
	c.List(ctx, &nodes)
	var pods corev1.PodList
	_ = c.Client.List(ctx, &pods) // on error any order works, but takes longer
	var quiet, busy []string
	for _, n := range nodes.Items {
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
func onLostNode(ctx context.Context, c *kit.Cluster, name, lost, other string, change ...func(*v1.StatefulSingletonSpec)) *lostApplication {
	a := newApplication(c, name)
	a.hold(ctx, change...)
	c.During(name, func() { a.pod(ctx, name+"-old", kit.OnNodes(lost)) })
	run := a.one(ctx)
	a.pod(ctx, name+"-next", kit.OnNodes(other))
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

// mountsGate runs programs on Nodes that all support image volumes, then beside a Node that does not,
// and then without it again.
func mountsGate(ctx context.Context, c *kit.Cluster) {
	a, d := startApplication(ctx, c, 1, "mounted")
	if !a.supportsImageVolumes(ctx) {
		a.copied(ctx, a.one(ctx))
		return
	}
	a.mounted(ctx, a.one(ctx))
	remove := c.AddOldNode(ctx)
	a.copied(ctx, a.handover(ctx, "a rollout beside an older Node", func(testimony.Run) { a.rollOut(ctx, d) }))
	a.rolledOut(ctx, d)
	remove()
	a.mounted(ctx, a.handover(ctx, "a rollout without it", func(testimony.Run) { a.rollOut(ctx, d) }))
}

// supportsImageVolumes reports whether all Nodes have image volumes by default.
func (a *application) supportsImageVolumes(ctx context.Context) bool {
	var nodes corev1.NodeList
	a.List(ctx, &nodes)
	return !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		number, err := version.ParseGeneric(n.Status.NodeInfo.KubeletVersion)
		return err != nil || number.LessThan(version.MajorMinor(1, 35))
	})
}

// copied checks that an init container has copied the gate into the pod of a program.
func (a *application) copied(ctx context.Context, run testimony.Run) {
	pod := a.podOf(ctx, run)
	a.Expect(pod.Spec.InitContainers).To(ContainElement(HaveField("Name", v1.ContainerInstall)))
	a.Expect(pod.Spec.Volumes).To(ContainElement(And(HaveField("Name", v1.VolumeGate), HaveField("EmptyDir", Not(BeNil())))))
}

// mounted checks that only a volume was added to the pod of a program, and that kubectl drain needs no
// flag to evict it.
func (a *application) mounted(ctx context.Context, run testimony.Run) {
	pod := a.podOf(ctx, run)
	a.Expect(pod.Spec.InitContainers).To(BeEmpty())
	a.Expect(pod.Spec.Containers).To(HaveLen(1))
	a.Expect(pod.Spec.Volumes).To(ContainElement(And(HaveField("Name", v1.VolumeGate), HaveField("Image", Not(BeNil())))))
	a.Expect(pod.Spec.Volumes).NotTo(ContainElement(HaveField("EmptyDir", Not(BeNil()))))
}
