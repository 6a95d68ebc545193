package statefulsingleton

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

func labelled(pairs ...string) metav1.LabelSelector {
	s := metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return s
}

func asking(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func expressions(requirements ...metav1.LabelSelectorRequirement) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: requirements}
}

const (
	in     = metav1.LabelSelectorOpIn
	notIn  = metav1.LabelSelectorOpNotIn
	exists = metav1.LabelSelectorOpExists
	absent = metav1.LabelSelectorOpDoesNotExist
)

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, r := range []struct {
		name     string
		singular *singletonFixture
		want     string
	}{
		{"a valid object", singleton("db"), ""},
		{"S26 no selector", singleton("db").selecting(metav1.LabelSelector{}),
			`spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"a selector without matchLabels or In, which would match unrelated pods", singleton("db").selecting(expressions(asking("no-such-label", absent), asking("app", notIn, "x"), asking("tier", exists))),
			`spec.selector: Invalid value: "app notin (x),!no-such-label,tier": select pods by matchLabels or by an expression In, for example matchLabels: {app: my-app}; a selector with only NotIn, Exists or DoesNotExist would match unrelated pods`},
		{"a selector with In and DoesNotExist", singleton("db").selecting(expressions(asking("no-such-label", absent), asking("app", in, "x"))), ""},
		{"a selector with an unknown operator", singleton("db").selecting(expressions(asking("tier", in, "x"), asking("app", "Near", "x"))),
			`spec.selector.matchExpressions[1].operator: Invalid value: "Near": not a valid selector operator`},
		{"a selector with an invalid label value", singleton("db").selecting(labelled("app", "two words")),
			`spec.selector.matchLabels: Invalid value: "two words": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"a selector that no pod can match", singleton("db").selecting(expressions(asking("app", in, "x"), asking("app", absent))),
			`spec.selector: Invalid value: "app in (x),!app": no pod can match: the requirements for label "app" contradict each other`},
		{"a selector that uses a label of the operator", singleton("db").selecting(labelled("apps.statefulsingleton.com/managed", "true")),
			`spec.selector: Forbidden: label "apps.statefulsingleton.com/managed" is set by the operator; select by a label of the application`},
		{"an expression with 32 values", singleton("db").selecting(expressions(asking("app", in, numbered(32)...))), ""},
		{"an expression with 33 values", singleton("db").selecting(expressions(asking("app", in, numbered(33)...))), `spec.selector.matchExpressions[0].values: Too many: 33: must have at most 32 items`},
		{"33 expressions", singleton("db").with(func(s *v1.StatefulSingleton) {
			s.Spec.Selector.MatchExpressions = make([]metav1.LabelSelectorRequirement, 33)
		}), `spec.selector.matchExpressions: Too many: 33: must have at most 32 items`},
		{"33 labels", singleton("db").with(func(s *v1.StatefulSingleton) {
			for _, name := range numbered(33) {
				s.Spec.Selector.MatchLabels[name] = name
			}
			delete(s.Spec.Selector.MatchLabels, "app")
		}), `spec.selector.matchLabels: Too many: 33: must have at most 32 items`},
		{"a label value that is too long", singleton("db").selecting(labelled("app", long)), `spec.selector.matchLabels[app]: Too long: may not be more than 63 bytes`},
		{"a value of an expression that is too long", singleton("db").selecting(expressions(asking("app", in, "a", long))), `spec.selector.matchExpressions[0].values[1]: Too long: may not be more than 63 bytes`},
		{"a key of an expression that is too long", singleton("db").selecting(expressions(asking("app", in, "x"), asking(strings.Repeat("x", 318), exists))), `spec.selector.matchExpressions[1].key: Too long: may not be more than 317 bytes`},
		{"a name that is too long for a label value", singleton(long), `metadata.name: Invalid value: "` + long + `": must have at most 63 characters, because it is a label value of pods`},
		{"S1 a maxTransitionTime of 0", timed(0), `spec.maxTransitionTime: Invalid value: 0: must be from 1 to 3600 seconds`},
		{"S1 a maxTransitionTime of 3601", timed(3601), `spec.maxTransitionTime: Invalid value: 3601: must be from 1 to 3600 seconds`},
		{"a container twice", singleton("db").containers("app", "app"), `spec.containers[1]: Duplicate value: "app"`},
		{"the sidecar as the program", singleton("db").containers("status-sidecar"), `spec.containers[0]: Forbidden: this is the operator's own container, not the program`},
		{"an invalid container name", singleton("db").containers("my.app"), `spec.containers[0]: Invalid value: "my.app": must not contain dots`},
		{"two errors", timed(0).containers("status-sidecar"),
			`[spec.maxTransitionTime: Invalid value: 0: must be from 1 to 3600 seconds, spec.containers[0]: Forbidden: this is the operator's own container, not the program]`},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := spec.Problem(spec.WithDefaults(&r.singular.StatefulSingleton)); got != r.want {
				t.Errorf("the error is\n  %s\nwant\n  %s", got, r.want)
			}
		})
	}
	none := singleton("db")
	none.Spec.Selector = nil
	if spec.Problem(spec.WithDefaults(&none.StatefulSingleton)) == "" {
		t.Error("a missing selector was accepted")
	}
}

