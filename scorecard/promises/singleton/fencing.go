package singleton

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// byLease is fencing by a Lease.
func byLease(s *v1.StatefulSingletonSpec) { s.Fencing = &v1.Fencing{Mode: v1.FencingLease} }

// permitFencing gives the operator the rights that fencing requires, as docs/security.md describes.
func permitFencing(ctx context.Context, c *kit.Cluster) {
	err := c.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "stateful-operator-fencing"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stateful-operator-fencing-role"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.Operator.Namespace, Name: "stateful-operator-controller-manager"}},
	})
	c.Check(client.IgnoreAlreadyExists(err))
}

// lostByLease disconnects the node of a program. The agent ends the program, and the next one starts on another node
// without manual intervention. When the node is connected again, the first program does not start again.
func lostByLease(ctx context.Context, c *kit.Cluster) {
	permitFencing(ctx, c)
	var nodes corev1.NodeList
	c.List(ctx, &nodes)
	names := quietNodes(ctx, c, nodes.Items)
	a := newApplication(c, "leased", kit.OnNodes(names[0], names[1]))
	a.hold(ctx, byLease)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	began := time.Now()
	heal := c.Cut(old.Node)
	next := a.one(ctx, old)
	c.Log("the next program started %s after the node had been cut off", time.Since(began).Round(100*time.Millisecond))
	c.Expect(next.Node).NotTo(Equal(old.Node), "the next program runs on the node that is cut off")
	a.active(ctx, next)
	heal()
	c.NodesReady(ctx)
	a.stays(next)
	a.handover(ctx, "a rollout", func(testimony.Run) { a.rollOut(ctx, d) })
}
