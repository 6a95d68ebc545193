package slim

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestMetadataIsBounded(t *testing.T) {
	g := NewWithT(t)
	m := &metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"kept": "1", "other": "2"},
		Finalizers: []string{"ours"}, ManagedFields: []metav1.ManagedFieldsEntry{{}}, OwnerReferences: make([]metav1.OwnerReference, maxOwners)}
	g.Expect(Bounded(m, "kept")).To(BeFalse())
	g.Expect(*m).To(Equal(metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"kept": "1"},
		Finalizers: []string{"ours"}, OwnerReferences: make([]metav1.OwnerReference, maxOwners)}), "exactly the limit")

	m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{Name: "it", Controller: ptr.To(true)})
	for i := range 300 {
		m.Labels[fmt.Sprint(i)] = strings.Repeat("x", 60)
	}
	g.Expect(Bounded(m)).To(BeTrue())
	g.Expect(*m).To(Equal(metav1.ObjectMeta{Name: "a", Finalizers: []string{"ours"}, OwnerReferences: m.OwnerReferences}))
	g.Expect(m.OwnerReferences).To(ConsistOf(HaveField("Name", "it")), "the controller")

	m.OwnerReferences[0].Name = strings.Repeat("x", 1<<20)
	m.Finalizers = make([]string, 1000)
	Bounded(m)
	g.Expect(m.OwnerReferences).To(BeEmpty(), "no object has such a name")
	g.Expect(m.Finalizers).To(HaveLen(maxFinalizers))
}
