package kit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Node returns a Node with only a name.
func Node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// AddOldNode adds a Node that does not support image volumes, and waits until the operator has read it. remove does
// the same without it.
func (c *Cluster) AddOldNode(ctx context.Context) (remove func()) {
	const afterRead = 11 * time.Second // the operator reads the Nodes at most every 10 s
	old := Node("without-image-volumes")
	old.Spec.Unschedulable = true
	c.Put(ctx, old)
	deleted := sync.OnceFunc(func() { c.Remove(context.WithoutCancel(ctx), old) })
	c.Cleanup(deleted)
	Sleep(ctx, afterRead)
	return func() {
		deleted()
		Sleep(ctx, afterRead)
	}
}

// Schedulable returns the names of the nodes that accept pods.
func (c *Cluster) Schedulable(ctx context.Context) []string {
	var list corev1.NodeList
	c.List(ctx, &list)
	var names []string
	for _, n := range list.Items {
		if !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// NodesReady waits until every Node is Ready.
func (c *Cluster) NodesReady(ctx context.Context) {
	c.Until(ctx, "all nodes to be Ready", func(ctx context.Context) {
		var nodes corev1.NodeList
		c.List(ctx, &nodes)
		for _, n := range nodes.Items {
			for _, condition := range n.Status.Conditions {
				c.Expect(condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue).To(BeFalse(), "%s is not Ready", n.Name)
			}
		}
	})
}

// annotationCordoned on a node is the namespace of the promise that has cordoned it. Promises run
// at the same time, and one must not uncordon the node of another.
const annotationCordoned = "promises.stateful-operator/cordoned-by"

// Cordon cordons or uncordons a node. It waits to cordon a node until no other promise has cordoned
// it, and does not uncordon a node that another promise has cordoned.
func (c *Cluster) Cordon(ctx context.Context, name string, on bool) {
	Change(ctx, c, Node(name), func(n *corev1.Node) {
		owner := n.Annotations[annotationCordoned]
		ours := owner == "" || owner == c.Namespace || c.isDeleted(ctx, owner)
		switch {
		case !ours && on:
			c.Fail("node %s is cordoned by the promise in namespace %s", name, owner)
		case !ours:
			return
		case on:
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotationCordoned, c.Namespace)
		default:
			delete(n.Annotations, annotationCordoned)
		}
		n.Spec.Unschedulable = on
	})
}

// CordonAll cordons or uncordons several nodes.
func (c *Cluster) CordonAll(ctx context.Context, nodes []corev1.Node, on bool) {
	for _, n := range nodes {
		c.Cordon(ctx, n.Name, on)
	}
}

// isDeleted reports whether a namespace does not exist. A promise that was killed leaves its nodes
// cordoned.
func (c *Cluster) isDeleted(ctx context.Context, namespace string) bool {
	var found corev1.Namespace
	err := c.Client.Get(ctx, client.ObjectKey{Name: namespace}, &found)
	c.Check(client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err)
}

// Cut disconnects nodes from the network until heal is called, at the latest at the end.
func (c *Cluster) Cut(nodes ...string) (heal func()) {
	var off []string
	heal = func() {
		var err error
		for _, name := range off {
			err = errors.Join(err, c.Nodes.Heal(name))
		}
		off = nil
		c.Check(err)
	}
	c.Cleanup(heal)
	for _, name := range nodes {
		off = append(off, name)
		c.Check(c.Nodes.Cut(name))
	}
	return heal
}

// PowerOn restores nodes: it boots them, waits for their Nodes, and removes the taint.
func (c *Cluster) PowerOn(ctx context.Context, names []string) {
	var all error
	for _, name := range names {
		all = errors.Join(all, c.Nodes.StartNode(name), c.Nodes.StartKubelet(name))
	}
	c.Check(all)
	for _, name := range names {
		Change(ctx, c, Node(name), func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		})
	}
	c.NodesReady(ctx)
}
