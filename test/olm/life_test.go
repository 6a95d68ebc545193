package olm_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/singleton"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// The lifecycle of an installation: subscription to the earlier version, creation of operands, upgrade,
// removal, and another subscription. Nothing is left at the end.
const (
	lifeNamespace = "stateful-operator-system"
	lifeOperands  = "operands"
)

func life(t *testing.T, s *site) {
	for _, step := range []struct {
		name string
		do   func(*site, context.Context)
	}{
		{"OLM-3 a subscription installs the operator", (*site).subscribes},
		{"OLM-3 its webhooks work with OLM's certificates", (*site).webhooks},
		{"OLM-3 a sample of each kind becomes Ready", (*site).samples},
		{"OLM-3 an upgrade does not change operands and completes a handover", (*site).upgrades},
		{"OLM-3 operands continue to run without the operator", (*site).uninstalls},
		{"OLM-3 a new subscription takes over the operands, and everything can be removed", (*site).removes},
	} {
		if !s.try(t, step.name, step.do) {
			t.FailNow() // later steps depend on this one
		}
	}
}

func (s *site) subscribes(ctx context.Context) {
	s.m.Subscribe(ctx, olm.Subscription{Namespace: lifeNamespace, Catalog: s.catalog, Start: s.earlier.Name, Manual: true})
	s.m.Approve(ctx, lifeNamespace, s.earlier.Name)
	s.m.Succeeded(ctx, lifeNamespace, s.earlier.Name)
	s.operatorRuns(ctx, lifeNamespace, s.earlier)
}

// webhooks verifies that the API server trusts the operator. Unreachable webhooks are ignored, so it
// checks the webhooks' effects.
func (s *site) webhooks(ctx context.Context) {
	s.m.MakeNamespace(ctx, lifeOperands, nil)
	s.refusesBadObject(ctx, lifeOperands)
	var secrets corev1.SecretList
	s.Expect(s.m.Client.List(ctx, &secrets, client.InNamespace(lifeNamespace))).To(Succeed())
	var names []string
	for i := range secrets.Items {
		names = append(names, secrets.Items[i].Name)
	}
	s.Expect(names).To(And(ContainElement(olm.WebhookName+"-service-cert"), Not(ContainElement("stateful-operator-webhook-certs"))),
		"want OLM's certificate and not one of the operator")
}

func (s *site) samples(ctx context.Context) {
	s.applySamples(ctx, lifeOperands, samplesOfKinds)
	s.samplesReady(ctx, lifeOperands, samplesOfKinds)
}

func (s *site) upgrades(ctx context.Context) {
	before := s.operands(ctx, lifeOperands)
	c, _, err := s.promises(s.t).New(ctx)
	s.Expect(err).To(Succeed())
	err = singleton.HandoverDuring(ctx, c, "the upgrade", func() error {
		// The witness's result is needed even if the upgrade fails.
		return s.m.Try(func(m *olm.Manager) {
			m.Approve(ctx, lifeNamespace, s.present.Name)
			m.Succeeded(ctx, lifeNamespace, s.present.Name)
			own := *s
			own.Gomega, own.m = m, m
			own.operatorRuns(ctx, lifeNamespace, s.present)
		})
	})
	s.Expect(err).To(Succeed())
	s.untouched(ctx, lifeOperands, before)
	s.refusesBadObject(ctx, lifeOperands)
	s.samplesReady(ctx, lifeOperands, samplesOfKinds)
	// Wait for the deletion: without the operator a StatefulSingleton in the namespace would stay.
	s.deleteNamespace(ctx, c.Namespace)
}

func (s *site) uninstalls(ctx context.Context) {
	before := s.operands(ctx, lifeOperands)
	s.m.Unsubscribe(ctx, lifeNamespace)
	s.noWebhooks(ctx)
	s.untouched(ctx, lifeOperands, before)
	// Only one program may run. So while the operator is removed, a second pod of it is rejected, and
	// other pods are allowed.
	s.Expect(s.m.Client.Create(ctx, podOf("mailer"), client.DryRunAll)).To(MatchError(ContainSubstring("StatefulSingleton mailer")),
		"a pod of the mailer should be refused by the guard")
	s.Expect(s.m.Client.Create(ctx, podOf("stranger"), client.DryRunAll)).To(Succeed())
}

func podOf(app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeOperands, GenerateName: app + "-", Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "program", Image: "localhost/none:1", Command: []string{"/program"}}}},
	}
}

func (s *site) removes(ctx context.Context) {
	before := s.operands(ctx, lifeOperands)
	s.m.Subscribe(ctx, olm.Subscription{Namespace: lifeNamespace, Catalog: s.catalog})
	s.m.Succeeded(ctx, lifeNamespace, s.present.Name)
	s.samplesReady(ctx, lifeOperands, samplesOfKinds)
	s.untouched(ctx, lifeOperands, before)
	s.leaveAsDocumented(ctx, lifeOperands)
}
