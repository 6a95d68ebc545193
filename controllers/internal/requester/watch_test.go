package requester

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

func TestWatchNoticesMissingPolicies(t *testing.T) {
	g := NewWithT(t)
	kind := Kind{GroupVersion: schema.GroupVersion{Group: "a", Version: "v1"}, Name: "Database", Plural: "databases",
		Owned: []admissionv1.Rule{{Resources: []string{"pods"}}}}
	there := &objects.Objects{All: map[objects.Key]client.Object{}}
	bind := func(name string) {
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		there.All[objects.KeyOf(binding)] = binding
	}
	bind("database-requester-home")
	w := &Watch{Live: there, Kinds: []Kind{kind}, Namespace: "home", Accounts: []string{"webhook-account-home"}}
	g.Expect(w.look(t.Context())).To(ConsistOf("database-deletion-home", "database-owner-home", "webhook-account-home"))
	g.Expect(testutil.ToFloat64(missingGauge.WithLabelValues("accounts"))).To(BeEquivalentTo(1))
	g.Expect(testutil.ToFloat64(missingGauge.WithLabelValues("Database"))).To(BeEquivalentTo(2))
	bind("database-deletion-home")
	bind("database-owner-home")
	bind("webhook-account-home")
	g.Expect(w.look(t.Context())).To(BeEmpty())
	g.Expect(testutil.ToFloat64(missingGauge.WithLabelValues("Database"))).To(BeZero())
}
