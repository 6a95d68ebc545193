package spec_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

func TestOverlap(t *testing.T) {
	for _, r := range []struct {
		name string
		a, b metav1.LabelSelector
		want bool
	}{
		{"one label with equal values", fixture.Labelled("app", "db"), fixture.Labelled("app", "db"), true},
		{"one label with different values", fixture.Labelled("app", "db"), fixture.Labelled("app", "web"), false},
		{"two labels: a pod can have both", fixture.Labelled("app", "db"), fixture.Labelled("tier", "one"), true},
		{"one of two selectors has an additional label", fixture.Labelled("app", "db"), fixture.Labelled("app", "db", "tier", "one"), true},
		{"two lists with a value in common", fixture.Expressions(fixture.Asking("app", fixture.In, "a", "b")), fixture.Expressions(fixture.Asking("app", fixture.In, "b", "c")), true},
		{"two lists without a value in common", fixture.Expressions(fixture.Asking("app", fixture.In, "a", "b")), fixture.Expressions(fixture.Asking("app", fixture.In, "c")), false},
		{"a value that NotIn excludes", fixture.Labelled("app", "a"), fixture.Expressions(fixture.Asking("app", fixture.NotIn, "a", "b")), false},
		{"a list that NotIn excludes partly", fixture.Expressions(fixture.Asking("app", fixture.In, "a", "b")), fixture.Expressions(fixture.Asking("app", fixture.NotIn, "a")), true},
		{"two NotIn: there are always more values", fixture.Expressions(fixture.Asking("app", fixture.NotIn, "a")), fixture.Expressions(fixture.Asking("app", fixture.NotIn, "b"), fixture.Asking("app", fixture.Exists)), true},
		{"Exists and DoesNotExist", fixture.Expressions(fixture.Asking("app", fixture.Exists)), fixture.Expressions(fixture.Asking("app", fixture.Absent)), false},
		{"a value and DoesNotExist", fixture.Labelled("app", "a"), fixture.Expressions(fixture.Asking("app", fixture.Absent)), false},
		{"NotIn and DoesNotExist: a pod without the label matches both", fixture.Expressions(fixture.Asking("app", fixture.NotIn, "a")), fixture.Expressions(fixture.Asking("app", fixture.Absent)), true},
		{"three lists without a value in common", fixture.Expressions(fixture.Asking("app", fixture.In, "a", "b"), fixture.Asking("app", fixture.In, "b", "c")), fixture.Expressions(fixture.Asking("app", fixture.In, "a", "c")), false},
		{"a selector that contradicts itself does not overlap", fixture.Expressions(fixture.Asking("app", fixture.In, "a"), fixture.Asking("app", fixture.NotIn, "a")), fixture.Labelled("tier", "one"), false},
		{"an empty selector does not overlap", metav1.LabelSelector{}, fixture.Labelled("app", "db"), false},
		{"a malformed selector does not overlap", fixture.Expressions(fixture.Asking("app", fixture.In)), fixture.Labelled("tier", "one"), false},
	} {
		if got := spec.Overlap(&r.a, &r.b); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
		if got := spec.Overlap(&r.b, &r.a); got != r.want {
			t.Errorf("%s, with swapped selectors: %v", r.name, got)
		}
	}
	if spec.Overlap(nil, ptr.To(fixture.Labelled("app", "db"))) {
		t.Error("a missing selector overlaps with another selector")
	}
}

// TestOverlapAgreesWithBruteForce checks that overlap agrees exactly with a comparison of
// all pods.
func TestOverlapAgreesWithBruteForce(t *testing.T) {
	pods := fixture.Universe()
	counts := map[bool]int{}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 3))
		a, b := fixture.Singleton("a").Selecting(fixture.RandomSelector(r)), fixture.Singleton("b").Selecting(fixture.RandomSelector(r))
		want := false
		for _, have := range pods {
			want = want || spec.SelectorOf(&a.StatefulSingleton).Matches(have) && spec.SelectorOf(&b.StatefulSingleton).Matches(have)
		}
		counts[want]++
		if got := spec.Overlap(a.Spec.Selector, b.Spec.Selector); got != want {
			t.Fatalf("seed %d: %s and %s: %v, but a comparison with all pods returns %v", seed,
				metav1.FormatLabelSelector(a.Spec.Selector), metav1.FormatLabelSelector(b.Spec.Selector), got, want)
		}
	}
	if counts[true] < 1000 || counts[false] < 1000 {
		t.Errorf("the selectors are too similar: %v", counts)
	}
}

