package owned

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestService(t *testing.T) {
	want := func(ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: map[string]string{"app": "db"}}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, Selector: map[string]string{"app": "db"}, Ports: []corev1.ServicePort{{Port: 1, Protocol: corev1.ProtocolTCP}},
		}}
	}
	stored := func(ip string) *corev1.Service { // with the defaults of the API server
		s := want(ip)
		s.Spec.ClusterIPs, s.Spec.SessionAffinity = []string{ip}, corev1.ServiceAffinityNone
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
		s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv4Protocol}, ptr.To(corev1.IPFamilyPolicySingleStack)
		return s
	}
	external := func(name string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ServiceTypeExternalName, name, "", nil
		}
	}
	const none, ip = corev1.ClusterIPNone, "10.0.0.1"
	for _, row := range []struct {
		name         string
		have         string // the present cluster IP
		change, then func(*corev1.Service)
		want         string // the wanted cluster IP; "" for any
	}{
		{"equal", ip, nil, nil, ""},
		{"equal and headless", none, nil, nil, none},
		{"a user chose type LoadBalancer", ip, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Ports[0].NodePort, s.Spec.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, 30000, "192.0.2.1"
		}, nil, ""},
		{"a user added a label and keeps clients on a pod", ip, func(s *corev1.Service) {
			s.Labels["team"], s.Spec.SessionAffinity = "x", corev1.ServiceAffinityClientIP
		}, nil, ""},
		{"a label is missing", ip, func(s *corev1.Service) { s.Labels = nil }, func(s *corev1.Service) { s.Labels = map[string]string{"app": "db"} }, ""},
		{"another selector", ip, func(s *corev1.Service) { s.Spec.Selector = nil }, func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "db"} }, ""},
		{"unready pods are published", ip, func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }, func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = false }, ""},
		{"type ExternalName", ip, external("elsewhere.example.com"), func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeClusterIP, "" }, ""},
		{"type ExternalName of a headless Service", none, external("elsewhere.example.com"),
			func(s *corev1.Service) {
				s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "", none
			}, none},
		{"a headless Service got a cluster IP", ip, nil, asExternal(releasedName), none},
		{"a released headless Service", ip, external(releasedName), func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "", none
		}, none},
		{"a Service became headless", none, nil, asExternal(releasedName), ""},
		{"a headless Service became a LoadBalancer with source ranges", ip, withSourceRanges, asExternal(releasedName), none},
	} {
		have := stored(row.have)
		if row.change != nil {
			row.change(have)
		}
		expected := have.DeepCopy()
		if row.then != nil {
			row.then(expected)
			expected.Spec.LoadBalancerSourceRanges = nil // no other type has them
			delete(expected.Annotations, corev1.AnnotationLoadBalancerSourceRangesKey)
		}
		before := have.DeepCopy()
		if got := Service(have, want(row.want)); !apiequality.Semantic.DeepEqual(got, expected) {
			t.Errorf("%s: %+v, want %+v", row.name, got, expected)
		} else if IsReleased(have) && IsReleased(got) {
			t.Errorf("%s: the cluster IP is released again", row.name)
		}
		if !apiequality.Semantic.DeepEqual(have, before) {
			t.Errorf("%s: the present Service was changed", row.name)
		}
	}
}

// asExternal returns a change to type ExternalName that leaves the cluster IP, which the API server removes.
func asExternal(name string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, name }
}

// withSourceRanges makes a Service a LoadBalancer for some clients.
func withSourceRanges(s *corev1.Service) {
	s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"192.0.2.0/24"}
	s.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "192.0.2.0/24"}
}
