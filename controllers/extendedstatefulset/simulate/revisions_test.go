package simulate_test

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// store adds the stored revision of the template of a StatefulSet.
func store(t *testing.T, c *simulation.Cluster, name string) {
	t.Helper()
	var set appsv1.StatefulSet
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, &set); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": set.Spec.Template}})
	if err != nil {
		t.Fatal(err)
	}
	one := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: raw}}
	one.Namespace, one.Name, one.Labels = set.Namespace, set.Status.UpdateRevision, set.Spec.Template.Labels
	yes := true
	one.OwnerReferences = append(one.OwnerReferences, set.OwnerReferences...)
	one.OwnerReferences[0].Kind, one.OwnerReferences[0].Name, one.OwnerReferences[0].UID, one.OwnerReferences[0].Controller = "StatefulSet", set.Name, set.UID, &yes
	c.Put(one)
}

// TestAnUnobservedStatefulSet checks which pods are replaced if the StatefulSet controller has not observed the
// last edit before the start.
func TestAnUnobservedStatefulSet(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*appsv1.StatefulSet)
		want int
	}{
		{"the replicas were edited", func(c *appsv1.StatefulSet) { c.Spec.Replicas = ptr.To[int32](2) }, 0},
		{"the template was edited", mark, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := live(t, started(t, fixture.Plain()).Cluster)
			store(t, c, "shop-v1")
			was := simulate.Start(c, key)
			change(t, was, "shop-v1", row.edit)
			s, before := simulate.Start(c, key), ready(t, c)
			moves(t, s)
			replaced := 0
			for name, pod := range ready(t, c) {
				if before[name].UID != pod.UID {
					replaced++
				}
			}
			if replaced != row.want {
				t.Errorf("%d pods were replaced, want %d", replaced, row.want)
			}
		})
	}
}