func numbered(count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("v%d", i))
	}
	return all
}

func timed(seconds int32) *singletonFixture {
	s := singleton("db")
	s.Spec.MaxTransitionTime = ptr.To(seconds)
	return s
}

func TestOverlap(t *testing.T) {
	for _, r := range []struct {
		name string
		a, b metav1.LabelSelector
		want bool
	}{
		{"one label with equal values", labelled("app", "db"), labelled("app", "db"), true},
		{"one label with different values", labelled("app", "db"), labelled("app", "web"), false},
		{"two labels: a pod can have both", labelled("app", "db"), labelled("tier", "one"), true},
		{"one of two selectors has an additional label", labelled("app", "db"), labelled("app", "db", "tier", "one"), true},
		{"two lists with a value in common", expressions(asking("app", in, "a", "b")), expressions(asking("app", in, "b", "c")), true},
		{"two lists without a value in common", expressions(asking("app", in, "a", "b")), expressions(asking("app", in, "c")), false},
		{"a value that NotIn excludes", labelled("app", "a"), expressions(asking("app", notIn, "a", "b")), false},
		{"a list that NotIn excludes partly", expressions(asking("app", in, "a", "b")), expressions(asking("app", notIn, "a")), true},
		{"two NotIn: there are always more values", expressions(asking("app", notIn, "a")), expressions(asking("app", notIn, "b"), asking("app", exists)), true},
		{"Exists and DoesNotExist", expressions(asking("app", exists)), expressions(asking("app", absent)), false},
		{"a value and DoesNotExist", labelled("app", "a"), expressions(asking("app", absent)), false},
		{"NotIn and DoesNotExist: a pod without the label matches both", expressions(asking("app", notIn, "a")), expressions(asking("app", absent)), true},
		{"three lists without a value in common", expressions(asking("app", in, "a", "b"), asking("app", in, "b", "c")), expressions(asking("app", in, "a", "c")), false},
		{"a selector that contradicts itself does not overlap", expressions(asking("app", in, "a"), asking("app", notIn, "a")), labelled("tier", "one"), false},
		{"an empty selector does not overlap", metav1.LabelSelector{}, labelled("app", "db"), false},
		{"a malformed selector does not overlap", expressions(asking("app", in)), labelled("tier", "one"), false},
	} {
		if got := spec.Overlap(&r.a, &r.b); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
		if got := spec.Overlap(&r.b, &r.a); got != r.want {
			t.Errorf("%s, with swapped selectors: %v", r.name, got)
		}
	}
	if spec.Overlap(nil, ptr.To(labelled("app", "db"))) {
		t.Error("a missing selector overlaps with another selector")
	}
}

