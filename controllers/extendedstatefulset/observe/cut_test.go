package observe_test

import (
	"fmt"
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

func TestCutService(t *testing.T) {
	selector := map[string]string{}
	for i := range bounds.Terms + 1 {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: maps.Clone(selector), ClusterIP: "10.0.0.1"}}
		service.Name = "peers"
		obj, err := observe.CutService(service)
		cut, ok := obj.(*corev1.Service)
		if err != nil || !ok || cut.Name != "peers" || cut.Spec.ClusterIP != "" || !maps.Equal(cut.Spec.Selector, selector) {
			t.Errorf("%d terms: %+v, %v", len(selector), obj, err)
		}
		selector[fmt.Sprint(i)] = "x"
	}
	obj, _ := observe.CutService(&corev1.Service{Spec: corev1.ServiceSpec{Selector: selector}})
	if kept := obj.(*corev1.Service).Spec.Selector; kept != nil {
		t.Errorf("%d terms: %d are kept", len(selector), len(kept))
	}
}

func TestCutJob(t *testing.T) {
	job := &batchv1.Job{}
	fixture.ManagedBy("kubectl-patch", fixture.SuspendField)(job)
	fixture.ManagedBy("other", `{"f:spec":{"f:template":{}}}`)(job)
	obj, err := observe.CutJob(job)
	kept := obj.(*batchv1.Job).ManagedFields
	if err != nil || len(kept) != 1 || kept[0].Manager != "kubectl-patch" || kept[0].FieldsV1.String() != metav1.NewFieldsV1(fixture.SuspendField).String() {
		t.Errorf("kept are %+v, %v", kept, err)
	}
}
