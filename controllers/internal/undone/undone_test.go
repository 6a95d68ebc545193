package undone

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

func budget(version string, unavailable int32, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "1", ResourceVersion: version, Labels: map[string]string{"app": "db"}},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(unavailable))},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func stateful(version string, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "2", ResourceVersion: version}}
	s.Spec.Template.Labels = map[string]string{"app": "db"}
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "one", Command: []string{"run", "it"}}}
	for _, c := range change {
		c(s)
	}
	return s
}

func image(name string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func sidecar(s *appsv1.StatefulSet) {
	s.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "x"}}, s.Spec.Template.Spec.Containers...)
}

func defaults(s *appsv1.StatefulSet) {
	s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	s.Spec.Template.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
}

func policySet(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

func labelled(b *policyv1.PodDisruptionBudget) { b.Labels["owner"] = "db" }

func TestFieldsThatWereUndone(t *testing.T) {
	for _, row := range []struct {
		name             string
		from, to, answer client.Object
		want             string
	}{
		{"W3 a write that is stored unchanged", budget("1", 1), budget("1", 2), budget("2", 2), ""},
		{"W3 a policy adds a field", budget("1", 1), budget("1", 2), budget("2", 2, policySet), ""},
		{"W3 a policy changes the field back", budget("1", 1), budget("1", 2), budget("1", 1), "spec.maxUnavailable (wanted 2, present 1)"},
		{"W3 a policy sets the field to a third value", budget("1", 1), budget("1", 2), budget("2", 3), "spec.maxUnavailable (wanted 2, present 3)"},
		{"W3 a policy removes a label", budget("1", 1), budget("1", 1, labelled), budget("1", 1), `metadata.labels.owner (wanted "db", present none)`},
		{"W3 a policy sets a label again that was removed", budget("1", 1, labelled), budget("1", 1), budget("2", 1, labelled), `metadata.labels.owner (wanted none, present "db")`},
		{"W3 another field was changed as well", budget("1", 1), budget("1", 2), budget("2", 2, labelled), ""},
		{"W3 the API server restores defaults that a template omits", stateful("1", defaults), stateful("1", image("two")), stateful("2", image("two"), defaults), ""},
		{"W3 a sidecar is in front of the containers", stateful("1"), stateful("1", image("two")), stateful("2", image("two"), sidecar), ""},
		{"W3 a policy restores an image and adds a sidecar", stateful("1"), stateful("1", image("two")), stateful("2", sidecar), `spec.template.spec.containers[name=app].image (wanted "two", present "one")`},
		{"W3 a removed field is restored, and nothing else changed", budget("1", 1, policySet), budget("1", 1), budget("1", 1, policySet), `spec.unhealthyPodEvictionPolicy (wanted none, present "AlwaysAllow")`},
	} {
		var got []string
		for _, f := range Of(row.from, row.to, row.answer) {
			got = append(got, f.String())
		}
		if strings.Join(got, "; ") != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestCovers(t *testing.T) {
	command := func(all ...string) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Command = all }
	}
	for _, row := range []struct {
		name       string
		have, want *appsv1.StatefulSet
		covers     bool
	}{
		{"W3 equal", stateful("1"), stateful("1"), true},
		{"W3 defaults", stateful("1", defaults), stateful("1"), true},
		{"W3 a sidecar", stateful("1", sidecar), stateful("1"), true},
		{"W3 a missing container", stateful("1"), stateful("1", sidecar), false},
		{"W3 another image", stateful("1", image("two")), stateful("1"), false},
		{"W3 an argument is missing in a command", stateful("1", command("run")), stateful("1"), false},
		{"W3 the arguments of a command in another order", stateful("1", command("it", "run")), stateful("1"), false},
	} {
		if got := Covers(row.have.Spec.Template, row.want.Spec.Template); got != row.covers {
			t.Errorf("%s: %v, want %v", row.name, got, row.covers)
		}
	}
}

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func patch(from, to client.Object) action.Action {
	return action.Action{Verb: action.Patch, From: from, Object: to}
}

// undoneTimes returns a memory of a write that was undone the given number of times, each time when it
// was due.
func undoneTimes(times int, a action.Action, answer client.Object) (*Memory, time.Time) {
	m, now := &Memory{}, noon
	m.Held(1, now)
	for range times {
		m.Learn([]action.Outcome{{Action: a, Answer: answer}}, now)
		now = now.Add(m.Held(1, now).Pause(action.Chain{a}))
	}
	return m, now
}

func TestAWriteThatWasUndoneWaits(t *testing.T) {
	a := patch(budget("1", 1), budget("1", 2))
	for times, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, maxPause, maxPause} {
		m, due := undoneTimes(times, a, budget("1", 1))
		if times == 0 {
			continue
		}
		m.Learn(nil, due.Add(-want))
		if got := m.Held(1, due.Add(-want)).Pause(action.Chain{a}); got != want {
			t.Errorf("W3 after %d writes the backoff is %v, want %v", times, got, want)
		}
		if got := m.Held(1, due).Pause(action.Chain{a}); got != 0 {
			t.Errorf("W3 when the backoff ended there is another backoff of %v", got)
		}
	}
}

