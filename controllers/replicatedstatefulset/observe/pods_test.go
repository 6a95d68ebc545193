package observe_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestWhatIsAskedInVainIsAskedLessOften tests that consecutive unanswered commands are counted, and
// that a sequence that is not a number counts as unanswered.
func TestWhatIsAskedInVainIsAskedLessOften(t *testing.T) {
	for _, r := range []struct {
		name, command string
		outcome       podexec.Outcome
		out           string
		want          int
	}{
		{"a status query without a response", "status", podexec.Unknown, "", 3},
		{"a status query with a response", "status", podexec.Failed, "", 0},
		{"a sequence with a number", "sequence", podexec.Succeeded, "7\n", 0},
		{"a sequence without a number", "sequence", podexec.Succeeded, "seven", 3},
		{"a sequence that failed", "sequence", podexec.Failed, "", 3},
	} {
		t.Run(r.name, func(t *testing.T) {
			m := fixture.Pod(0)
			remembered := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
			for i := range 3 {
				m.Answered(r.command, r.outcome, 1, r.out, time.Duration(9-i)*time.Second)
				remembered.Look(m.Member, nil, fixture.Noon)
				remembered.Look(m.Member, nil, fixture.Noon) // the same result counts once
			}
			if got := m.Tries[r.command]; got != r.want {
				t.Errorf("tries is %d, want %d", got, r.want)
			}
			if _, said := m.Said[r.command]; said != (r.outcome != podexec.Unknown) {
				t.Errorf("a response is remembered: %t", said)
			}
		})
	}
}

// TestAMemberIsUnresponsiveWhenItWasAsked tests that only commands that were sent to the running
// container make a member unresponsive. An outage does not.
func TestAMemberIsUnresponsiveWhenItWasAsked(t *testing.T) {
	m := fixture.Pod(0)
	remembered := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
	for i := range spec.UnresponsiveAfter {
		if m.Unresponsive() {
			t.Fatalf("unresponsive after %d of %d queries", i, spec.UnresponsiveAfter)
		}
		m.Unsent("status", time.Duration(50-i)*time.Second, 0)
		remembered.Look(m.Member, nil, fixture.Noon)
		m.Answered("status", podexec.Unknown, 0, "", time.Duration(40-i)*time.Second)
		remembered.Look(m.Member, nil, fixture.Noon)
	}
	if !m.Unresponsive() {
		t.Error("the member is not unresponsive after all queries")
	}
	m.Restarted(time.Second)
	if remembered.Look(m.Member, nil, fixture.Noon); m.Unresponsive() {
		t.Error("the member is unresponsive because of queries to another container")
	}
}

// TestRS62ASetHasItsOwnKey tests that sets of the same name in two namespaces have different keys,
// so that a hanging set does not affect the other.
func TestRS62ASetHasItsOwnKey(t *testing.T) {
	child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-0", Namespace: "ns", Labels: map[string]string{v1alpha1.LabelApp: "db"}}}
	twin := child.DeepCopy()
	twin.Namespace = "another"
	a, b := observe.RequestFor(child), observe.RequestFor(twin)
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] || !strings.HasPrefix(a[0].String(), "ns/") {
		t.Errorf("the index keys are %v and %v, want one for each namespace", a, b)
	}
	if got := observe.RequestFor(&corev1.Pod{}); got != nil {
		t.Errorf("a pod without an owner enqueues %v", got)
	}
}
