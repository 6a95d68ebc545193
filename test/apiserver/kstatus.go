package apiserver

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Kstatus is what kstatus says of an object as the server has it, and the generation that
// its status speaks of.
func (s Server) Kstatus(ctx context.Context, object client.Object) string {
	GinkgoHelper()
	kind, err := apiutil.GVKForObject(object, s.Scheme)
	Expect(err).NotTo(HaveOccurred())
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(kind)
	Expect(s.User.Get(ctx, client.ObjectKeyFromObject(object), have)).To(Succeed())
	result, err := status.Compute(have)
	Expect(err).NotTo(HaveOccurred())
	seen, found, err := unstructured.NestedInt64(have.Object, "status", "observedGeneration")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue(), "it has no status.observedGeneration, so that kstatus takes it for current")
	return fmt.Sprintf("%s, generation %d", result.Status, seen)
}
