package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Where pods run: nodes, volumes, namespaces.

// onNode asks for a node, by what only affinity can say.
func onNodes(names ...string) podChange {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}}}}}}}
	}
}

func placement(ctx context.Context, c *Cluster) error {
	a, err := c.application("spread")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	next, err := a.handover(ctx, "deletion with a standby on another node", func(old testimony.Run) error { return a.delete(ctx, old) })
	if err != nil {
		return err
	}
	if next.Node == old.Node {
		return fmt.Errorf("both were on %s", old.Node)
	}
	// What the user says of nodes stays: here there is only one.
	b, err := c.application("narrow", onNodes(old.Node))
	if err != nil {
		return err
	}
	if err := b.hold(ctx); err != nil {
		return err
	}
	d, err := b.deploy(ctx, 1, surge())
	if err != nil {
		return err
	}
	next, err = b.handover(ctx, "rollout on one node", func(testimony.Run) error { return b.rollOut(ctx, d) })
	if err == nil && next.Node != old.Node {
		err = fmt.Errorf("%s is on %s, and was to be on %s", next.Pod, next.Node, old.Node)
	}
	return err
}

// oneNodeVolume has the data of the program on a claim that one node at a time
// can mount.
func oneNodeVolume(ctx context.Context, c *Cluster) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: c.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}}}}
	a, err := c.application("volume", func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
		mounts := &t.Spec.Containers[0].VolumeMounts
		*mounts = append(*mounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	})
	if err != nil {
		return err
	}
	if err := errors.Join(a.hold(ctx), c.Client.Create(ctx, claim)); err != nil {
		return err
	}
	d, err := a.deploy(ctx, 1, surge())
	if err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	next, err := a.handover(ctx, "rollout with a volume of one node", func(testimony.Run) error { return a.rollOut(ctx, d) })
	if err == nil && next.Node != old.Node {
		err = fmt.Errorf("%s is not where its volume is", next.Pod)
	}
	return errors.Join(err, a.rolledOut(ctx, d))
}

// restrictedNamespace is one where nothing may be asked for; the witness's folder
// comes by a claim, since a pod may not ask for a folder of its node.
func restrictedNamespace(ctx context.Context, c *Cluster) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	err := change(ctx, c, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	if err != nil {
		return err
	}
	a, err := c.application("restricted")
	if err != nil {
		return err
	}
	volume, err := a.bindFolder(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Client.Delete(context.WithoutCancel(ctx), volume) }()
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: witnessVolume}}
		t.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(12345)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		t.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	})
	// One pod of each mode; the second one waits for the first.
	if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode, s.StatusSidecar = v1.GateBinary, new(true) }); err != nil {
		return err
	}
	if _, err := a.pod(ctx, "binary"); err != nil {
		return err
	}
	if _, err := a.one(ctx); err != nil {
		return err
	}
	s, err := a.singleton(ctx)
	if err != nil {
		return err
	}
	if err := change(ctx, c, s, func(s *v1.StatefulSingleton) { s.Spec.GateMode = v1.GateInit }); err != nil {
		return err
	}
	// The webhook answers from a cache, which may still have the other mode.
	for n := 0; ; n++ {
		pod, err := a.pod(ctx, fmt.Sprint("init-", n))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1.ContainerWait }) {
			break
		}
		if err := a.Client.Delete(ctx, pod); err != nil || n == 50 {
			return errors.Join(err, errors.New("the mode does not change"))
		}
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	_, err = a.handover(ctx, "deletion in a restricted namespace", func(old testimony.Run) error { return a.delete(ctx, old) })
	return err
}

// bindFolder makes the witness's folder a volume with a claim.
func (a *application) bindFolder(ctx context.Context) (*corev1.PersistentVolume, error) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	all := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: all, StorageClassName: a.Namespace,
			ClaimRef:               &corev1.ObjectReference{Namespace: a.Namespace, Name: witnessVolume},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: a.folder.Dir()}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: witnessVolume, Namespace: a.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: all, StorageClassName: &a.Namespace, VolumeName: volume.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: size}}}
	return volume, errors.Join(a.Client.Create(ctx, volume), a.Client.Create(ctx, claim))
}

