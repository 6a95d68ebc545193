package configuration

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// carried returns the stamp of a StatefulSet with the given record and hash.
func carried(r *Record, hash string) Stamp {
	if r == nil {
		return Stamp{Hash: hash}
	}
	return Stamp{Hash: hash, Record: r.String()}
}

func TestWhenPodsAreRestarted(t *testing.T) {
	old := &Record{Key: "k", Seen: "s1", Hash: "h1"}
	edited := State{Key: "k", Seen: "s2", Hash: "h2"}
	go1 := Slot{Granted: true}
	for _, row := range []struct {
		sentence string
		view     View
		want     string // hash, event, reason, wait
	}{
		{"nothing was edited", View{Carried: carried(old, "h1"), State: State{Key: "k", Seen: "s1"}}, "h1 - - 0s"},
		{"metadata was edited", View{Carried: carried(old, "h1"), State: State{Key: "k", Seen: "s2", Hash: "h1"}}, "h1 - - 0s"},
		{"contents were just edited", View{Carried: carried(old, "h1"), State: edited, Since: noon, Slot: go1}, "h1 - ConfigChanged 2s"},
		{"edits continue", View{Carried: carried(old, "h1"), State: edited, Since: noon.Add(-1500 * time.Millisecond), Slot: go1}, "h1 - ConfigChanged 500ms"},
		{"the edit window has ended", View{Carried: carried(old, "h1"), State: edited, Since: noon.Add(-2 * time.Second), Slot: go1}, "h2 ConfigRestart - 0s"},
		{"the restart has no slot", View{Carried: carried(old, "h1"), State: edited, Since: noon.Add(-time.Hour)}, "h1 - ConfigRestartWaits 15s"},
		{"an upgrade is in progress", View{Carried: carried(old, "h1"), State: edited, Since: noon.Add(-time.Hour), Slot: go1, Held: "an upgrade is in progress"}, "h1 - ConfigChanged 0s"},
		{"there are no pods to restart", View{Carried: carried(old, "h1"), Idle: true, State: edited, Since: noon.Add(-time.Hour), Held: "an upgrade is in progress"}, "h2 ConfigRestart - 0s"},
		{"a required object was deleted", View{Carried: carried(old, "h1"), State: State{Key: "k", Seen: "s2", Hash: "h2", Missing: []string{"Secret s does not exist"}}, Since: noon.Add(-time.Hour), Slot: go1},
			"h1 - ConfigMissing 0s"},
		{"an object cannot be read", View{Carried: carried(old, "h1"), State: State{Key: "k", Unreadable: "Secret s: forbidden"}, Since: noon.Add(-time.Hour), Slot: go1},
			"h1 - ConfigUnreadable 15s"},
		{"the object was not followed before", View{Carried: carried(nil, ""), State: edited, Slot: go1}, " ConfigFollowed - 0s"},
		{"the object was not followed before, and one is missing", View{Carried: carried(nil, ""), State: State{Key: "k", Seen: "s2", Hash: "h2", Missing: []string{"x"}}}, " ConfigFollowed ConfigMissing 0s"},
		{"an object that was missing at the first start was created", View{Carried: carried(&Record{Key: "k", Seen: "s1", Hash: "h1", Incomplete: true}, "h1"), State: edited, Since: noon.Add(-time.Hour), Slot: go1}, "h2 ConfigRestart - 0s"},
		{"the key was lost, and nothing was edited", View{Carried: carried(old, "h1"), State: State{Key: "other", Seen: "s1", Hash: "x"}, Slot: go1}, "h1 ConfigKeyChanged - 0s"},
		{"the key was lost, and an object was edited", View{Carried: carried(old, "h1"), State: State{Key: "other", Seen: "s2", Hash: "x"}, Since: noon.Add(-time.Hour), Slot: go1}, "x ConfigKeyLost - 0s"},
		{"the record was corrupted by a user", View{Carried: Stamp{"h1", "{"}, State: edited}, "h1 ConfigFollowed - 0s"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := row.view.Target(noon)
			dash := func(s string) string {
				if s == "" {
					return "-"
				}
				return s
			}
			if got := w.Hash + " " + dash(w.Event) + " " + dash(w.Reason) + " " + w.Wait.String(); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if (w.Reason == "") != (w.Message == "") {
				t.Errorf("reason %q with message %q", w.Reason, w.Message)
			}
			carries := row.view.Carried.Record
			if w.Event == "" && w.Record != carries {
				t.Errorf("record %s is written without an event", w.Record)
			}
			if w.Event != "" && w.Record == carries {
				t.Error("an event was emitted, and nothing is written")
			}
			// A written target must be stable.
			after := row.view
			after.Carried = w.Stamp
			if again := after.Target(noon); w.Event != "" && (again.Stamp != w.Stamp || again.Event != "") {
				t.Errorf("got %+v after the write", again)
			}
		})
	}
}

func TestARecordSurvivesItsAnnotation(t *testing.T) {
	want := Record{Key: "k", Seen: "s", Hash: "h", Incomplete: true, Restarted: &metav1.Time{Time: noon}}
	got := ParseRecord(want.String())
	if got == nil || got.String() != want.String() || !got.Restarted.Equal(want.Restarted) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestWhoIsNotFollowedKeepsItsPods(t *testing.T) {
	carries := carried(&Record{Key: "k", Seen: "s", Hash: "h"}, "h")
	if w := Unfollowed(carries); w.Restarts(carries) || w.Record != "" {
		t.Errorf("got %+v", w)
	}
}

func TestMessagesSayWhatIsMissing(t *testing.T) {
	v := View{Carried: carried(&Record{Key: "k"}, ""), State: State{Missing: []string{"ConfigMap a does not exist", "Secret b does not exist"}}}
	if w := v.Target(noon); !strings.Contains(w.Message, "ConfigMap a") || !strings.Contains(w.Message, "Secret b") {
		t.Errorf("message %q", w.Message)
	}
}

func TestARestartIsNotForgottenWithTheKey(t *testing.T) {
	v := View{Carried: carried(&Record{Key: "k", Seen: "s1", Hash: "h1", Restarted: &metav1.Time{Time: noon}}, "h1"),
		State: State{Key: "other", Seen: "s1", Hash: "x"}}
	if r := ParseRecord(v.Target(noon).Record); r == nil || r.Key != "other" || !r.Restarted.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("the restart is dropped with the key: %v", r)
	}
}

func TestTiming(t *testing.T) {
	for _, row := range []struct {
		says        string
		less, limit time.Duration
	}{
		{"a pending restart asks again before its request expires, even if it misses one or two attempts", 3 * SlotRetry, SlotForgotten},
		{"a request expires soon after its object was deleted", SlotForgotten, SlotLimit},
		{"a slot is held no longer than its namespace is stored", SlotLimit, SlotMemory},
		{"the edit window is shorter than a restart", Window, SlotRetry},
	} {
		if row.less > row.limit {
			t.Errorf("%s: %s is more than %s", row.says, row.less, row.limit)
		}
	}
}
