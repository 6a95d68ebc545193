package replicatedstatefulset

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
)

// kept returns the world, as observe reads it, in which a sample has kept rss-db-1 from running for
// that long. It returns nil if the sample does not apply to members.
func kept(s *causestest.Sample, age time.Duration, things ...thing) *world {
	known := &knownCauses{trail: causes.Trail{}, starts: map[string]failedStarts{}}
	const name = "rss-db-1"
	w := worldOf(setOf(2, 1), append([]thing{pod(0).primary()}, things...)...)
	var member *corev1.Pod
	told := causes.Cause{}
	switch {
	case s.Refused != "":
		told = causes.Refused(s.Refused)
		known.trail.Follow(name, nil, told, ago(age))
	default:
		m := pod(1)
		if s.Pod != nil {
			s.Pod(m.pod, ago(age))
		} else if !s.Fails {
			m.pending()
			m.pod.CreationTimestamp = metaTime(age)
			m.pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			told = causes.InEvents([]corev1.Event{s.Told})
		}
		m.into(w)
		member = m.pod
	}
	if s.Fails {
		known.starts[name] = failedStarts{since: ago(age), last: noon, times: 2, text: "secondary failed with exit code 1"}
	}
	w.causes.Add(name, known.follow(w, name, member, told))
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
		if len(w.causes.All) != 1 || w.causes.All[0].Situation() != s.Situation {
			t.Errorf("W7 %s: the causes are %v", s.Situation, w.causes.All)
			continue
		}
		p := decide(w)
		set := w.set.DeepCopy()
		set.Status = summarize(&p)
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
		p := decide(w)
		status := summarize(&p)
		if bad := saidIn(&status, v1alpha1.ConditionDegraded); bad.Reason == v1alpha1.ReasonMembersCannotStart {
			t.Errorf("W7 %s: Degraded after 5 s is %s", s.Situation, bad.Message)
		}
	}
}

// TestW7WhatWasToldStaysWhileItsCauseDoes tests W7: a reported cause stays after a restart of the
// operator, and is removed with the cause.
func TestW7WhatWasToldStaysWhileItsCauseDoes(t *testing.T) {
	told := with(func(w *world) {
		meta.SetStatusCondition(&w.set.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonMembersCannotStart, Message: "member rss-db-1 cannot be created: exceeded quota; raise it: kubectl"})
	})
	for _, row := range []struct {
		says   string
		change func(*world)
		want   bool
	}{
		{"the cause is known for a moment only", func(w *world) {
			w.causes.All = []causes.Hindered{{Name: "rss-db-1", Found: causes.Found{Cause: causes.Refused("exceeded quota")}}}
		}, true},
		{"the events are not read yet", func(w *world) { w.causes.Unread = true }, true},
		{"the cause is gone", func(*world) {}, false},
	} {
		w := worldOf(setOf(2, 1), pod(0).primary(), told)
		row.change(w)
		p := decide(w)
		status := summarize(&p)
		if got := saidIn(&status, v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonMembersCannotStart; got != row.want {
			t.Errorf("W7 %s: Degraded reports the cause: %t", row.says, got)
		}
	}
}

// TestW7FailedStartsAreCountedOverPods tests W7: a member whose start fails repeatedly is reported
// until it runs, also while its pods are recreated for that.
func TestW7FailedStartsAreCountedOverPods(t *testing.T) {
	known := &knownCauses{trail: causes.Trail{}, starts: map[string]failedStarts{}}
	at := func(age time.Duration, failed bool, runs bool) *world {
		w := worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle())
		w.now = ago(age)
		if failed {
			w.set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", Command: "secondary", Code: 1, Count: 1, Last: metav1.NewTime(w.now)}}
		}
		if runs {
			w.set.Status.Members.Secondary = []string{"rss-db-1"}
		}
		known.noteStarts(w)
		return w
	}
	at(100*time.Second, true, false)
	at(90*time.Second, false, false) // its pod was recreated
	w := at(20*time.Second, true, false)
	found := known.follow(w, "rss-db-1", w.members[1].pod, causes.Cause{})
	if !found.Lasts || found.Word != causes.StartFails || found.Detail != "secondary failed with exit code 1" {
		t.Errorf("W7 the cause after two failures in 80 s is %+v", found)
	}
	w = at(0, false, true)
	if found := known.follow(w, "rss-db-1", w.members[1].pod, causes.Cause{}); found.Known() {
		t.Errorf("W7 the cause of a running member is %+v", found)
	}
}
