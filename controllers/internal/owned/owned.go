// Package owned updates only the fields of an object that the operator manages. All other fields keep
// the values set by defaults, policies and controllers of the cluster.
package owned

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels returns the labels in have, overridden by those in want.
func Labels(have, want map[string]string) map[string]string {
	if len(want) == 0 {
		return have
	}
	all := map[string]string{}
	maps.Copy(all, have)
	maps.Copy(all, want)
	return all
}

// Budget returns a copy of have with the managed fields of want, and reports whether it differs from
// have. It keeps unhealthyPodEvictionPolicy if want does not set it.
func Budget(have, want *policyv1.PodDisruptionBudget) (next *policyv1.PodDisruptionBudget, differs bool) {
	next = have.DeepCopy()
	next.Labels = Labels(have.Labels, want.Labels)
	next.Spec.MinAvailable, next.Spec.MaxUnavailable = want.Spec.MinAvailable, want.Spec.MaxUnavailable
	next.Spec.Selector = want.Spec.Selector
	if want.Spec.UnhealthyPodEvictionPolicy != nil {
		next.Spec.UnhealthyPodEvictionPolicy = want.Spec.UnhealthyPodEvictionPolicy
	}
	return next, !apiequality.Semantic.DeepEqual(have, next)
}

// Ports returns the wanted ports of a Service. It keeps values of existing ports that others set: the
// node port that the API server allocated, and appProtocol.
func Ports(have, want []corev1.ServicePort) []corev1.ServicePort {
	all := slices.Clone(want)
	for i := range all {
		p := &all[i]
		j := slices.IndexFunc(have, func(h corev1.ServicePort) bool { return h.Port == p.Port && h.Protocol == p.Protocol })
		if j < 0 {
			continue
		}
		if p.NodePort == 0 {
			p.NodePort = have[j].NodePort
		}
		if p.AppProtocol == nil {
			p.AppProtocol = have[j].AppProtocol
		}
	}
	return all
}

// Webhooks returns the wanted webhooks. It keeps requirements that others added to their selectors,
// such as namespaces that a cloud provider excludes.
func Webhooks(have, want []admissionv1.ValidatingWebhook) []admissionv1.ValidatingWebhook {
	all := make([]admissionv1.ValidatingWebhook, 0, len(want))
	for _, w := range want {
		i := slices.IndexFunc(have, func(h admissionv1.ValidatingWebhook) bool { return h.Name == w.Name })
		if i >= 0 {
			w.NamespaceSelector = selector(have[i].NamespaceSelector, w.NamespaceSelector)
			w.ObjectSelector = selector(have[i].ObjectSelector, w.ObjectSelector)
		}
		all = append(all, w)
	}
	return all
}

// selector returns the wanted selector, plus requirements that others added for labels that the
// operator does not select by.
func selector(have, want *metav1.LabelSelector) *metav1.LabelSelector {
	if have == nil || want == nil {
		return want
	}
	next := want.DeepCopy()
	next.MatchLabels = Labels(have.MatchLabels, want.MatchLabels)
	next.MatchExpressions = nil
	missing := slices.Clone(want.MatchExpressions)
	for _, h := range have.MatchExpressions { // keeps the order, so that a complete selector does not change
		i := slices.IndexFunc(missing, func(r metav1.LabelSelectorRequirement) bool { return apiequality.Semantic.DeepEqual(r, h) })
		isOld := slices.ContainsFunc(want.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == h.Key })
		switch {
		case i >= 0:
			missing = slices.Delete(missing, i, i+1)
		case isOld: // ours, from another configuration
			continue
		}
		next.MatchExpressions = append(next.MatchExpressions, h)
	}
	next.MatchExpressions = append(next.MatchExpressions, missing...)
	return next
}
