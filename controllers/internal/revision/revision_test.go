package revision

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func rev(name string, number int64, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: number, Data: runtime.RawExtension{Raw: []byte(data)}}
}

func build(t *testing.T, salt string, data any, collisions int32, history ...*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	t.Helper()
	r, err := New("db", salt, data, collisions, history)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNew(t *testing.T) {
	data := map[string]any{"image": "one"}
	first := build(t, "u", data, 0)
	if again := build(t, "u", data, 0, rev("x", 4, `{}`)); again.Name != first.Name || again.Revision != 5 || first.Revision != 1 {
		t.Errorf("equal data have the names %s and %s, with the numbers %d and %d", first.Name, again.Name, first.Revision, again.Revision)
	}
	for what, other := range map[string]*appsv1.ControllerRevision{
		"data": build(t, "u", map[string]any{"image": "two"}, 0), "owner": build(t, "v", data, 0), "count of collisions": build(t, "u", data, 1),
	} {
		if other.Name == first.Name {
			t.Errorf("another %s has the same name", what)
		}
	}
	if _, err := New("db", "u", make(chan int), 0, nil); err == nil {
		t.Error("a revision that cannot be encoded is recorded")
	}
	ordered := build(t, "u", struct {
		B int `json:"b"`
		A int `json:"a"`
	}{1, 2}, 0)
	if got := string(ordered.Data.Raw); got != `{"a":2,"b":1}` {
		t.Errorf("the data are %s, and the API server would sort them", got)
	}
}

func TestSame(t *testing.T) {
	want := rev("", 0, `{"a":{"b":1},"list":[1,2]}`)
	for _, r := range []struct {
		name, data string
		same       bool
	}{
		{"equal data", `{"a":{"b":1},"list":[1,2]}`, true},
		{"another order of keys", `{"list":[1,2],"a":{"b":1}}`, true},
		{"nulls and empty objects, which another Kubernetes version may omit", `{"a":{"b":1,"c":null,"d":{"e":{}}},"list":[1,2]}`, true},
		{"another value", `{"a":{"b":2},"list":[1,2]}`, false},
		{"another order of a list", `{"a":{"b":1},"list":[2,1]}`, false},
		{"one more field", `{"a":{"b":1},"c":0,"list":[1,2]}`, false},
		{"invalid data", `{`, false},
	} {
		history := []*appsv1.ControllerRevision{rev("other", 1, `{}`), rev("it", 2, r.data)}
		if got := Same(history, want); (got != nil) != r.same {
			t.Errorf("%s: found %v", r.name, got)
		}
	}
}

func TestHistory(t *testing.T) {
	one, two, three := rev("one", 1, ""), rev("two", 2, ""), rev("three", 3, "")
	history := []*appsv1.ControllerRevision{three, one, two}
	if !Latest(history, three) || Latest(history, two) {
		t.Error("the highest number is the latest")
	}
	if up := Promote(history, one); up.Revision != 4 || one.Revision != 1 {
		t.Errorf("promoted to %d, and the cached object has %d", up.Revision, one.Revision)
	}
	if ByName(history, "two") != two || ByName(history, "four") != nil {
		t.Error("found under another name")
	}
	for _, r := range []struct {
		limit int
		used  string
		want  []string
	}{
		{10, "", nil}, {2, "", []string{"one"}}, {0, "", []string{"one", "two", "three"}},
		{1, "one", []string{"two"}}, {0, "two", []string{"one", "three"}},
	} {
		var got []string
		for _, s := range Surplus(history, r.limit, func(name string) bool { return name == r.used }) {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, r.want) {
			t.Errorf("with a limit of %d and %q in use %q are deleted, want %q, the oldest first", r.limit, r.used, got, r.want)
		}
	}
}