func TestWhatWaits(t *testing.T) {
	a := patch(budget("1", 1), budget("1", 2))
	m, _ := undoneTimes(1, a, budget("1", 1))
	remove := action.Action{Verb: action.Delete, Object: budget("1", 1)}
	for _, row := range []struct {
		name       string
		generation int64
		chain      action.Chain
		waits      bool
	}{
		{"W3 the same write", 1, action.Chain{a}, true},
		{"W3 the same write of another version of the object", 1, action.Chain{patch(budget("9", 1, policySet), budget("9", 2, policySet))}, true},
		{"W3 another value", 1, action.Chain{patch(budget("1", 1), budget("1", 3))}, false},
		{"W3 another client changed the field since", 1, action.Chain{patch(budget("9", 5), budget("9", 2))}, false},
		{"W3 another field as well", 1, action.Chain{patch(budget("1", 1), budget("1", 2, labelled))}, false},
		{"W3 a chain with writes other than patches", 1, action.Chain{a, remove}, false},
		{"W3 a patch of another object in the same chain", 1, action.Chain{a, patch(stateful("1"), stateful("1", image("two")))}, false},
		{"W3 a patch without changes in the same chain", 1, action.Chain{a, patch(stateful("1"), stateful("1"))}, true},
		{"W3 a delete", 1, action.Chain{remove}, false},
		{"W3 a new spec", 2, action.Chain{a}, false},
	} {
		if got := m.Held(row.generation, noon.Add(time.Second)).Pause(row.chain) > 0; got != row.waits {
			t.Errorf("%s: backoff %v, want %v", row.name, got, row.waits)
		}
	}
}

func TestAWriteThatSticksIsForgotten(t *testing.T) {
	a := patch(budget("1", 1), budget("1", 2))
	m, due := undoneTimes(1, a, budget("1", 1))
	m.Learn([]action.Outcome{{Action: a, Answer: budget("2", 2)}}, due)
	if got := m.Held(1, due.Add(time.Second)); got.Pause(action.Chain{a}) != 0 || got.Message() != "" {
		t.Errorf("W3 an entry is stored: %s", got.Message())
	}
}

func TestAMessageNamesTheField(t *testing.T) {
	of := func(a action.Action, answer client.Object) string {
		m, _ := undoneTimes(1, a, answer)
		return m.Held(1, noon.Add(time.Second)).Message()
	}
	if got := of(patch(budget("1", 1), budget("1", 2)), budget("1", 1)); !strings.Contains(got, "poddisruptionbudget db: spec.maxUnavailable (wanted 2, present 1)") {
		t.Errorf("W3 the message is %q", got)
	}
	if got := of(patch(stateful("1"), stateful("1", image("two"))), stateful("1")); got != "" {
		t.Errorf("W3 an image from a mirror is reported: %q", got)
	}
	if got := of(patch(budget("1", 1, policySet), budget("1", 1)), budget("1", 1, policySet)); got != "" {
		t.Errorf("W3 a field that a policy adds is reported: %q", got)
	}
	var fields []string
	for i := range 5 {
		fields = append(fields, fmt.Sprintf("field %d", i))
	}
	if got := Explain(fields, retried); !strings.Contains(got, "field 2; and 2 more;") {
		t.Errorf("W3 the message is %q", got)
	}
}

func TestValuesOfTheEnvironmentAreNotShown(t *testing.T) {
	f := Field{Path: "spec.template.spec.containers[name=app].env[name=PASSWORD].value", Wanted: `"secret"`, Present: `"x"`}
	if strings.Contains(f.String(), "secret") {
		t.Errorf("message %s", f)
	}
}
