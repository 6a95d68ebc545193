package observe

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// TestWhichOwnersWereRefused checks which owners lack a pod because the API server refused it.
func TestWhichOwnersWereRefused(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	live := &objects.Objects{All: map[objects.Key]client.Object{}}
	add := func(o client.Object, name, app string, age time.Duration) {
		o.SetName(name)
		o.SetNamespace("ns")
		o.SetCreationTimestamp(metav1.NewTime(now.Add(-age)))
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}}
		switch o := o.(type) {
		case *appsv1.ReplicaSet:
			o.Spec.Template = template
		case *appsv1.StatefulSet:
			o.Spec.Template = template
		}
		live.All[objects.KeyOf(o)] = o
	}
	refused := func(status corev1.ConditionStatus, have, want int32) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(want)}, Status: appsv1.ReplicaSetStatus{Replicas: have,
			Conditions: []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: status}}}}
	}
	add(refused(corev1.ConditionTrue, 0, 1), "refused", "db", 0)
	add(refused(corev1.ConditionFalse, 0, 1), "not-refused", "db", 0)
	add(refused(corev1.ConditionTrue, 1, 1), "complete", "db", 0)
	add(refused(corev1.ConditionTrue, 0, 1), "of-another", "other", 0)
	add(&appsv1.StatefulSet{}, "lacks-its-pod", "db", spec.OwnerPatience+time.Second)
	add(&appsv1.StatefulSet{}, "is-new", "db", spec.OwnerPatience)
	w := &facts.World{Now: now, Object: spec.WithDefaults(&v1.StatefulSingleton{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"},
		Spec: v1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}})}
	if err := (&Reader{Live: live}).readRefusedOwners(context.Background(), w, types.NamespacedName{Namespace: "ns", Name: "db"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range w.RefusedOwners {
		names = append(names, o.GetName())
	}
	if got := strings.Join(names, " "); got != "refused lacks-its-pod" {
		t.Errorf("the owners are %q", got)
	}
}
