package record_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestFailuresAreCounted checks which failures continue an earlier one.
func TestFailuresAreCounted(t *testing.T) {
	set := spec.WithDefaults(fixture.SetOf(1, 1))
	window := spec.FailureWindow(&set.Spec)
	for _, r := range []struct {
		name   string
		before v1alpha1.Failure
		fails  v1alpha1.RunningCommand
		code   int
		want   int32
	}{
		{"the first failure", v1alpha1.Failure{}, v1alpha1.RunningCommand{UID: "u", Name: "promote"}, 1, 1},
		{"another failure in the same pod", v1alpha1.Failure{Pod: "p", UID: "u", Count: 2}, v1alpha1.RunningCommand{UID: "u", Name: "stop"}, 1, 3},
		{"a failure in the next pod", v1alpha1.Failure{Pod: "p", UID: "before", Count: 2, Code: 1}, v1alpha1.RunningCommand{UID: "u", Name: "promote"}, 1, 1},
		{"a start without an effect in the next pod", v1alpha1.Failure{Pod: "p", UID: "before", Count: 2, Command: "promote"}, v1alpha1.RunningCommand{UID: "u", Name: "promote"}, 0, 3},
		{"a failure after the window", v1alpha1.Failure{Pod: "p", UID: "u", Count: 2, Last: metav1.NewTime(fixture.Ago(window + time.Second))}, v1alpha1.RunningCommand{UID: "u", Name: "stop"}, 1, 1},
	} {
		rec := record.Record{}
		if r.before.Pod != "" {
			if r.before.Last.IsZero() {
				r.before.Last = fixture.MetaTime(time.Minute)
			}
			rec.Failures = []v1alpha1.Failure{r.before}
		}
		r.fails.Pod = "p"
		rec.Fail(&record.Observed{Set: set, Now: fixture.Noon}, &r.fails, r.code)
		if len(rec.Failures) != 1 || rec.Failures[0].Count != r.want || rec.Failures[0].UID != "u" {
			t.Errorf("%s: %+v, want %d failures", r.name, rec.Failures, r.want)
		}
	}
}

// TestFailuresAreForgiven checks when a failure is removed from the record.
func TestFailuresAreForgiven(t *testing.T) {
	window := spec.FailureWindow(&spec.WithDefaults(fixture.SetOf(1, 1)).Spec)
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		kept bool
	}{
		{"a recent failure", fixture.Pod(0).Idle().Failures(1, "stop", 1, false), true},
		{"a failure of before the window", fixture.Pod(0).Idle().Failures(1, "stop", 1, false).Lately(window + time.Second), false},
		{"a failed start whose member was not stopped", fixture.Pod(0).Idle().Failures(1, "primary", 1, true).Lately(window + time.Second), true},
		{"a member that cannot work in its pod", fixture.Pod(0).Idle().Failures(1, "primary", 5, false).Lately(window + time.Second), true},
		{"a failed start of a member that is primary", fixture.Pod(0).Primary().Failures(1, "primary", 1, true).Lately(window + time.Second), false},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(1, 1), r.pod))
		if got := len(f.Record.Failures) > 0; got != r.kept {
			t.Errorf("%s: the record has %+v", r.name, f.Record.Failures)
		}
	}
}

func TestHowFailed(t *testing.T) {
	for code, want := range map[int]string{0: "failed: it exited with 0, but status did not confirm it", 3: "failed with exit code 3"} {
		if got := record.HowFailed(code); got != want {
			t.Errorf("code %d: %q", code, got)
		}
	}
}
