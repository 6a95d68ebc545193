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
		{"nothing wrong", singleton("db"), ""},
		{"S26 no selector", singleton("db").selecting(metav1.LabelSelector{}),
			`spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"a selector that only rules out, which would match the pods of others", singleton("db").selecting(expressions(asking("no-such-label", absent), asking("app", notIn, "x"), asking("tier", exists))),
			`spec.selector: Invalid value: "app notin (x),!no-such-label,tier": select pods by matchLabels, or by an expression In, for example matchLabels: {app: my-app}; a selector with only NotIn, Exists or DoesNotExist would match pods of other applications`},
		{"one that says which as well", singleton("db").selecting(expressions(asking("no-such-label", absent), asking("app", in, "x"))), ""},
		{"a selector with an unknown operator", singleton("db").selecting(expressions(asking("tier", in, "x"), asking("app", "Near", "x"))),
			`spec.selector.matchExpressions[1].operator: Invalid value: "Near": not a valid selector operator`},
		{"a selector that can be no label", singleton("db").selecting(labelled("app", "two words")),
			`spec.selector.matchLabels: Invalid value: "two words": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"a selector that no pod can match", singleton("db").selecting(expressions(asking("app", in, "x"), asking("app", absent))),
			`spec.selector: Invalid value: "app in (x),!app": no pod can match: what is asked of label "app" contradicts itself`},
		{"a selector by a label that the operator puts on pods", singleton("db").selecting(labelled("apps.statefulsingleton.com/managed", "true")),
			`spec.selector: Forbidden: label "apps.statefulsingleton.com/managed" is put on pods by the operator; select by a label of the application`},
		{"an expression with 32 values", singleton("db").selecting(expressions(asking("app", in, numbered(32)...))), ""},
		{"one with 33", singleton("db").selecting(expressions(asking("app", in, numbered(33)...))), `spec.selector.matchExpressions[0].values: Too many: 33: must have at most 32 items`},
		{"33 expressions", singleton("db").with(func(s *v1.StatefulSingleton) {
			s.Spec.Selector.MatchExpressions = make([]metav1.LabelSelectorRequirement, 33)
		}), `spec.selector.matchExpressions: Too many: 33: must have at most 32 items`},
		{"33 labels", singleton("db").with(func(s *v1.StatefulSingleton) {
			for _, name := range numbered(33) {
				s.Spec.Selector.MatchLabels[name] = name
			}
			delete(s.Spec.Selector.MatchLabels, "app")
		}), `spec.selector.matchLabels: Too many: 33: must have at most 32 items`},
		{"a label that is too long", singleton("db").selecting(labelled("app", long)), `spec.selector.matchLabels[app]: Too long: may not be more than 63 bytes`},
		{"a value that is", singleton("db").selecting(expressions(asking("app", in, "a", long))), `spec.selector.matchExpressions[0].values[1]: Too long: may not be more than 63 bytes`},
		{"a key that is", singleton("db").selecting(expressions(asking("app", in, "x"), asking(strings.Repeat("x", 318), exists))), `spec.selector.matchExpressions[1].key: Too long: may not be more than 317 bytes`},
		{"a name that fits no label", singleton(long), `metadata.name: Invalid value: "` + long + `": may have at most 63 characters: pods carry it as the value of a label`},
		{"S1 a maxTransitionTime of 0", timed(0), `spec.maxTransitionTime: Invalid value: 0: must be from 1 to 3600 seconds`},
		{"S1 a maxTransitionTime of 3601", timed(3601), `spec.maxTransitionTime: Invalid value: 3601: must be from 1 to 3600 seconds`},
		{"a container twice", singleton("db").containers("app", "app"), `spec.containers[1]: Duplicate value: "app"`},
		{"the sidecar as the program", singleton("db").containers("status-sidecar"), `spec.containers[0]: Forbidden: this is the operator's own container and not the program`},
		{"a container that cannot be", singleton("db").containers("my.app"), `spec.containers[0]: Invalid value: "my.app": must not contain dots`},
		{"two faults at once", timed(0).containers("status-sidecar"),
			`[spec.maxTransitionTime: Invalid value: 0: must be from 1 to 3600 seconds, spec.containers[0]: Forbidden: this is the operator's own container and not the program]`},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := problem(withDefaults(&r.singular.StatefulSingleton)); got != r.want {
				t.Errorf("it says\n  %s\nwant\n  %s", got, r.want)
			}
		})
	}
	none := singleton("db")
	none.Spec.Selector = nil
	if problem(withDefaults(&none.StatefulSingleton)) == "" {
		t.Error("a missing selector passed")
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
		{"the same label with the same value", labelled("app", "db"), labelled("app", "db"), true},
		{"the same label with two values", labelled("app", "db"), labelled("app", "web"), false},
		{"two labels: a pod can have both", labelled("app", "db"), labelled("tier", "one"), true},
		{"one asks for more", labelled("app", "db"), labelled("app", "db", "tier", "one"), true},
		{"two lists with a value in common", expressions(asking("app", in, "a", "b")), expressions(asking("app", in, "b", "c")), true},
		{"two lists with none in common", expressions(asking("app", in, "a", "b")), expressions(asking("app", in, "c")), false},
		{"a value that the other rules out", labelled("app", "a"), expressions(asking("app", notIn, "a", "b")), false},
		{"a list of which the other rules out a part", expressions(asking("app", in, "a", "b")), expressions(asking("app", notIn, "a")), true},
		{"two that rule out: there are always more values", expressions(asking("app", notIn, "a")), expressions(asking("app", notIn, "b"), asking("app", exists)), true},
		{"present and absent", expressions(asking("app", exists)), expressions(asking("app", absent)), false},
		{"a value and absent", labelled("app", "a"), expressions(asking("app", absent)), false},
		{"ruled out and absent: without the label a pod matches both", expressions(asking("app", notIn, "a")), expressions(asking("app", absent)), true},
		{"a third list leaves nothing", expressions(asking("app", in, "a", "b"), asking("app", in, "b", "c")), expressions(asking("app", in, "a", "c")), false},
		{"a selector that contradicts itself selects nothing", expressions(asking("app", in, "a"), asking("app", notIn, "a")), labelled("tier", "one"), false},
		{"an empty selector selects nothing here", metav1.LabelSelector{}, labelled("app", "db"), false},
		{"nor does a malformed one", expressions(asking("app", in)), labelled("tier", "one"), false},
	} {
		if got := overlap(&r.a, &r.b); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
		if got := overlap(&r.b, &r.a); got != r.want {
			t.Errorf("%s, the other way round: %v", r.name, got)
		}
	}
	if overlap(nil, ptr.To(labelled("app", "db"))) {
		t.Error("a missing selector selects nothing")
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
			want = want || selectorOf(&a.StatefulSingleton).Matches(have) && selectorOf(&b.StatefulSingleton).Matches(have)
		}
		counts[want]++
		if got := overlap(a.Spec.Selector, b.Spec.Selector); got != want {
			t.Fatalf("seed %d: %s and %s: %v, and looking at all pods says %v", seed,
				metav1.FormatLabelSelector(a.Spec.Selector), metav1.FormatLabelSelector(b.Spec.Selector), got, want)
		}
	}
	if counts[true] < 1000 || counts[false] < 1000 {
		t.Errorf("the selectors are too much alike: %v", counts)
	}
}

