package owned

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func budget(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: map[string]string{"app": "db"}},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))}}
	change(b)
	return b
}

func TestBudget(t *testing.T) {
	asWanted := func(*policyv1.PodDisruptionBudget) {}
	always := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	for _, row := range []struct {
		name       string
		have, want func(*policyv1.PodDisruptionBudget)
		differs    bool
	}{
		{"W3 equal", asWanted, asWanted, false},
		{"W3 a policy set unhealthyPodEvictionPolicy", always, asWanted, false},
		{"W3 unhealthyPodEvictionPolicy is missing", asWanted, always, true},
		{"W3 a policy added a label and an annotation", func(b *policyv1.PodDisruptionBudget) {
			b.Labels["team"], b.Annotations = "x", map[string]string{"checked": "yes"}
		}, asWanted, false},
		{"W3 a label is missing", func(b *policyv1.PodDisruptionBudget) { b.Labels = nil }, asWanted, true},
		{"W3 another value", func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0)) }, asWanted, true},
		{"W3 a field of an earlier spec is removed", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = ptr.To(intstr.FromInt32(1)) }, asWanted, true},
		{"W3 another selector", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }, asWanted, true},
	} {
		next, differs := Budget(budget(row.have), budget(row.want))
		if differs != row.differs {
			t.Errorf("%s: differs %v, want %v", row.name, differs, row.differs)
		}
		if _, again := Budget(next, budget(row.want)); again {
			t.Errorf("%s: still differs after the write", row.name)
		}
	}
}

func TestPorts(t *testing.T) {
	want := []corev1.ServicePort{{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP}}
	have := []corev1.ServicePort{{Name: "old", Port: 1, Protocol: corev1.ProtocolTCP, NodePort: 30001},
		{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP, NodePort: 30002}}
	got := Ports(have, want)
	if !apiequality.Semantic.DeepEqual(got, have[1:]) {
		t.Errorf("W3 node ports of a Service: %v", got)
	}
	if want[0].NodePort != 0 {
		t.Error("the wanted ports were modified")
	}
}

func TestWebhooks(t *testing.T) {
	requires := func(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	ours := requires("kubernetes.io/metadata.name", metav1.LabelSelectorOpNotIn, "kube-system")
	older := requires("kubernetes.io/metadata.name", metav1.LabelSelectorOpIn, "a")
	clouds := requires("control-plane", metav1.LabelSelectorOpDoesNotExist)
	hook := func(all ...metav1.LabelSelectorRequirement) []admissionv1.ValidatingWebhook {
		return []admissionv1.ValidatingWebhook{{Name: "evictions", NamespaceSelector: &metav1.LabelSelector{MatchExpressions: all}}}
	}
	for _, row := range []struct {
		name             string
		have, want, made []admissionv1.ValidatingWebhook
	}{
		{"W3 equal", hook(ours), hook(ours), hook(ours)},
		{"W3 new", nil, hook(ours), hook(ours)},
		{"W3 a cloud controller omits namespaces", hook(clouds, ours), hook(ours), hook(clouds, ours)},
		{"W3 our term is missing next to a term of a cloud controller", hook(clouds), hook(ours), hook(clouds, ours)},
		{"W3 a label of an earlier configuration is removed", hook(ours, older, clouds), hook(ours), hook(ours, clouds)},
	} {
		if got := Webhooks(row.have, row.want); !apiequality.Semantic.DeepEqual(got, row.made) {
			t.Errorf("%s: %v, want %v", row.name, got, row.made)
		}
	}
	timeout := hook(ours)
	timeout[0].TimeoutSeconds = ptr.To[int32](30)
	if got := Webhooks(timeout, hook(ours)); got[0].TimeoutSeconds != nil {
		t.Error("W3 a field set by the operator is not restored")
	}
}
