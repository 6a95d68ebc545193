package promises

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// applyOrders applies a manifest with an order at every look, as GitOps tools do at every
// interval. As long as clients write, the member may lack the last entries when the old primary
// is demoted, and be refused: then another id is written, as a person would.
func applyOrders(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "orders", 3, often("2s"))
	heir, id := r.set.Status.Members.Secondary[0], ""
	for try := range 9 {
		id = fmt.Sprintf("try-%d", try)
		if r.orderEnds(ctx, heir, id) == v1alpha1.OrderDone {
			break
		}
	}
	r.whole(ctx) // members are listed by a later write than what became of an order
	epoch := r.set.Status.Epoch
	c.Expect(r.set.Status.Members.Primary).To(HaveExactElements(heir))
	r.check(r.Client.Delete(ctx, r.primary(ctx))) // another member takes over, and the order stays in the manifest
	r.until(ctx, "a failover, and all members to be there again", func(ctx context.Context) {
		r.applyOrder(ctx, heir, id)
		r.read(ctx, r.set)
		c.Expect(r.set.Status.Epoch).To(BeNumerically(">", epoch))
		c.Expect(r.set.Status.Members.Primary).To(HaveLen(1))
		c.Expect(r.set.Status.Members.Secondary).To(HaveLen(2))
	})
	r.whole(ctx)
	epoch = r.set.Status.Epoch
	other := r.set.Status.Members.Secondary[0]
	// An order that is refused at once, since another is primary, shows that the operator has
	// looked at the rest.
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.SeedFrom = &v1alpha1.MemberOrder{Member: other, ID: "look"}
	})
	r.until(ctx, "the seed to be refused", func(ctx context.Context) {
		r.read(ctx, r.set)
		c.Expect(r.set.Status.Orders).To(ContainElement(And(HaveField("ID", "look"), HaveField("Result", v1alpha1.OrderRefused))))
	})
	c.Expect(r.set.Status.Epoch).To(Equal(epoch), "the order has moved the role again")
	r.judge(ctx)
}

// orderEnds applies an order until the operator has carried it out or refused it, and says
// which.
func (r *replica) orderEnds(ctx context.Context, member, id string) (result v1alpha1.OrderResult) {
	r.until(ctx, "order "+id+" to end", func(ctx context.Context) {
		r.applyOrder(ctx, member, id)
		r.read(ctx, r.set)
		for _, o := range r.set.Status.Orders {
			if o.ID == id {
				result = o.Result
			}
		}
		r.Expect(result).To(BeElementOf(v1alpha1.OrderDone, v1alpha1.OrderRefused))
	})
	return result
}

// applyOrder applies a manifest of a switchover, as a tool does that owns the field.
func (r *replica) applyOrder(ctx context.Context, member, id string) {
	manifest := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"switchoverTo": map[string]any{"member": member, "id": id}}}}
	manifest.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))
	manifest.SetNamespace(r.set.Namespace)
	manifest.SetName(r.set.Name)
	r.check(r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("gitops"), client.ForceOwnership))
}