// nodeOff takes the kubelets of two nodes away, powers the nodes off, and then
// declares each off in its own way.
func nodeOff(ctx context.Context, c *Cluster) (err error) {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return err
	}
	if len(nodes.Items) < 4 {
		return fmt.Errorf("%d nodes are too few: each of two applications needs one to lose and one to go to", len(nodes.Items))
	}
	names := c.quietNodes(ctx, nodes.Items)
	lost := []string{names[0], names[1]}
	defer func() { err = errors.Join(err, c.powerOn(context.WithoutCancel(ctx), lost)) }()
	tainted, err := c.onLostNode(ctx, "tainted", names[0], names[2])
	if err != nil {
		return err
	}
	removed, err := c.onLostNode(ctx, "removed", names[1], names[3])
	if err != nil {
		return err
	}
	for _, node := range lost {
		c.Log("stopping the kubelet of %s", node)
		if err := c.Nodes.StopKubelet(node); err != nil {
			return err
		}
	}
	both := []*lostApplication{tainted, removed}
	for _, l := range both {
		if err := l.blocks(ctx); err != nil {
			return err
		}
	}
	for i, l := range both {
		if err := c.Nodes.StopNode(lost[i]); err != nil {
			return err
		}
		if err := l.none(ctx); err != nil {
			return err
		}
	}
	return c.declareOff(ctx, tainted, removed)
}

// declareOff says of two nodes that are off that they are: by taint, and by
// deleting the Node.
func (c *Cluster) declareOff(ctx context.Context, tainted, removed *lostApplication) error {
	began := time.Now()
	err := change(ctx, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: tainted.run.Node}}, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	})
	if err != nil {
		return err
	}
	if err := c.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: removed.run.Node}}); err != nil {
		return err
	}
	for _, l := range []*lostApplication{tainted, removed} {
		next, err := l.one(ctx, l.run)
		if err != nil {
			return err
		}
		c.Log("%s: the next program started %s after the node had been declared off", l.name, time.Since(began).Round(100*time.Millisecond))
		if err := l.active(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// quietNodes are the names of the nodes, those without the operator first.
func (c *Cluster) quietNodes(ctx context.Context, nodes []corev1.Node) []string {
	var pods corev1.PodList
	_ = c.Client.List(ctx, &pods) // then any order will do, and takes longer
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

// lostApplication runs on a node that is about to be lost.
type lostApplication struct {
	*application
	run testimony.Run
}

// onLostNode has a pod run on one node and another wait on a second.
func (c *Cluster) onLostNode(ctx context.Context, name, lost, other string) (*lostApplication, error) {
	a, err := c.application(name)
	if err != nil {
		return nil, err
	}
	if err := a.hold(ctx); err != nil {
		return nil, err
	}
	if _, err := a.pod(ctx, name+"-old", onNodes(lost)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	run, err := a.one(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := a.pod(ctx, name+"-next", onNodes(other)); err != nil {
		return nil, err
	}
	_, err = a.held(ctx, 1)
	return &lostApplication{a, run}, err
}

// blocks deletes the old pod, whose kubelet does not hear it: the program runs
// on, and nobody may take over.
func (l *lostApplication) blocks(ctx context.Context) error {
	if err := l.delete(ctx, l.run); err != nil {
		return err
	}
	if _, err := l.says(ctx, "that the node is lost", isTrue(v1.ConditionDegraded, v1.ReasonNodeLost)); err != nil {
		return err
	}
	return l.stays(l.run)
}

// powerOn brings nodes back as they were: booted, with their Nodes, and without
// the taint.
func (c *Cluster) powerOn(ctx context.Context, names []string) error {
	var all error
	for _, name := range names {
		all = errors.Join(all, c.Nodes.StartNode(name), c.Nodes.StartKubelet(name))
	}
	if all != nil {
		return all
	}
	for _, name := range names {
		err := change(ctx, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		})
		all = errors.Join(all, err)
	}
	return errors.Join(all, c.nodesReady(ctx))
}
