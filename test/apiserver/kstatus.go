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

// Kstatus returns the status that kstatus computes for the object on the server, and the generation
// that the object's status has observed.
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
	Expect(found).To(BeTrue(), "it has no status.observedGeneration, so kstatus treats it as current")
	return fmt.Sprintf("%s, generation %d", result.Status, seen)
}