func TestSelectsSaysWhatLabelsSay(t *testing.T) {
	for seed := range uint64(20000) {
		s := &fixture.Singleton("a").Selecting(fixture.RandomSelector(rand.New(rand.NewPCG(seed, 8)))).StatefulSingleton
		for _, have := range append(fixture.Universe(), nil) {
			if got, want := spec.Selects(s, have), spec.SelectorOf(s).Matches(have); got != want {
				t.Fatalf("seed %d: %s selects %v: %v, but labels.Selector returns %v", seed, metav1.FormatLabelSelector(s.Spec.Selector), have, got, want)
			}
		}
	}
}

// TestS26ThereIsOneRuler checks that exactly one object manages a pod.
func TestS26ThereIsOneRuler(t *testing.T) {
	older, younger := fixture.Singleton("z").MadeAt(1), fixture.Singleton("a").MadeAt(2)
	for _, r := range []struct {
		name string
		all  []v1.StatefulSingleton
		want string
	}{
		{"no object for a pod that is not selected", fixture.All(fixture.Singleton("db").Selecting(fixture.Labelled("app", "web"))), ""},
		{"no object in a namespace without objects", nil, ""},
		{"the object that matches", fixture.All(fixture.Singleton("web").Selecting(fixture.Labelled("app", "web")), older), "z"},
		{"the older of two overlapping objects", fixture.All(younger, older), "z"},
		{"the first by name of three overlapping objects with equal age", fixture.All(fixture.Singleton("b").MadeAt(1), fixture.Singleton("c").MadeAt(1), fixture.Singleton("a").MadeAt(1)), "a"},
		{"the younger object if the older one is terminating", fixture.All(younger, fixture.Singleton("z").MadeAt(1).Deleted()), "a"},
		{"no object with an empty selector, which would match every pod", fixture.All(fixture.Singleton("z").Selecting(metav1.LabelSelector{})), ""},
		{"no object with a malformed selector", fixture.All(fixture.Singleton("z").Selecting(fixture.Expressions(fixture.Asking("app", "Near", "x")))), ""},
	} {
		got := ""
		if ruler := spec.RulerOf(labels.Set{"app": "db"}, r.all); ruler != nil {
			got = ruler.Name
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
	if spec.RulerOf(nil, fixture.All(older)) != nil {
		t.Error("a pod without labels is managed by an object")
	}
}

func TestS26Conflicts(t *testing.T) {
	db := fixture.Singleton("db")
	others := fixture.All(fixture.Singleton("z"), db, fixture.Singleton("a").Deleted(), fixture.Singleton("web").Selecting(fixture.Labelled("app", "web")))
	var got []string
	for _, s := range spec.Conflicting(&db.StatefulSingleton, others) {
		got = append(got, s.Name)
	}
	if strings.Join(got, " ") != "a z" {
		t.Errorf("conflicts are %v, want a (being deleted, but with pods) and z", got)
	}
}

func TestAtMostAHundred(t *testing.T) {
	var hundred []v1.StatefulSingleton
	for i := range spec.MaxPerNamespace {
		hundred = append(hundred, fixture.Singleton(fmt.Sprintf("s%03d", i)).MadeAt(i%60).StatefulSingleton)
	}
	for _, r := range []struct {
		name string
		s    *fixture.SingletonFixture
		all  []v1.StatefulSingleton
		want bool
	}{
		{"the 100th object", fixture.Singleton("s099").MadeAt(39), hundred, false},
		{"the 101st object", fixture.Singleton("zz").MadeAt(59), append(hundred, fixture.Singleton("zz").MadeAt(59).StatefulSingleton), true},
		{"an object that is older than all 100", fixture.Singleton("zz").MadeAt(-9), append(hundred, fixture.Singleton("zz").MadeAt(-9).StatefulSingleton), false},
	} {
		if got := spec.BeyondLimit(&r.s.StatefulSingleton, r.all); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}
