package status_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// kept returns the world, as observe reads it, in which a sample has kept rss-db-1 from running for
// that long. It returns nil if the sample does not apply to members.
func kept(s *causestest.Sample, age time.Duration, things ...fixture.Thing) *facts.World {
	known := &observe.KnownCauses{Trail: causes.Trail{}, Starts: map[string]observe.FailedStarts{}}
	const name = "rss-db-1"
	w := fixture.WorldOf(fixture.SetOf(2, 1), append([]fixture.Thing{fixture.Pod(0).Primary()}, things...)...)
	var member *corev1.Pod
	told := causes.Cause{}
	switch {
	case s.Refused != "":
		told = causes.Refused(s.Refused)
		known.Trail.Follow(name, nil, told, fixture.Ago(age))
	default:
		m := fixture.Pod(1)
		if s.Pod != nil {
			s.Pod(m.Pod, fixture.Ago(age))
		} else if !s.Fails {
			m.Pending()
			m.Pod.CreationTimestamp = fixture.MetaTime(age)
			m.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			told = causes.InEvents([]corev1.Event{s.Told})
		}
		m.Into(w)
		member = m.Pod
	}
	if s.Fails {
		known.Starts[name] = observe.FailedStarts{Since: fixture.Ago(age), Last: fixture.Noon, Times: 2, Text: "secondary failed with exit code 1"}
	}
	w.Causes.Add(name, known.Follow(w, name, member, told))
	return w
}

func saidIn(s *v1alpha1.ReplicatedStatefulSetStatus, kind string) metav1.Condition {
	return *meta.FindStatusCondition(s.Conditions, kind)
}

// TestW7EachCauseIsToldOf tests W7: after a minute, conditions report what keeps a member from
// running, with a command that helps. Stalled is set if manual intervention is needed.
func TestW7EachCauseIsToldOf(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		w := kept(s, 70*time.Second)
		if len(w.Causes.All) != 1 || w.Causes.All[0].Situation() != s.Situation {
			t.Errorf("W7 %s: the causes are %v", s.Situation, w.Causes.All)
			continue
		}
		p := rules.Decide(w)
		set := w.Set.DeepCopy()
		set.Status = status.Summarize(&p)
		bad := saidIn(&set.Status, v1alpha1.ConditionDegraded)
		if !s.RunsUnready(t) && (bad.Reason != v1alpha1.ReasonMembersCannotStart || !strings.HasPrefix(bad.Message, "member rss-db-1 ")) {
			t.Errorf("W7 %s: Degraded is %s: %s", s.Situation, bad.Reason, bad.Message)
		}
		s.Check(t, v1alpha1.ConditionDegraded, set, set.Status.Conditions)
	}
}

// TestW7NothingIsSaidOfWhatJustBegan tests W7: nothing is reported in the first minute, because
// most causes are temporary.
func TestW7NothingIsSaidOfWhatJustBegan(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		w := kept(s, 5*time.Second)
		if s.Deleted || strings.Contains(s.Shows, "ended with code") || strings.Contains(s.Shows, "code 1") {
			continue // crashed four times already
		}
		p := rules.Decide(w)
		status := status.Summarize(&p)
		if bad := saidIn(&status, v1alpha1.ConditionDegraded); bad.Reason == v1alpha1.ReasonMembersCannotStart {
			t.Errorf("W7 %s: Degraded after 5 s is %s", s.Situation, bad.Message)
		}
	}
}

// TestW7WhatWasToldStaysWhileItsCauseDoes tests W7: a reported cause stays after a restart of the
// operator, and is removed with the cause.
func TestW7WhatWasToldStaysWhileItsCauseDoes(t *testing.T) {
	told := fixture.With(func(w *facts.World) {
		meta.SetStatusCondition(&w.Set.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonMembersCannotStart, Message: "member rss-db-1 cannot be created: exceeded quota; raise it: kubectl"})
	})
	for _, row := range []struct {
		says   string
		change func(*facts.World)
		want   bool
	}{
		{"the cause is known for a moment only", func(w *facts.World) {
			w.Causes.All = []causes.Hindered{{Name: "rss-db-1", Found: causes.Found{Cause: causes.Refused("exceeded quota")}}}
		}, true},
		{"the events are not read yet", func(w *facts.World) { w.Causes.Unread = true }, true},
		{"the cause is gone", func(*facts.World) {}, false},
	} {
		w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), told)
		row.change(w)
		p := rules.Decide(w)
		status := status.Summarize(&p)
		if got := saidIn(&status, v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonMembersCannotStart; got != row.want {
			t.Errorf("W7 %s: Degraded reports the cause: %t", row.says, got)
		}
	}
}

// TestW7FailedStartsAreCountedOverPods tests W7: a member whose start fails repeatedly is reported
// until it runs, also while its pods are recreated for that.
func TestW7FailedStartsAreCountedOverPods(t *testing.T) {
	known := &observe.KnownCauses{Trail: causes.Trail{}, Starts: map[string]observe.FailedStarts{}}
	at := func(age time.Duration, failed bool, runs bool) *facts.World {
		w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle())
		w.Now = fixture.Ago(age)
		if failed {
			w.Set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", Command: "secondary", Code: 1, Count: 1, Last: metav1.NewTime(w.Now)}}
		}
		if runs {
			w.Set.Status.Members.Secondary = []string{"rss-db-1"}
		}
		known.NoteStarts(w)
		return w
	}
	at(100*time.Second, true, false)
	at(90*time.Second, false, false) // its pod was recreated
	w := at(20*time.Second, true, false)
	found := known.Follow(w, "rss-db-1", w.Members[1].Pod, causes.Cause{})
	if !found.Lasts || found.Word != causes.StartFails || found.Detail != "secondary failed with exit code 1" {
		t.Errorf("W7 the cause after two failures in 80 s is %+v", found)
	}
	w = at(0, false, true)
	if found := known.Follow(w, "rss-db-1", w.Members[1].Pod, causes.Cause{}); found.Known() {
		t.Errorf("W7 the cause of a running member is %+v", found)
	}
}
