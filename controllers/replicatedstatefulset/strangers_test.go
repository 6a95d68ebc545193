package replicatedstatefulset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestAPodThatWasThereFirstIsNoMember tests a pod with the name of a member that was not created
// for the set. The StatefulSet adopts it. No command runs in it, and it affects no decision.
func TestAPodThatWasThereFirstIsNoMember(t *testing.T) {
	for _, r := range []struct {
		name        string
		age         time.Duration
		annotations map[string]string
		why         string
	}{
		{"a pod that is older than the object, with our annotation", time.Hour, map[string]string{v1alpha1.AnnotationTemplate: "guessed"}, "is older than the object"},
		{"a pod that is older than the object, without our annotation", time.Hour, nil, "was not created from this set's template"},
		{"a pod that is younger than the object, without our annotation", -time.Minute, nil, "was not created from this set's template"},
	} {
		t.Run(r.name, func(t *testing.T) {
			made := fixture.SetOf(3, 1)
			made.CreationTimestamp = metav1.NewTime(fixture.Noon)
			s := newStage(t, made)
			s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-0", Namespace: "ns", UID: "another", Generation: 1, Annotations: r.annotations,
				CreationTimestamp: metav1.NewTime(fixture.Noon.Add(-r.age)),
				Labels: map[string]string{v1alpha1.LabelApp: "db", v1alpha1.LabelManaged: v1alpha1.True,
					v1alpha1.LabelActive: v1alpha1.True, v1alpha1.LabelRole: v1alpha1.RoleSecondary}},
				Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main"}}}})
			s.settle(20 * time.Second)
			s.check()
			if !metav1.IsControlledBy(s.pod(0), s.StatefulSet()) {
				t.Fatal("the simulated StatefulSet did not adopt the pod, as a real one does")
			}
			if story := strings.Join(s.Story, "\n"); strings.Contains(story, "pod rss-db-0: Ask") || strings.Contains(story, "delete pod") || strings.Contains(story, "rss-db-0: /") {
				t.Errorf("the pod was deleted or got a command:\n%s", story)
			}
			if is := s.pod(0).Labels; is[v1alpha1.LabelActive] != v1alpha1.False || is[v1alpha1.LabelRole] != v1alpha1.RoleNone {
				t.Errorf("Services select the pod: %v", is)
			}
			c := meta.FindStatusCondition(s.Set().Status.Conditions, v1alpha1.ConditionDegraded)
			if c.Reason != v1alpha1.ReasonForeignPods || !strings.Contains(c.Message, "rss-db-0 "+r.why) || !strings.Contains(c.Message, "kubectl -n ns delete pod rss-db-0") {
				t.Errorf("%s: %s", c.Reason, c.Message)
			}
			s.Delete(s.pod(0)) // as the message advises
			s.settle(20 * time.Second)
			s.check()
			if st := s.Set().Status; len(st.Members.Primary) != 1 || len(st.Members.Secondary) != 2 || podstate.Terminating(s.pod(0)) {
				t.Errorf("after its deletion the members are %+v", st.Members)
			}
		})
	}
}

// TestN10APodThatCopiesLabelsLosesThem tests N10: a pod with the primary label that is not a member
// would open the budget of the primary and receive client writes.
func TestN10APodThatCopiesLabelsLosesThem(t *testing.T) {
	owner := func(apiVersion string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "StatefulSet", Name: "rss-db", UID: "u", Controller: ptr.To(true)}}
	}
	for _, row := range []struct {
		name, pod  string
		owners     []metav1.OwnerReference
		finalizers []string
	}{
		{"another name", "evil", nil, nil},
		{"another name, and our finalizer", "evil", nil, []string{v1alpha1.FinalizerMember}},
		{"a StatefulSet of another group, and our finalizer", "rss-db-7", owner("x.example/v1"), []string{v1alpha1.FinalizerMember}},
		{"a StatefulSet of another UID, and our finalizer", "rss-db-7", owner("apps/v1"), []string{v1alpha1.FinalizerMember}},
	} {
		t.Run(row.name, func(t *testing.T) {
			copiesLabels(t, metav1.ObjectMeta{Name: row.pod, OwnerReferences: row.owners, Finalizers: row.finalizers})
		})
	}
}

// copiesLabels puts a pod with the labels of a primary beside a set, and looks which it has afterwards.
func copiesLabels(t *testing.T, meta metav1.ObjectMeta) {
	t.Helper()
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(time.Minute)
	meta.Namespace, meta.UID, meta.Generation, meta.CreationTimestamp = "ns", "evil", 1, metav1.NewTime(s.Now)
	meta.Annotations = map[string]string{v1alpha1.AnnotationTemplate: s.pod(0).Annotations[v1alpha1.AnnotationTemplate]}
	meta.Labels = map[string]string{v1alpha1.LabelApp: "db", v1alpha1.LabelManaged: v1alpha1.True, "mine": "stays",
		v1alpha1.LabelActive: v1alpha1.True, v1alpha1.LabelRole: v1alpha1.RolePrimary}
	s.Put(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main"}}}})
	s.settle(20 * time.Second)
	s.check()
	var pod corev1.Pod
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: meta.Name}, &pod); err != nil {
		t.Fatal(err)
	}
	for _, label := range spec.OwnPodLabels {
		if value, has := pod.Labels[label]; has {
			t.Errorf("the foreign pod has label %s=%s", label, value)
		}
	}
	if pod.Labels["mine"] != "stays" || pod.Labels[v1alpha1.LabelApp] != "db" {
		t.Errorf("the foreign pod lost other labels: %v", pod.Labels)
	}
	for ordinal := range 3 {
		if s.pod(ordinal).Labels[v1alpha1.LabelManaged] != v1alpha1.True {
			t.Errorf("member %d lost its label", ordinal)
		}
	}
}
