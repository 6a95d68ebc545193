package statefulcluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// No label alone makes a pod part of the budget: while it is Ready, one member more could be evicted.
func TestAPodThatCopiesLabelsIsInNoBudget(t *testing.T) {
	for _, row := range []struct {
		name   string
		owners []metav1.OwnerReference
	}{
		{"pod without an owner", nil},
		{"pod of another owner", []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "u", Controller: ptr.To(true)}}},
		{"pod whose owner has an unknown API group", []metav1.OwnerReference{{APIVersion: "x.example/v1", Kind: "StatefulCluster", Name: "db", UID: "uid-of-set", Controller: ptr.To(true)}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, three())
			s.settle(2 * time.Second)
			before := uidsOf(s)
			evil := s.members()[0]
			evil.ObjectMeta = metav1.ObjectMeta{Name: "db-evil", Namespace: evil.Namespace, UID: "evil", Labels: evil.Labels, OwnerReferences: row.owners, CreationTimestamp: metav1.NewTime(s.Now)}
			evil.Labels["mine"] = "stays"
			s.Put(evil)
			s.settle(2 * time.Second)
			var pod corev1.Pod
			if err := s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db-evil"}, &pod); err != nil {
				t.Fatal(err)
			}
			for _, label := range spec.OwnPodLabels {
				if value, has := pod.Labels[label]; has {
					t.Errorf("the pod has label %s=%s", label, value)
				}
			}
			if got := fixture.Says(s.set().Status, v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True ForeignPods: ") || !strings.Contains(got, "db-evil") {
				t.Errorf("condition Degraded is %s", got)
			}
			if pod.Labels["mine"] != "stays" {
				t.Errorf("labels of other clients were removed: %v", pod.Labels)
			}
			selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelClusterUID: string(s.set().UID)})
			for _, p := range s.members() {
				if p.Name != "db-evil" && !selector.Matches(labels.Set(p.Labels)) {
					t.Errorf("member %s lost its label", p.Name)
				}
			}
			if got := uidsOf(s); !slices.Contains(got, "evil") || len(got) != len(before)+1 {
				t.Errorf("pods are %q, want %q", got, before)
			}
		})
	}
}
