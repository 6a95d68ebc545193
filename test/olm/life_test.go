package olm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// The life of an installation: the earlier version is subscribed to, has operands,
// is upgraded, removed and subscribed to again, and nothing is left in the end.
const (
	lifeNamespace = "stateful-operator-system"
	lifeOperands  = "operands"
)

func life(t *testing.T, s *site) {
	steps := []struct {
		name string
		do   func(*testing.T, *site) error
	}{
		{"OLM-3 a subscription installs the operator", subscribes},
		{"OLM-3 its webhooks work with OLM's certificates", webhooks},
		{"OLM-3 a sample of each kind becomes Ready", samples},
		{"OLM-3 an upgrade leaves operands alone and a handover whole", upgrades},
		{"OLM-3 without the operator its operands run on", uninstalls},
		{"OLM-3 subscribed to again it takes them over, and all can be removed", removes},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { s.check(t, step.do(t, s)) }) {
			t.FailNow() // what follows begins where this ends
		}
	}
}

func subscribes(t *testing.T, s *site) error {
	ctx := t.Context()
	err := s.m.Subscribe(ctx, olm.Subscription{Namespace: lifeNamespace, Catalog: s.catalog, Start: s.earlier.Name, Manual: true})
	if err != nil {
		return err
	}
	if err := s.m.Approve(ctx, lifeNamespace, s.earlier.Name); err != nil {
		return err
	}
	if _, err := s.m.Succeeded(ctx, lifeNamespace, s.earlier.Name); err != nil {
		return err
	}
	return s.operatorRuns(ctx, lifeNamespace, s.earlierImage)
}

// webhooks shows that the API server trusts the operator: a webhook that it does
// not reach is ignored, so what is looked at is what the webhooks did.
func webhooks(t *testing.T, s *site) error {
	ctx := t.Context()
	if err := s.m.MakeNamespace(ctx, lifeOperands, nil); err != nil {
		return err
	}
	if err := s.refusesBadObject(ctx, lifeOperands); err != nil {
		return err
	}
	var secrets corev1.SecretList
	if err := s.m.Client.List(ctx, &secrets, client.InNamespace(lifeNamespace)); err != nil {
		return err
	}
	var names []string
	for i := range secrets.Items {
		names = append(names, secrets.Items[i].Name)
	}
	if !slices.Contains(names, olm.DeploymentName+"-service-cert") || slices.Contains(names, "stateful-operator-webhook-certs") {
		return fmt.Errorf("want OLM's certificate and none of the operator's own; Secrets are %v", names)
	}
	return nil
}

func samples(t *testing.T, s *site) error {
	ctx := t.Context()
	if err := s.applySamples(ctx, lifeOperands, samplesOfKinds); err != nil {
		return err
	}
	return s.samplesReady(ctx, lifeOperands, samplesOfKinds)
}

func upgrades(t *testing.T, s *site) error {
	ctx := t.Context()
	before, err := s.operands(ctx, lifeOperands)
	if err != nil {
		return err
	}
	c, _, err := s.promises(t).New(ctx)
	if err != nil {
		return err
	}
	err = promises.HandoverDuring(ctx, c, "the upgrade", func() error {
		if err := s.m.Approve(ctx, lifeNamespace, s.present.Name); err != nil {
			return err
		}
		if _, err := s.m.Succeeded(ctx, lifeNamespace, s.present.Name); err != nil {
			return err
		}
		return s.operatorRuns(ctx, lifeNamespace, s.presentImage)
	})
	if err != nil {
		return err
	}
	err = errors.Join(s.untouched(ctx, lifeOperands, before), s.refusesBadObject(ctx, lifeOperands), s.samplesReady(ctx, lifeOperands, samplesOfKinds))
	// And waited for: without the operator a StatefulSingleton in it would stay.
	return errors.Join(err, s.m.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}))
}

func uninstalls(t *testing.T, s *site) error {
	ctx := t.Context()
	before, err := s.operands(ctx, lifeOperands)
	if err != nil {
		return err
	}
	if err := s.m.Unsubscribe(ctx, lifeNamespace); err != nil {
		return err
	}
	if err := s.noWebhooks(ctx); err != nil {
		return err
	}
	if err := s.untouched(ctx, lifeOperands, before); err != nil {
		return err
	}
	// Only one program may run, so what would be a second one is refused while
	// nobody can hold it back, and other pods are not.
	err = s.m.Client.Create(ctx, podOf("mailer"), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "StatefulSingleton mailer") {
		return errors.Join(err, errors.New("a pod of the mailer should be refused by the guard"))
	}
	return s.m.Client.Create(ctx, podOf("stranger"), client.DryRunAll)
}

func podOf(app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeOperands, GenerateName: app + "-", Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "program", Image: "localhost/none:1", Command: []string{"/program"}}}},
	}
}

func removes(t *testing.T, s *site) error {
	ctx := t.Context()
	before, err := s.operands(ctx, lifeOperands)
	if err != nil {
		return err
	}
	if err := s.m.Subscribe(ctx, olm.Subscription{Namespace: lifeNamespace, Catalog: s.catalog}); err != nil {
		return err
	}
	if _, err := s.m.Succeeded(ctx, lifeNamespace, s.present.Name); err != nil {
		return err
	}
	if err := errors.Join(s.samplesReady(ctx, lifeOperands, samplesOfKinds), s.untouched(ctx, lifeOperands, before)); err != nil {
		return err
	}
	return s.leaveAsDocumented(ctx, lifeOperands)
}
