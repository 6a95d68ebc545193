package spec_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, r := range []struct {
		name     string
		singular *fixture.SingletonFixture
		want     string
	}{
		{"a valid object", fixture.Singleton("db"), ""},
		{"S26 no selector", fixture.Singleton("db").Selecting(metav1.LabelSelector{}),
			`spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"a selector without matchLabels or In, which would match unrelated pods", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("no-such-label", fixture.Absent), fixture.Asking("app", fixture.NotIn, "x"), fixture.Asking("tier", fixture.Exists))),
			`spec.selector: Invalid value: "app notin (x),!no-such-label,tier": select pods by matchLabels or by an expression In, for example matchLabels: {app: my-app}; a selector with only NotIn, Exists or DoesNotExist would match unrelated pods`},
		{"a selector with In and DoesNotExist", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("no-such-label", fixture.Absent), fixture.Asking("app", fixture.In, "x"))), ""},
		{"a selector with an unknown operator", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("tier", fixture.In, "x"), fixture.Asking("app", "Near", "x"))),
			`spec.selector.matchExpressions[1].operator: Invalid value: "Near": not a valid selector operator`},
		{"a selector with an invalid label value", fixture.Singleton("db").Selecting(fixture.Labelled("app", "two words")),
			`spec.selector.matchLabels: Invalid value: "two words": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"a selector that no pod can match", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, "x"), fixture.Asking("app", fixture.Absent))),
			`spec.selector: Invalid value: "app in (x),!app": no pod can match: the requirements for label "app" contradict each other`},
		{"a selector that uses a label of the operator", fixture.Singleton("db").Selecting(fixture.Labelled("apps.statefulsingleton.com/managed", "true")),
			`spec.selector: Forbidden: label "apps.statefulsingleton.com/managed" is set by the operator; select by a label of the application`},
		{"an expression with 32 values", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, numbered(32)...))), ""},
		{"an expression with 33 values", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, numbered(33)...))), `spec.selector.matchExpressions[0].values: Too many: 33: must have at most 32 items`},
		{"33 expressions", fixture.Singleton("db").With(func(s *v1.StatefulSingleton) {
			s.Spec.Selector.MatchExpressions = make([]metav1.LabelSelectorRequirement, 33)
		}), `spec.selector.matchExpressions: Too many: 33: must have at most 32 items`},
		{"33 labels", fixture.Singleton("db").With(func(s *v1.StatefulSingleton) {
			for _, name := range numbered(33) {
				s.Spec.Selector.MatchLabels[name] = name
			}
			delete(s.Spec.Selector.MatchLabels, "app")
		}), `spec.selector.matchLabels: Too many: 33: must have at most 32 items`},
		{"a label value that is too long", fixture.Singleton("db").Selecting(fixture.Labelled("app", long)), `spec.selector.matchLabels[app]: Too long: may not be more than 63 bytes`},
		{"a value of an expression that is too long", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, "a", long))), `spec.selector.matchExpressions[0].values[1]: Too long: may not be more than 63 bytes`},
		{"a key of an expression that is too long", fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, "x"), fixture.Asking(strings.Repeat("x", 318), fixture.Exists))), `spec.selector.matchExpressions[1].key: Too long: may not be more than 317 bytes`},
		{"a name that is too long for a label value", fixture.Singleton(long), `metadata.name: Invalid value: "` + long + `": must have at most 63 characters, because it is a label value of pods`},
		{"S1 a maxTransitionTime of 0", timed(0), `spec.maxTransitionTime: Invalid value: 0: must be from 1 to 3600 seconds`},
		{"S1 a maxTransitionTime of 3601", timed(3601), `spec.maxTransitionTime: Invalid value: 3601: must be from 1 to 3600 seconds`},
		{"a container twice", fixture.Singleton("db").Containers("app", "app"), `spec.containers[1]: Duplicate value: "app"`},
		{"the sidecar as the program", fixture.Singleton("db").Containers("status-sidecar"), `spec.containers[0]: Forbidden: this is the operator's own container, not the program`},
		{"an invalid container name", fixture.Singleton("db").Containers("my.app"), `spec.containers[0]: Invalid value: "my.app": must not contain dots`},
		{"fencing by a Lease", fixture.Singleton("db").Leased(), ""},
		{"fencing by a Lease with gate mode Binary", fixture.Singleton("db").Leased().Mode(v1.GateBinary), ""},
		{"fencing by a Lease of the min duration", lasting(10), ""},
		{"fencing by a Lease of the max duration", lasting(600), ""},
		{"a Lease that is too short", lasting(9), `spec.fencing.leaseDurationSeconds: Invalid value: 9: must be from 10 to 600 seconds`},
		{"a Lease that is too long", lasting(601), `spec.fencing.leaseDurationSeconds: Invalid value: 601: must be from 10 to 600 seconds`},
		{"fencing by a Lease with gate mode Init", fixture.Singleton("db").Leased().Mode(v1.GateInit),
			`spec.fencing.mode: Invalid value: "Lease": requires gateMode Auto or Binary, because the agent waits in the container of the program; set spec.gateMode to Auto instead of Init, or this to Proof`},
		{"fencing by a Lease with gate mode Script", fixture.Singleton("db").Leased().Mode(v1.GateScript),
			`spec.fencing.mode: Invalid value: "Lease": requires gateMode Auto or Binary, because the agent waits in the container of the program; set spec.gateMode to Auto instead of Script, or this to Proof`},
		{"a handover of crash loops", fixture.Singleton("db").Leased().HandsOverCrashLoops(), ""},
		{"a handover of crash loops without a Lease", fixture.Singleton("db").HandsOverCrashLoops(),
			`spec.onCrashLoop: Invalid value: "Handover": requires fencing.mode Lease, because the kubelet restarts the container at any time; set spec.fencing.mode to Lease instead of Proof, or this to Restart`},
		{"fencing by proof with gate mode Init", fixture.Singleton("db").Mode(v1.GateInit), ""},
		{"two errors", timed(0).Containers("status-sidecar"),
			`[spec.maxTransitionTime: Invalid value: 0: must be from 1 to 3600 seconds, spec.containers[0]: Forbidden: this is the operator's own container, not the program]`},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := spec.Problem(spec.WithDefaults(&r.singular.StatefulSingleton)); got != r.want {
				t.Errorf("the error is\n  %s\nwant\n  %s", got, r.want)
			}
		})
	}
	none := fixture.Singleton("db")
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

