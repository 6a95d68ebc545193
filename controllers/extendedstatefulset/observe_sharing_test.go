package extendedstatefulset

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
)

// admit sends a new pod of the fake cluster to the webhook.
func admit(t *testing.T, live client.Reader, pod *corev1.Pod) admission.Response {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	h := &webhooks.PodHandler{Live: live}
	return h.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "ns", Object: runtime.RawExtension{Raw: raw}}})
}

// at moves a pod of fixture.NewPod to another ordinal.
func at(pod *corev1.Pod, ordinal string) *corev1.Pod {
	pod.Name, pod.Labels[appsv1.PodIndexLabel] = strings.TrimSuffix(pod.Name, "2")+ordinal, ordinal
	return pod
}

// TestNoTwoPodsShareClaims verifies that a second pod of an ordinal is denied unless the handover of
// the set is Coexist.
func TestNoTwoPodsShareClaims(t *testing.T) {
	only, sets := children.Zone{Index: children.NoZone}, map[string]func(*v1alpha1.ExtendedStatefulSet){
		"PerOrdinal": func(*v1alpha1.ExtendedStatefulSet) {},
		"Coexist": func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.Handover = v1alpha1.HandoverCoexist
		},
		"Coexist until the upgrade ends": func(set *v1alpha1.ExtendedStatefulSet) {
			set.Status.Update = &v1alpha1.UpdateStatus{Handover: v1alpha1.HandoverCoexist}
		},
		"gone": nil,
	}
	ends := fixture.NewPod(fixture.Volumes(), only, 1)
	ends.DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon))
	dressed := fixture.NewPod(fixture.Volumes(), only, 1)
	dressed.OwnerReferences = nil
	elsewhere := fixture.NewPod(fixture.Volumes(), only, 1)
	elsewhere.Namespace = "other"
	const refused = "pod db-v1-2 has the claims of ordinal 2, and two pods must not share them; this pod is created after the other one is deleted"
	for _, row := range []struct {
		name, set string
		there     *corev1.Pod
		pod       *corev1.Pod
		want      string
	}{
		{"no other pod of the ordinal exists", "PerOrdinal", nil, fixture.NewPod(fixture.Volumes(), only, 2), ""},
		{"the pod of another version exists", "PerOrdinal", fixture.NewPod(fixture.Volumes(), only, 1), fixture.NewPod(fixture.Volumes(), only, 2), refused},
		{"the pod of another version is terminating", "PerOrdinal", ends, fixture.NewPod(fixture.Volumes(), only, 2), refused},
		{"the pod of a newer version exists", "PerOrdinal", fixture.NewPod(fixture.Volumes(), only, 2), fixture.NewPod(fixture.Volumes(), only, 1), strings.ReplaceAll(refused, "v1", "v2")},
		{"a pod of another ordinal exists", "PerOrdinal", at(fixture.NewPod(fixture.Volumes(), only, 1), "1"), fixture.NewPod(fixture.Volumes(), only, 2), ""},
		{"a pod of another zone exists", "PerOrdinal", fixture.NewPod(fixture.Zoned(3, "a", "b"), children.Zone{Name: "a", Index: 0}, 1), fixture.NewPod(fixture.Zoned(3, "a", "b"), children.Zone{Name: "b", Index: 1}, 2), ""},
		{"a pod of the same zone and ordinal exists", "PerOrdinal", fixture.NewPod(fixture.Zoned(3, "a"), children.Zone{Name: "a", Index: 0}, 1), fixture.NewPod(fixture.Zoned(3, "a"), children.Zone{Name: "a", Index: 0}, 2), strings.ReplaceAll(refused, "db-v1", "db-z0-v1")},
		{"a pod of another namespace exists", "PerOrdinal", elsewhere, fixture.NewPod(fixture.Volumes(), only, 2), ""},
		{"both pods have no claims", "PerOrdinal", fixture.NewPod(fixture.Plain(), only, 1), fixture.NewPod(fixture.Plain(), only, 2), ""},
		{"another client labeled a pod", "PerOrdinal", dressed, fixture.NewPod(fixture.Volumes(), only, 2), ""},
		{"with Coexist, two pods share claims", "Coexist", fixture.NewPod(fixture.Volumes(), only, 1), fixture.NewPod(fixture.Volumes(), only, 2), ""},
		{"two pods share claims in an upgrade that began with Coexist", "Coexist until the upgrade ends", fixture.NewPod(fixture.Volumes(), only, 1), fixture.NewPod(fixture.Volumes(), only, 2), ""},
		{"an orphaned pod of a deleted set exists", "gone", fixture.NewPod(fixture.Volumes(), only, 1), fixture.NewPod(fixture.Volumes(), only, 2), refused},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, fixture.Volumes())
			if set := s.set(); sets[row.set] == nil {
				s.Remove(set)
			} else {
				sets[row.set](set)
				s.Put(set)
			}
			if row.there != nil {
				if row.there.Namespace == "" {
					row.there.Namespace = "ns"
				}
				s.Put(row.there)
			}
			got := admit(t, s.Cluster, row.pod)
			if said := got.Result; got.Allowed != (row.want == "") || !got.Allowed && said.Message != row.want {
				t.Errorf("allowed: %t, %v", got.Allowed, said)
			}
			if got.Allowed && len(got.Patch) == 0 {
				t.Error("the pod has no ordinal")
			}
		})
	}
	if got := admit(t, fixture.NoAnswer{}, fixture.NewPod(fixture.Volumes(), only, 2)); got.Allowed || got.Result.Code != http.StatusInternalServerError {
		t.Errorf("the pod is allowed although the API server does not respond: %v", got)
	}
}

// TestAStatefulSetScaledByHand verifies that the webhook denies a second pod when the StatefulSet
// controller is faster than the operator.
func TestAStatefulSetScaledByHand(t *testing.T) {
	h := hazard{"in an upgrade with PerOrdinal", fixture.Volumes, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.edit("db-v1", func(c *appsv1.StatefulSet) { c.Spec.Replicas = ptr.To(int32(3)) })
		for range 2 {
			for _, move := range s.Moves() {
				move()
			}
		}
		s.floor = 2
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"}
	if s := h.check(t); !strings.Contains(strings.Join(s.Story, "\n"), "db-v1-2 is refused: pod db-v2-2 has the claims") {
		s.Fatal(t, "the pod was not refused")
	}
}