func TestSelectsSaysWhatLabelsSay(t *testing.T) {
	for seed := range uint64(20000) {
		s := &singleton("a").selecting(randomSelector(rand.New(rand.NewPCG(seed, 8)))).StatefulSingleton
		for _, have := range append(universe(), nil) {
			if got, want := selects(s, have), selectorOf(s).Matches(have); got != want {
				t.Fatalf("seed %d: %s selects %v: %v, and labels.Selector says %v", seed, metav1.FormatLabelSelector(s.Spec.Selector), have, got, want)
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
		{"none for a stranger", all(singleton("db").selecting(labelled("app", "web"))), ""},
		{"none where there is none", nil, ""},
		{"the one that matches", all(singleton("web").selecting(labelled("app", "web")), older), "z"},
		{"the older of two that should not both be there", all(younger, older), "z"},
		{"of one age the first by name", all(singleton("b").madeAt(1), singleton("c").madeAt(1), singleton("a").madeAt(1)), "a"},
		{"not one that is being deleted", all(younger, singleton("z").madeAt(1).deleted()), "a"},
		{"not one with an empty selector, which would match every pod", all(singleton("z").selecting(metav1.LabelSelector{})), ""},
		{"not one with a malformed selector", all(singleton("z").selecting(expressions(asking("app", "Near", "x")))), ""},
	} {
		got := ""
		if ruler := rulerOf(labels.Set{"app": "db"}, r.all); ruler != nil {
			got = ruler.Name
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
	if rulerOf(nil, all(older)) != nil {
		t.Error("a pod without labels has a ruler")
	}
}

func TestS26Conflicts(t *testing.T) {
	db := singleton("db")
	others := all(singleton("z"), db, singleton("a").deleted(), singleton("web").selecting(labelled("app", "web")))
	var got []string
	for _, s := range conflicting(&db.StatefulSingleton, others) {
		got = append(got, s.Name)
	}
	if strings.Join(got, " ") != "a z" {
		t.Errorf("in conflict with %v, want a (being deleted, but with pods) and z", got)
	}
}

func TestAtMostAHundred(t *testing.T) {
	var hundred []v1.StatefulSingleton
	for i := range MaxPerNamespace {
		hundred = append(hundred, singleton(fmt.Sprintf("s%03d", i)).madeAt(i%60).StatefulSingleton)
	}
	for _, r := range []struct {
		name string
		s    *singletonFixture
		all  []v1.StatefulSingleton
		want bool
	}{
		{"the hundredth", singleton("s099").madeAt(39), hundred, false},
		{"the hundred and first", singleton("zz").madeAt(59), append(hundred, singleton("zz").madeAt(59).StatefulSingleton), true},
		{"one that is older than all of them", singleton("zz").madeAt(-9), append(hundred, singleton("zz").madeAt(-9).StatefulSingleton), false},
	} {
		if got := beyondLimit(&r.s.StatefulSingleton, r.all); got != r.want {
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
		{"V20 nothing of what is usual", singleton("db"), ""},
		{"V20 nothing of an annotation of another client", annotated("example.com/release-now", "true"), ""},
		{"V20 the operator's own namespace, which has no guard", in("operator-system"),
			"metadata.namespace: the operator does not guard namespace operator-system; a pod that is created there while the operator's webhook is away runs its program at once; use another namespace"},
		{"V20 kube-system, which has none either", in("kube-system"),
			"metadata.namespace: the operator does not guard namespace kube-system; a pod that is created there while the operator's webhook is away runs its program at once; use another namespace"},
		{"V20 a typo in the annotation", annotated("apps.statefulsingleton.com/relase-now", "true"),
			"metadata.annotations[apps.statefulsingleton.com/relase-now]: the operator knows no such annotation; the only one for people is apps.statefulsingleton.com/release-now=true"},
		{"V20 the annotation in the domain of the API", annotated("apps.openshift.statefulsingleton.com/release-now", "true"),
			"metadata.annotations[apps.openshift.statefulsingleton.com/release-now]: the operator knows no such annotation; the only one for people is apps.statefulsingleton.com/release-now=true"},
		{"V20 another word for true", annotated(v1.AnnotationReleaseNow, "yes"), releaseNow + `"yes" does nothing; the value that does is "true"`},
		{"V20 release-now of an object that no one deletes", annotated(v1.AnnotationReleaseNow, "true"),
			releaseNow + "it does nothing yet; when the StatefulSingleton is deleted, all its waiting pods start at once, together"},
		{"V20 a release of an object that no one deletes", released(2, 1), "spec.release: when the StatefulSingleton is deleted, all its waiting pods start at once, together"},
		{"V20 one that the object is made with", released(1, -1),
			"spec.release.id: order a is not carried out, since the object is made with it; to order it, give it another id when the object is there"},
		{"V20 nothing of a release where it belongs", released(3, 1).deleted(), ""},
		{"V20 nothing of release-now where it belongs", annotated(v1.AnnotationReleaseNow, "true").deleted(), ""},
		{"V20 a grace period that is not respected", singleton("db").grace(20, false),
			"spec.respectPodGracePeriod: false shortens the grace period only of pods whose author allows it, by annotation apps.statefulsingleton.com/shorten-grace-period=true in their template"},
		{"V20 a grace period that outlasts every handover", singleton("db").grace(600, true),
			"spec.terminationGracePeriod: 600 seconds are more than maxTransitionTime (300): a program that takes so long to stop is reported as a handover that takes too long; set the one lower, or spec.maxTransitionTime higher (3600 at most)"},
	} {
		v := &validator{singletons: known{}, namespace: "operator-system"}
		said, err := v.ValidateCreate(t.Context(), &r.s.StatefulSingleton)
		if got := strings.Join(said, "; "); got != r.want || err != nil {
			t.Errorf("%s: it warns %q, error %v; want %q", r.name, got, err, r.want)
		}
	}
}

// TestV20AnnotationsAreWarnedOfWhenTheyChange checks kubectl annotate, which changes no
// spec and may change a terminating object.
func TestV20AnnotationsAreWarnedOfWhenTheyChange(t *testing.T) {
	v := &validator{singletons: known{}, namespace: "operator-system"}
	old := &singleton("db").deleted().StatefulSingleton
	typed := old.DeepCopy()
	typed.Annotations = map[string]string{"apps.statefulsingleton.com/release_now": "true"}
	for _, r := range []struct {
		name    string
		old, is *v1.StatefulSingleton
		want    int
	}{{"a typo comes", old, typed, 1}, {"it is there", typed, typed, 0}, {"it goes", typed, old, 0}} {
		said, err := v.ValidateUpdate(t.Context(), r.old, r.is)
		if len(said) != r.want || err != nil {
			t.Errorf("V20 %s: it warns %q, error %v", r.name, said, err)
		}
	}
}