func timed(seconds int32) *fixture.SingletonFixture {
	s := fixture.Singleton("db")
	s.Spec.MaxTransitionTime = ptr.To(seconds)
	return s
}

// TestV20WhatIsWarnedOf checks warnings about valid settings that are probably mistakes.
func TestV20WhatIsWarnedOf(t *testing.T) {
	annotated := func(name, value string) *fixture.SingletonFixture {
		return fixture.Singleton("db").With(func(s *v1.StatefulSingleton) { s.Annotations = map[string]string{name: value} })
	}
	in := func(namespace string) *fixture.SingletonFixture {
		return fixture.Singleton("db").With(func(s *v1.StatefulSingleton) { s.Namespace = namespace })
	}
	const releaseNow = "metadata.annotations[apps.statefulsingleton.com/release-now]: "
	for _, r := range []struct {
		name string
		s    *fixture.SingletonFixture
		want string
	}{
		{"V20 no warning for a default object", fixture.Singleton("db"), ""},
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
		{"V20 a release of an object that is not being deleted", fixture.Released(2, 1), "spec.release: when the StatefulSingleton is deleted, all its waiting pods start at the same time"},
		{"V20 a release that the object is created with", fixture.Released(1, -1),
			"spec.release.id: order a is ignored, because the object is created with it; to release the pods, set another id after the creation"},
		{"V20 no warning for a release of an object that is being deleted", fixture.Released(3, 1).Deleted(), ""},
		{"V20 no warning for release-now of an object that is being deleted", annotated(v1.AnnotationReleaseNow, "true").Deleted(), ""},
		{"V20 respectPodGracePeriod false", fixture.Singleton("db").Grace(20, false),
			"spec.respectPodGracePeriod: false shortens the grace period only of pods that allow it by annotation apps.statefulsingleton.com/shorten-grace-period=true in their template"},
		{"V20 a Lease longer than maxTransitionTime", lasting(600),
			"spec.fencing.leaseDurationSeconds: 600 seconds exceed maxTransitionTime (300): the takeover from a node that cannot be reached is reported as a handover that takes too long; lower it, or raise spec.maxTransitionTime (max 3600)"},
		{"V20 no warning for a Lease of maxTransitionTime", lasting(300), ""},
		{"V20 a grace period longer than maxTransitionTime", fixture.Singleton("db").Grace(600, true),
			"spec.terminationGracePeriod: 600 seconds exceed maxTransitionTime (300): a program that takes this long to stop is reported as a handover that takes too long; lower it, or raise spec.maxTransitionTime (max 3600)"},
	} {
		v := &webhooks.Validator{Singletons: fixture.Known{}, Namespace: "operator-system"}
		said, err := v.ValidateCreate(t.Context(), &r.s.StatefulSingleton)
		if got := strings.Join(said, "; "); got != r.want || err != nil {
			t.Errorf("%s: warnings %q, error %v; want %q", r.name, got, err, r.want)
		}
	}
}

// TestV20AnnotationsAreWarnedOfWhenTheyChange checks kubectl annotate, which changes no
// spec and may change a terminating object.
func TestV20AnnotationsAreWarnedOfWhenTheyChange(t *testing.T) {
	v := &webhooks.Validator{Singletons: fixture.Known{}, Namespace: "operator-system"}
	old := &fixture.Singleton("db").Deleted().StatefulSingleton
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
