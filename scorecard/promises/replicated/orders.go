package replicated

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// applyOrders applies a manifest with an order repeatedly, as GitOps tools do at every interval.
// While clients write, the member may lack the last entries when the old primary is demoted. The
// order is then refused, and retried with a new ID, as a user would do.
func applyOrders(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "orders", 3, often("2s"))
	heir, id := r.set.Status.Members.Secondary[0], ""
	for try := range 9 {
		id = fmt.Sprintf("try-%d", try)
		if r.orderEnds(ctx, heir, id) == v1alpha1.OrderDone {
			break
		}
	}
	r.whole(ctx) // status.members is written after the result of an order
	epoch := r.set.Status.Epoch
	c.Expect(r.set.Status.Members.Primary).To(HaveExactElements(heir))
	r.Check(r.Client.Delete(ctx, r.primary(ctx))) // another member takes over, and the order stays in the manifest
	r.Until(ctx, "a failover, and all members to be running again", func(ctx context.Context) {
		r.applyOrder(ctx, heir, id)
		r.Read(ctx, r.set)
		c.Expect(r.set.Status.Epoch).To(BeNumerically(">", epoch))
		c.Expect(r.set.Status.Members.Primary).To(HaveLen(1))
		c.Expect(r.set.Status.Members.Secondary).To(HaveLen(2))
	})
	r.whole(ctx)
	epoch = r.set.Status.Epoch
	other := r.set.Status.Members.Secondary[0]
	// This order is refused at once, because another member is primary. Its result shows that the
	// operator has processed the rest of the spec too.
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.SeedFrom = &v1alpha1.MemberOrder{Member: other, ID: "look"}
	})
	r.Until(ctx, "the seed to be refused", func(ctx context.Context) {
		r.Read(ctx, r.set)
		c.Expect(r.set.Status.Orders).To(ContainElement(And(HaveField("ID", "look"), HaveField("Result", v1alpha1.OrderRefused))))
	})
	c.Expect(r.set.Status.Epoch).To(Equal(epoch), "the order has moved the role again")
	r.judge(ctx)
}

// orderEnds applies an order until the operator has executed or refused it, and returns the result.
func (r *replica) orderEnds(ctx context.Context, member, id string) (result v1alpha1.OrderResult) {
	r.Until(ctx, "order "+id+" to end", func(ctx context.Context) {
		r.applyOrder(ctx, member, id)
		r.Read(ctx, r.set)
		for _, o := range r.set.Status.Orders {
			if o.ID == id {
				result = o.Result
			}
		}
		r.Expect(result).To(BeElementOf(v1alpha1.OrderDone, v1alpha1.OrderRefused))
	})
	return result
}

// applyOrder applies a manifest with a switchover, like a tool that owns the field.
func (r *replica) applyOrder(ctx context.Context, member, id string) {
	manifest := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"switchoverTo": map[string]any{"member": member, "id": id}}}}
	manifest.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))
	manifest.SetNamespace(r.set.Namespace)
	manifest.SetName(r.set.Name)
	r.Check(r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("gitops"), client.ForceOwnership))
}
