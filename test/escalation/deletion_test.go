package escalation

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletionProtection tests that an object of each kind with deletionProtection is not deleted.
func (s site) deletionProtection(t *testing.T) {
	for _, object := range []client.Object{
		cluster(""), replicated("", ""), extended("", ""), singleton(),
	} {
		object.SetName("kept-" + object.GetName())
		t.Run(fmt.Sprintf("%T", object), func(t *testing.T) {
			g := NewWithT(t)
			protect := func(object client.Object, on string) error {
				return s.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"deletionProtection": `+on+`}}`)))
			}
			refused := MatchError(And(ContainSubstring("spec.deletionProtection"), ContainSubstring("kubectl patch"), ContainSubstring(object.GetName())))

			kept := object.DeepCopyObject().(client.Object)
			g.Expect(s.admin.Create(t.Context(), kept)).To(Succeed())
			g.Expect(s.admin.Delete(t.Context(), kept, client.DryRunAll)).To(Succeed(), "without protection")
			g.Expect(protect(kept, "true")).To(Succeed())
			g.Expect(s.admin.Delete(t.Context(), kept)).To(refused)
			g.Expect(s.admin.Delete(t.Context(), kept, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(refused)
			g.Expect(s.admin.DeleteAllOf(t.Context(), kept, client.InNamespace(tenant), client.MatchingFields{"metadata.name": kept.GetName()})).To(refused)
			g.Expect(protect(kept, "false")).To(Succeed())
			g.Expect(s.admin.Delete(t.Context(), kept)).To(Succeed())

			leaving := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "leaving-"}}
			g.Expect(s.admin.Create(t.Context(), leaving)).To(Succeed())
			kept = object.DeepCopyObject().(client.Object)
			kept.SetNamespace(leaving.Name)
			g.Expect(s.admin.Create(t.Context(), kept)).To(Succeed())
			g.Expect(protect(kept, "true")).To(Succeed())
			g.Expect(s.admin.Delete(t.Context(), kept)).To(refused)
			g.Expect(s.admin.Delete(t.Context(), leaving)).To(Succeed())
			g.Eventually(func() error { return s.admin.Delete(t.Context(), kept) }, time.Minute).Should(Succeed(), "the namespace is being deleted")
		})
	}
}
