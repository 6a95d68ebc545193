package children_test

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

func TestOwnLabels(t *testing.T) {
	for _, r := range []struct {
		zone        children.Zone
		stem, index string
		name        string // "" for no label
	}{
		{children.Zone{Index: children.NoZone}, "db", "0", ""},
		{children.Zone{Name: "a", Index: 0}, "db-z0", "0", "a"},
		{children.Zone{Name: "b", Index: 12}, "db-z12", "12", "b"},
	} {
		got := children.OwnLabels("db", r.zone, 7)
		want := map[string]string{v1alpha1.LabelSet: "db", v1alpha1.LabelVersion: "7", v1alpha1.LabelStatefulSet: r.stem, v1alpha1.LabelZoneIndex: r.index}
		if r.name != "" {
			want[v1alpha1.LabelZoneName] = r.name
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v: %v, want %v", r.zone, got, want)
		}
	}
}

func TestWhoControlsAChild(t *testing.T) {
	set := fixture.FakeSet(1)
	set.UID = "uid"
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.Kind)
	for name, r := range map[string]struct {
		owner *metav1.OwnerReference
		want  bool
	}{
		"the set":                        {metav1.NewControllerRef(set, kind), true},
		"an earlier set of its name":     {metav1.NewControllerRef(&metav1.ObjectMeta{Name: "db", UID: "before"}, kind), false},
		"an owner that does not control": {&metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: "db", UID: "uid"}, false},
	} {
		if got := children.Controls(set, &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*r.owner}}); got != r.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestStamped(t *testing.T) {
	have := map[string]string{"a": "1", "b": "2"}
	for _, r := range []struct {
		key, value string
		want       map[string]string
	}{
		{"a", "1", have},
		{"a", "3", map[string]string{"a": "3", "b": "2"}},
		{"c", "3", map[string]string{"a": "1", "b": "2", "c": "3"}},
		{"a", "", map[string]string{"b": "2"}},
		{"c", "", have},
	} {
		if got := children.Stamped(have, r.key, r.value); !maps.Equal(got, r.want) {
			t.Errorf("%s=%s: %v, want %v", r.key, r.value, got, r.want)
		}
	}
	if len(have) != 2 || have["a"] != "1" {
		t.Errorf("the map became %v", have)
	}
}
