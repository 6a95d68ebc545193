package objects

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored returns objects with a pod for each number.
func stored(numbers ...int) *Objects {
	o := &Objects{All: map[Key]client.Object{}}
	for _, n := range numbers {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("pod-%d", n), Labels: map[string]string{"app": "shop"}}}
		o.All[KeyOf(pod)] = pod
	}
	return o
}

// TestList tests that only a list without deep copies shares memory with the stored objects.
func TestList(t *testing.T) {
	for _, row := range []struct {
		name     string
		options  []client.ListOption
		isShared bool
		want     int
	}{
		{"a list", nil, false, 3},
		{"a list without deep copies", []client.ListOption{client.UnsafeDisableDeepCopy}, true, 3},
		{"a limited list", []client.ListOption{client.Limit(2)}, false, 2},
		{"a list of another namespace", []client.ListOption{client.InNamespace("other")}, false, 0},
		{"a list of other labels", []client.ListOption{client.MatchingLabels{"app": "other"}}, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := stored(2, 0, 1)
			var list corev1.PodList
			if err := o.List(t.Context(), &list, row.options...); err != nil || len(list.Items) != row.want {
				t.Fatalf("%v, %v", list.Items, err)
			}
			for i := range list.Items {
				if want := fmt.Sprintf("pod-%d", i); list.Items[i].Name != want {
					t.Errorf("item %d is %s", i, list.Items[i].Name)
				}
				list.Items[i].Labels["app"] = "changed"
				isShared := o.All[KeyOf(&list.Items[i])].GetLabels()["app"] == "changed"
				if isShared != row.isShared {
					t.Errorf("item %d shares its labels: %t", i, isShared)
				}
			}
		})
	}
}

func TestListOfMetadata(t *testing.T) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := stored(0, 1).List(t.Context(), list); err != nil || len(list.Items) != 2 || list.Items[1].Name != "pod-1" {
		t.Errorf("%v, %v", list.Items, err)
	}
}

// TestSnapshot tests that a snapshot keeps the transformed objects that have not changed, and only those.
func TestSnapshot(t *testing.T) {
	o, cuts := stored(0, 1, 2), 0
	cut := func(obj client.Object) client.Object {
		if cuts++; obj.GetName() == "pod-2" {
			return nil
		}
		obj.SetLabels(nil)
		return obj
	}
	first := o.Snapshot(cut)
	key := Key{Kind: "Pod", Namespace: "ns", Name: "pod-1"}
	changed := Clone(o.All[key])
	changed.SetUID("new")
	o.All[key] = changed
	second := o.Snapshot(cut)
	if len(first.All) != 2 || len(second.All) != 2 || cuts != 4 {
		t.Fatalf("%v, %v, %d objects were transformed", first.All, second.All, cuts)
	}
	if first.All[key].GetUID() != "" || second.All[key].GetUID() != "new" || second.All[key].GetLabels() != nil {
		t.Errorf("%v, %v", first.All[key], second.All[key])
	}
	delete(o.All, key)
	if third := o.Snapshot(cut); len(third.All) != 1 || len(o.cuts) != 2 {
		t.Errorf("%v, %d objects are kept", third.All, len(o.cuts))
	}
}