// randomSelector returns a selector with requirements for two labels and three values.
func randomSelector(r *rand.Rand) metav1.LabelSelector {
	var s metav1.LabelSelector
	for _, key := range []string{"a", "b"} {
		if maybe(r, 3) {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[key] = one(r, "x", "y", "")
		}
	}
	for range r.IntN(4) {
		e := asking(one(r, "a", "b"), one(r, in, notIn, exists, absent))
		if e.Operator == in || e.Operator == notIn {
			e.Values = one(r, []string{"x"}, []string{"y"}, []string{"x", "y"}, []string{"", "x"})
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

// universe returns all pods that such selectors can distinguish: z stands for all values
// that they do not name.
func universe() []labels.Set {
	var sets []labels.Set
	values := []string{"-", "", "x", "y", "z"}
	for _, a := range values {
		for _, b := range values {
			set := labels.Set{}
			if a != "-" {
				set["a"] = a
			}
			if b != "-" {
				set["b"] = b
			}
			sets = append(sets, set)
		}
	}
	return sets
}

// TestOverlapAgreesWithBruteForce checks that overlap agrees exactly with a comparison of
// all pods.
func TestOverlapAgreesWithBruteForce(t *testing.T) {
	pods := universe()
	counts := map[bool]int{}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 3))
		a, b := singleton("a").selecting(randomSelector(r)), singleton("b").selecting(randomSelector(r))
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
		s := &singleton("a").selecting(randomSelector(rand.New(rand.NewPCG(seed, 8)))).StatefulSingleton
		for _, have := range append(universe(), nil) {
			if got, want := spec.Selects(s, have), spec.SelectorOf(s).Matches(have); got != want {
				t.Fatalf("seed %d: %s selects %v: %v, but labels.Selector returns %v", seed, metav1.FormatLabelSelector(s.Spec.Selector), have, got, want)
			}
		}
	}
}

