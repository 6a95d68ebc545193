package owned

import (
	corev1 "k8s.io/api/core/v1"
)

// releasedName is the external name of a Service while its cluster IP is replaced. The domain invalid
// is reserved (RFC 2606), so that no client is sent to another host.
const releasedName = "replaced.invalid"

// Service returns a copy of have with the managed fields of want, which is of type ClusterIP. Users may
// change the type to NodePort or LoadBalancer, and set the fields of these types. They may not change it
// to ExternalName, which selects no pods, nor change whether the Service is headless.
//
// The API server does not allow to change between a cluster IP and a headless Service. Such a Service
// gets type ExternalName first, which releases its cluster IP. The next call returns the wanted
// Service. Nothing is deleted, and if the process ends in between, the next one continues.
func Service(have, want *corev1.Service) *corev1.Service {
	next := have.DeepCopy()
	next.Labels = Labels(have.Labels, want.Labels)
	if mustRelease(have, want) {
		next.Spec.Type, next.Spec.ExternalName = corev1.ServiceTypeExternalName, releasedName
		next.Spec.LoadBalancerSourceRanges = nil // the API server accepts them in no other type
		delete(next.Annotations, corev1.AnnotationLoadBalancerSourceRangesKey)
		return next
	}
	next.Spec.Selector, next.Spec.PublishNotReadyAddresses = want.Spec.Selector, want.Spec.PublishNotReadyAddresses
	next.Spec.Ports = Ports(have.Spec.Ports, want.Spec.Ports)
	if have.Spec.Type == corev1.ServiceTypeExternalName {
		next.Spec.Type, next.Spec.ExternalName, next.Spec.ClusterIP = want.Spec.Type, "", want.Spec.ClusterIP
	}
	return next
}

// IsReleased reports whether a Service has released its cluster IP for Service, and has no new one yet.
func IsReleased(have *corev1.Service) bool {
	return have.Spec.Type == corev1.ServiceTypeExternalName && have.Spec.ExternalName == releasedName
}

// mustRelease reports whether a Service has a cluster IP and must be headless, or is headless and must
// have a cluster IP. A Service of type ExternalName has released it already.
func mustRelease(have, want *corev1.Service) bool {
	if have.Spec.Type == corev1.ServiceTypeExternalName || have.Spec.ClusterIP == "" {
		return false
	}
	return isHeadless(have) != isHeadless(want)
}

func isHeadless(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }
