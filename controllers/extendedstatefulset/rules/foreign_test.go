package rules_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
)

// TestN10APodThatCopiesLabelsLosesThem verifies N10: labels alone never make a pod an endpoint of the
// operator's Services, or part of a budget.
func TestN10APodThatCopiesLabelsLosesThem(t *testing.T) {
	controller := func(apiVersion, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u", Controller: ptr.To(true)}}
	}
	const stays = v1alpha1.LabelSet
	for _, row := range []struct {
		name, pod string
		owners    []metav1.OwnerReference
		deleted   bool
		want      []string // remaining operator labels
	}{
		{"a pod with another name", "evil", nil, false, nil},
		{"a pod with a name without an ordinal", "db-v1-x", nil, false, nil},
		{"a pod of a version", "db-v1-0", controller("apps/v1", "StatefulSet", "db-v1"), false, children.OwnPodLabels},
		{"an orphaned pod of a version", "db-v1-0", nil, false, children.OwnPodLabels},
		{"a pod of another StatefulSet", "db-v1-9", controller("apps/v1", "StatefulSet", "other"), false, []string{stays}},
		{"a pod of another kind with the name of a version", "db-v1-9", controller("x.example/v1", "StatefulSet", "db-v1"), false, []string{stays}},
		{"a pod of a version with another UID", "db-v2-0", controller("apps/v1", "StatefulSet", "db-v2"), false, []string{stays}},
		{"a pod of a recreated version with the previous UID", "db-v3-0", controller("apps/v1", "StatefulSet", "db-v3"), false, children.OwnPodLabels},
		{"a terminating pod with another name", "evil", nil, true, children.OwnPodLabels},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: row.pod, OwnerReferences: row.owners, Labels: map[string]string{"mine": "stays"}}}
			if row.deleted {
				pod.DeletionTimestamp = ptr.To(metav1.Now())
			}
			for _, label := range children.OwnPodLabels {
				pod.Labels[label] = "db"
			}
			// A pod without a time is older than version 3, and not older than version 2.
			versions := facts.Siblings{{Set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db-v2", UID: "now"}}, Zone: children.NoZone, Version: 2},
				{Set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db-v3", UID: "now", CreationTimestamp: metav1.Now()}}, Zone: children.NoZone, Version: 3}}
			w := &facts.World{Set: &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, Children: versions}
			observe.AddPod(w, pod)
			var p rules.Plan
			rules.RemoveLabels(&facts.Facts{World: w}, &p)
			labels := pod.Labels
			for _, step := range p.Steps {
				for _, chain := range step {
					labels = chain[0].Object.GetLabels()
				}
			}
			want := slices.Sorted(slices.Values(append(slices.Clone(row.want), "mine")))
			if got := slices.Sorted(maps.Keys(labels)); !slices.Equal(got, want) {
				t.Errorf("got labels %v, want %v", got, want)
			}
			p = rules.Plan{}
			pod.Labels = labels
			w = &facts.World{Set: w.Set, Children: versions}
			observe.AddPod(w, pod)
			rules.RemoveLabels(&facts.Facts{World: w}, &p)
			if p.Acts() != 0 {
				t.Error("the pod is written again")
			}
		})
	}
}

// TestN10ForeignPodsThatAreDoneLeaveRoom verifies that pods whose labels are already removed do not
// count towards the limit of a pass (N10).
func TestN10ForeignPodsThatAreDoneLeaveRoom(t *testing.T) {
	w := &facts.World{Set: &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}}
	of := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "u", Controller: ptr.To(true)}}
	for i := range facts.MaxForeign {
		observe.AddPod(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("db-v1-", i), OwnerReferences: of, Labels: map[string]string{v1alpha1.LabelSet: "db"}}})
	}
	observe.AddPod(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "evil", Labels: map[string]string{v1alpha1.LabelSet: "db"}}})
	if len(w.ForeignPods) != 1 || w.ForeignPods[0].Pod.Name != "evil" {
		t.Errorf("got %d foreign pods", len(w.ForeignPods))
	}
}