// TestS26ThereIsOneRuler checks that exactly one object manages a pod.
func TestS26ThereIsOneRuler(t *testing.T) {
	older, younger := singleton("z").madeAt(1), singleton("a").madeAt(2)
	for _, r := range []struct {
		name string
		all  []v1.StatefulSingleton
		want string
	}{
		{"no object for a pod that is not selected", all(singleton("db").selecting(labelled("app", "web"))), ""},
		{"no object in a namespace without objects", nil, ""},
		{"the object that matches", all(singleton("web").selecting(labelled("app", "web")), older), "z"},
		{"the older of two overlapping objects", all(younger, older), "z"},
		{"the first by name of three overlapping objects with equal age", all(singleton("b").madeAt(1), singleton("c").madeAt(1), singleton("a").madeAt(1)), "a"},
		{"the younger object if the older one is terminating", all(younger, singleton("z").madeAt(1).deleted()), "a"},
		{"no object with an empty selector, which would match every pod", all(singleton("z").selecting(metav1.LabelSelector{})), ""},
		{"no object with a malformed selector", all(singleton("z").selecting(expressions(asking("app", "Near", "x")))), ""},
	} {
		got := ""
		if ruler := spec.RulerOf(labels.Set{"app": "db"}, r.all); ruler != nil {
			got = ruler.Name
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
	if spec.RulerOf(nil, all(older)) != nil {
		t.Error("a pod without labels is managed by an object")
	}
}

func TestS26Conflicts(t *testing.T) {
	db := singleton("db")
	others := all(singleton("z"), db, singleton("a").deleted(), singleton("web").selecting(labelled("app", "web")))
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
		hundred = append(hundred, singleton(fmt.Sprintf("s%03d", i)).madeAt(i%60).StatefulSingleton)
	}
	for _, r := range []struct {
		name string
		s    *singletonFixture
		all  []v1.StatefulSingleton
		want bool
	}{
		{"the 100th object", singleton("s099").madeAt(39), hundred, false},
		{"the 101st object", singleton("zz").madeAt(59), append(hundred, singleton("zz").madeAt(59).StatefulSingleton), true},
		{"an object that is older than all 100", singleton("zz").madeAt(-9), append(hundred, singleton("zz").madeAt(-9).StatefulSingleton), false},
	} {
		if got := spec.BeyondLimit(&r.s.StatefulSingleton, r.all); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// TestV20WhatIsWarnedOf checks warnings about valid settings that are probably mistakes.
func TestV20WhatIsWarnedOf(t *testing.T) {
	annotated := func(name, value string) *singletonFixture {
		return singleton("db").with(func(s *v1.StatefulSingleton) { s.Annotations = map[string]string{name: value} })
	}
	in := func(namespace string) *singletonFixture {
		return singleton("db").with(func(s *v1.StatefulSingleton) { s.Namespace = namespace })
	}
	const releaseNow = "metadata.annotations[apps.statefulsingleton.com/release-now]: "
	for _, r := range []struct {
		name string
		s    *singletonFixture
		want string
	}{
		{"V20 no warning for a default object", singleton("db"), ""},
		{"V20 no warning for an annotation of another client", annotated("example.com/release-now", "true"), ""},
		{"V20 the operator's own namespace, which has no guard", in("operator-system"),
			"metadata.namespace: the operator does not guard namespace operator-system; a pod that is created there while the operator's webhook is unavailable runs its program immediately; use another namespace"},
		{"V20 kube-system, which has no guard", in("kube-system"),
			"metadata.namespace: the operator does not guard namespace kube-system; a pod that is created there while the operator's webhook is unavailable runs its program immediately; use another namespace"},
		{"V20 a typo in the annotation", annotated("apps.statefulsingleton.com/relase-now", "true"),
			"metadata.annotations[apps.statefulsingleton.com/relase-now]: unknown annotation; the only annotation for users is apps.statefulsingleton.com/release-now=true"},
		{"V20 the annotation in the domain of the API", annotated("apps.openshift.statefulsingleton.com/release-now", "true"),
			"metadata.annotations[apps.openshift.statefulsingleton.com/release-now]: unknown annotation; the only annotation for users is apps.statefulsingleton.com/release-now=true"},
		{"V20 a value other than true", annotated(v1.AnnotationReleaseNow, "yes"), releaseNow + `"yes" has no effect; the only valid value is "true"`},
		{"V20 release-now of an object that is not being deleted", annotated(v1.AnnotationReleaseNow, "true"),
			releaseNow + "it has no effect yet; when the StatefulSingleton is deleted, all its waiting pods start at the same time"},
		{"V20 a release of an object that is not being deleted", released(2, 1), "spec.release: when the StatefulSingleton is deleted, all its waiting pods start at the same time"},
		{"V20 a release that the object is created with", released(1, -1),
			"spec.release.id: order a is ignored, because the object is created with it; to release the pods, set another id after the creation"},
		{"V20 no warning for a release of an object that is being deleted", released(3, 1).deleted(), ""},
		{"V20 no warning for release-now of an object that is being deleted", annotated(v1.AnnotationReleaseNow, "true").deleted(), ""},
		{"V20 respectPodGracePeriod false", singleton("db").grace(20, false),
			"spec.respectPodGracePeriod: false shortens the grace period only of pods that allow it by annotation apps.statefulsingleton.com/shorten-grace-period=true in their template"},
		{"V20 a grace period longer than maxTransitionTime", singleton("db").grace(600, true),
			"spec.terminationGracePeriod: 600 seconds exceed maxTransitionTime (300): a program that takes this long to stop is reported as a handover that takes too long; lower it, or raise spec.maxTransitionTime (max 3600)"},
	} {
		v := &webhooks.Validator{Singletons: known{}, Namespace: "operator-system"}
		said, err := v.ValidateCreate(t.Context(), &r.s.StatefulSingleton)
		if got := strings.Join(said, "; "); got != r.want || err != nil {
			t.Errorf("%s: warnings %q, error %v; want %q", r.name, got, err, r.want)
		}
	}
}

// TestV20AnnotationsAreWarnedOfWhenTheyChange checks kubectl annotate, which changes no
// spec and may change a terminating object.
func TestV20AnnotationsAreWarnedOfWhenTheyChange(t *testing.T) {
	v := &webhooks.Validator{Singletons: known{}, Namespace: "operator-system"}
	old := &singleton("db").deleted().StatefulSingleton
	typed := old.DeepCopy()
	typed.Annotations = map[string]string{"apps.statefulsingleton.com/release_now": "true"}
	for _, r := range []struct {
		name    string
		old, is *v1.StatefulSingleton
		want    int
	}{{"a typo is added", old, typed, 1}, {"a typo is unchanged", typed, typed, 0}, {"a typo is removed", typed, old, 0}} {
		said, err := v.ValidateUpdate(t.Context(), r.old, r.is)
		if len(said) != r.want || err != nil {
			t.Errorf("V20 %s: warnings %q, error %v", r.name, said, err)
		}
	}
}
