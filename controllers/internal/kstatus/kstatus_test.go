package kstatus

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

// conditions returns the three conditions of a kind. The reason of each is its first letter and its
// status.
func conditions(available, progressing, degraded metav1.ConditionStatus) []metav1.Condition {
	var all []metav1.Condition
	for i, kind := range []string{"Available", "Progressing", "Degraded"} {
		status := []metav1.ConditionStatus{available, progressing, degraded}[i]
		all = append(all, metav1.Condition{Type: kind, Status: status, Reason: kind[:1] + string(status), Message: "why"})
	}
	return all
}

// said returns the three conditions as one line.
func said(all []metav1.Condition) string {
	var parts []string
	for _, kind := range []string{Ready, Reconciling, Stalled} {
		c := meta.FindStatusCondition(all, kind)
		parts = append(parts, fmt.Sprintf("%s/%s", c.Status, c.Reason))
	}
	return strings.Join(parts, " ")
}

func TestWith(t *testing.T) {
	blocked := Verdict{Blocker: engine.Notice{Reason: "B"}}
	hindered := Verdict{Obstacle: engine.Notice{Reason: "O"}}
	both := Verdict{Blocker: blocked.Blocker, Obstacle: hindered.Obstacle}
	const settled, nothing = "False/Settled", "False/NotStalled"
	for _, r := range []struct {
		says       string
		conditions []metav1.Condition
		verdict    Verdict
		want       string
	}{
		{"available without pending changes", conditions(yes, no, no), Verdict{}, "True/ATrue " + settled + " " + nothing},
		{"available and progressing", conditions(yes, yes, no), Verdict{}, "False/PTrue True/PTrue " + nothing},
		{"unavailable without a reason", conditions(no, no, no), Verdict{}, "False/AFalse True/AFalse " + nothing},
		{"availability is unknown", conditions(unknown, no, no), Verdict{}, "False/AUnknown True/AUnknown " + nothing},
		{"unavailable on purpose", conditions(no, no, no), Verdict{Idle: true}, "True/AFalse " + settled + " " + nothing},
		{"becoming unavailable on purpose", conditions(no, yes, no), Verdict{Idle: true}, "False/PTrue True/PTrue " + nothing},
		{"a temporary problem", conditions(yes, no, yes), hindered, "False/O True/O " + nothing},
		{"progress takes precedence over a temporary problem", conditions(no, yes, yes), hindered, "False/PTrue True/PTrue " + nothing},
		{"a temporary problem takes precedence over unavailability", conditions(no, no, yes), hindered, "False/O True/O " + nothing},
		{"a manual intervention is required although the object is available", conditions(yes, no, yes), blocked, "False/B False/Stalled True/B"},
		{"a manual intervention is required while progress is blocked", conditions(no, yes, yes), blocked, "False/B False/Stalled True/B"},
		{"a manual intervention takes precedence over a temporary problem", conditions(no, yes, yes), both, "False/B False/Stalled True/B"},
	} {
		all := With(r.conditions, r.verdict)
		if got := said(all); got != r.want {
			t.Errorf("%s: %s, want %s", r.says, got, r.want)
		}
		if len(all) != 6 || len(r.conditions) != 3 {
			t.Errorf("%s: %d conditions, want %d", r.says, len(all), len(r.conditions))
		}
	}
}

// TestExactlyOneIsTrue tests all combinations, because kstatus uses the first condition that is True.
func TestExactlyOneIsTrue(t *testing.T) {
	every := []metav1.ConditionStatus{yes, no, unknown}
	for i := range 3 * 3 * 8 {
		v := Verdict{Idle: i&1 > 0}
		if i&2 > 0 {
			v.Blocker.Reason = "B"
		}
		if i&4 > 0 {
			v.Obstacle.Reason = "O"
		}
		all := With(conditions(every[i/8%3], every[i/24], yes), v)
		if n := strings.Count(said(all), "True/"); n != 1 {
			// The reasons of the kind also end in True, but have no slash after it.
			t.Errorf("%+v: %d are True: %s", v, n, said(all))
		}
	}
	if all := With(nil, Verdict{}); meta.IsStatusConditionTrue(all, Ready) {
		t.Errorf("Ready of an object without conditions: %s", said(all))
	}
}

func TestEffects(t *testing.T) {
	table := Effects{"DTrue": Beside, "DUnknown": NeedsPerson}
	for _, r := range []struct {
		says     string
		degraded metav1.ConditionStatus
		table    Effects
		want     Verdict
	}{
		{"no problem", no, Effects{"DFalse": NeedsPerson}, Verdict{}},
		{"a problem without consequences", yes, table, Verdict{}},
		{"a problem that requires manual intervention", yes, Effects{"DTrue": NeedsPerson}, Verdict{Blocker: engine.Notice{Reason: "DTrue", Message: "why"}}},
		{"a temporary problem", yes, Effects{"DTrue": Passes}, Verdict{Obstacle: engine.Notice{Reason: "DTrue", Message: "why"}}},
		{"an unlisted reason counts as a problem", yes, nil, Verdict{Obstacle: engine.Notice{Reason: "DTrue", Message: "why"}}},
	} {
		if got := r.table.Of(conditions(yes, no, r.degraded)); got != r.want {
			t.Errorf("%s: %+v, want %+v", r.says, got, r.want)
		}
	}
	if got := table.Of(nil); got != (Verdict{}) {
		t.Errorf("without a condition: %+v", got)
	}
}
