package spec_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
)

func TestTimesAreNoLongerThanIsHeeded(t *testing.T) {
	s := spec.WithDefaults(fixture.SetOf(1, 1))
	s.Spec.ReconcileInterval, s.Spec.FailureWindow = "100Y", "31D"
	s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "25h"}
	if a, b, c := spec.ReconcileInterval(&s.Spec), spec.FailureWindow(&s.Spec), spec.TimeoutOf(s.Spec.Pod.Commands["stop"]); a != 24*time.Hour || b != 30*24*time.Hour || c != 24*time.Hour {
		t.Errorf("the effective times are %s, %s and %s", a, b, c)
	}
	want := []string{
		"spec.reconcileInterval is 100Y, which is replaced by 24h0m0s, the max; set 24h0m0s or less",
		"spec.failureWindow is 31D, which is replaced by 720h0m0s, the max; set 720h0m0s or less",
		"spec.pod.commands[stop].timeout is 25h, which is replaced by 24h0m0s, the max; set 24h0m0s or less",
	}
	if got := webhooks.OddTimes(&s.Spec); !slices.Equal(got, want) {
		t.Errorf("the warnings are %q", got)
	}
}

// TestTimesFitTogether tests which times must be shorter than which, with the reasons.
func TestTimesFitTogether(t *testing.T) {
	for _, r := range []struct {
		shorter, longer time.Duration
		why             string
	}{
		{podexec.MaxDial, spec.StrayAfter, "a command that is accepted late counts as one that may reach the next container"},
		{spec.MaxPause, spec.ReturnsWithin, "a member that returned is queried while the failover waits"},
		{spec.MaxPause, spec.RefusedFor, "status is retried before a refusal counts as final"},
		{spec.AnswersWithin, spec.UnreadyAfter, "an unanswered status is reported before an unready pod"},
		{spec.SettleWithin, spec.MinPodAge, "a pod is not recreated for a start that status may still confirm"},
		{2 * spec.EvictionNoted, spec.EvictionFor, "repeated eviction requests are recorded before the previous one expires"},
		{spec.EvictionFor, spec.EvictionEvery, "an eviction request expires before one for another pod of the set is recorded"},
		{spec.HandoverPause, spec.EvictionFor, "a failed handover is retried before its eviction request expires"},
		{spec.ConflictRequeue, spec.WriteRequeue, "a conflict is retried before other writes"},
		{spec.UnresponsiveAfter * time.Second, spec.AnswersWithin, "five queries fit into the time in which a member must answer"},
		{spec.MinInterval, spec.DefaultInterval, "the default is within the limits"},
		{spec.DefaultInterval, spec.MaxTime, "the default is within the limits"},
		{spec.MinTimeout, spec.DefaultTimeout, "the default is within the limits"},
		{spec.DefaultTimeout, spec.MaxTime, "the default is within the limits"},
		{spec.DefaultWindow, spec.MaxWindow, "the default is within the limits"},
		{spec.MaxPause, spec.DefaultWindow, "a failure is remembered until its start is retried"},
	} {
		if r.shorter >= r.longer {
			t.Errorf("%s is not shorter than %s: %s", r.shorter, r.longer, r.why)
		}
	}
}

// TestDurations tests RS-31.
func TestDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{ // -1 if it is invalid
		"15m": 15 * time.Minute, "15m10s": 15*time.Minute + 10*time.Second, "10s": 10 * time.Second, "8": 8 * time.Second,
		"1D2h": 26 * time.Hour, "1DT2h": 26 * time.Hour, "T5m": 5 * time.Minute, "500ms": 500 * time.Millisecond,
		"1Y2M3D4h5m6s": (365+60+3)*day + 4*time.Hour + 5*time.Minute + 6*time.Second, "1M": 30 * day, "1m": time.Minute,
		"1.5h": 90 * time.Minute, ".5s": 500 * time.Millisecond, "2us": 2 * time.Microsecond, "2µs": 2 * time.Microsecond, "7ns": 7,
		"0": 0, "0s": 0, "0Y": 0, "008": 8 * time.Second, "292Y": 292 * 365 * day,
		"": -1, "abc": -1, "T": -1, "1DT": -1, "-5s": -1, "+5s": -1, "5 s": -1, "1h2D": -1, "1.5": -1, "1.5D": -1, "1D5": -1, "s": -1, "1S": -1, "5s\n": -1,
		"293Y": -1, "292Y200D": -1, "9223372037": -1, "9999999999999999999": -1, "99999999999999999999": -1, "99999999999h": -1, "292Y2562047h": -1,
	} {
		got, err := spec.ParseDuration(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
}

func TestDurationsThatAreHeeded(t *testing.T) {
	for _, r := range []struct {
		text                      v1alpha1.Duration
		interval, timeout, window time.Duration
	}{
		{"", time.Minute, 10 * time.Minute, 10 * time.Minute},
		{"0", time.Minute, 10 * time.Minute, 10 * time.Minute},
		{"abc", time.Minute, 10 * time.Minute, 10 * time.Minute},
		{"30s", 30 * time.Second, 30 * time.Second, 30 * time.Second},
		{"8", 8 * time.Second, 10 * time.Second, 8 * time.Second},
		{"500ms", 500 * time.Millisecond, 10 * time.Second, 500 * time.Millisecond},
		{"1ns", 100 * time.Millisecond, 10 * time.Second, 1},
	} {
		setSpec := &v1alpha1.ReplicatedStatefulSetSpec{ReconcileInterval: r.text, FailureWindow: r.text}
		if got := spec.ReconcileInterval(setSpec); got != r.interval {
			t.Errorf("an interval of %q is %v", r.text, got)
		}
		if got := spec.TimeoutOf(v1alpha1.Command{Timeout: r.text}); got != r.timeout {
			t.Errorf("a timeout of %q is %v", r.text, got)
		}
		if got := spec.FailureWindow(setSpec); got != r.window {
			t.Errorf("a window of %q is %v", r.text, got)
		}
	}
}
