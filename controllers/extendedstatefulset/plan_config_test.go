package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// carrying is a StatefulSet with a record, and pods of that hash.
func carrying(r *configRecord, hash string) *appsv1.StatefulSet {
	child := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db-v1", Namespace: "ns", UID: "child"},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3)), Template: corev1.PodTemplateSpec{}}}
	if r != nil {
		child.Annotations = map[string]string{v1alpha1.AnnotationConfigRecord: r.String()}
	}
	if hash != "" {
		child.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationConfigHash: hash}
	}
	return child
}

func TestE14WhenPodsAreRestarted(t *testing.T) {
	old := &configRecord{Key: "k", Seen: "s1", Hash: "h1"}
	edited := configuration{key: "k", seen: "s2", hash: "h2"}
	go1 := slot{granted: true}
	for _, row := range []struct {
		sentence string
		view     configView
		want     string // hash, event, reason, wait
	}{
		{"nothing was edited", configView{child: carrying(old, "h1"), configuration: configuration{key: "k", seen: "s1"}}, "h1 - - 0s"},
		{"metadata was edited", configView{child: carrying(old, "h1"), configuration: configuration{key: "k", seen: "s2", hash: "h1"}}, "h1 - - 0s"},
		{"contents were just edited", configView{child: carrying(old, "h1"), configuration: edited, since: noon, slot: go1}, "h1 - ConfigChanged 2s"},
		{"the edits go on", configView{child: carrying(old, "h1"), configuration: edited, since: noon.Add(-1500 * time.Millisecond), slot: go1}, "h1 - ConfigChanged 500ms"},
		{"the window is over", configView{child: carrying(old, "h1"), configuration: edited, since: noon.Add(-2 * time.Second), slot: go1}, "h2 ConfigRestart - 0s"},
		{"it is not its turn", configView{child: carrying(old, "h1"), configuration: edited, since: noon.Add(-time.Hour)}, "h1 - ConfigRestartWaits 15s"},
		{"an upgrade is under way", configView{child: carrying(old, "h1"), configuration: edited, since: noon.Add(-time.Hour), slot: go1, held: "an upgrade is under way"}, "h1 - ConfigChanged 0s"},
		{"there is no pod to restart", configView{child: func() *appsv1.StatefulSet {
			c := carrying(old, "h1")
			c.Spec.Replicas = ptr.To(int32(0))
			return c
		}(), configuration: edited, since: noon.Add(-time.Hour), held: "an upgrade is under way"}, "h2 ConfigRestart - 0s"},
		{"something required went", configView{child: carrying(old, "h1"), configuration: configuration{key: "k", seen: "s2", hash: "h2", missing: []string{"Secret s does not exist"}}, since: noon.Add(-time.Hour), slot: go1},
			"h1 - ConfigMissing 0s"},
		{"something cannot be read", configView{child: carrying(old, "h1"), configuration: configuration{key: "k", unreadable: "Secret s: forbidden"}, since: noon.Add(-time.Hour), slot: go1},
			"h1 - ConfigUnreadable 15s"},
		{"it was not followed before", configView{child: carrying(nil, ""), configuration: edited, slot: go1}, " ConfigFollowed - 0s"},
		{"it was not followed before, and something is missing", configView{child: carrying(nil, ""), configuration: configuration{key: "k", seen: "s2", hash: "h2", missing: []string{"x"}}}, " ConfigFollowed ConfigMissing 0s"},
		{"what was missing at its start has come", configView{child: carrying(&configRecord{Key: "k", Seen: "s1", Hash: "h1", Incomplete: true}, "h1"), configuration: edited, since: noon.Add(-time.Hour), slot: go1}, "h2 ConfigRestart - 0s"},
		{"the key was lost, and nothing was edited", configView{child: carrying(old, "h1"), configuration: configuration{key: "other", seen: "s1", hash: "x"}, slot: go1}, "h1 ConfigKeyChanged - 0s"},
		{"the key was lost, and something was edited", configView{child: carrying(old, "h1"), configuration: configuration{key: "other", seen: "s2", hash: "x"}, since: noon.Add(-time.Hour), slot: go1}, "x ConfigKeyLost - 0s"},
		{"the record was spoilt by hand", configView{child: func() *appsv1.StatefulSet {
			c := carrying(old, "h1")
			c.Annotations[v1alpha1.AnnotationConfigRecord] = "{"
			return c
		}(), configuration: edited}, "h1 ConfigFollowed - 0s"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := targetConfig(&row.view, noon)
			dash := func(s string) string {
				if s == "" {
					return "-"
				}
				return s
			}
			if got := w.hash + " " + dash(w.event) + " " + dash(w.reason) + " " + w.wait.String(); got != row.want {
				t.Errorf("wishes %s, want %s", got, row.want)
			}
			if (w.reason == "") != (w.message == "") {
				t.Errorf("reason %q with message %q", w.reason, w.message)
			}
			carries := row.view.child.Annotations[v1alpha1.AnnotationConfigRecord]
			if w.event == "" && w.record != carries {
				t.Errorf("writes the record %s without an event", w.record)
			}
			if w.event != "" && w.record == carries {
				t.Error("an event, and nothing is written")
			}
			// What was wished is at rest once it is written.
			after := row.view
			after.child = carrying(nil, w.hash)
			after.child.Annotations = map[string]string{v1alpha1.AnnotationConfigRecord: w.record}
			if again := targetConfig(&after, noon); w.event != "" && (again.hash != w.hash || again.record != w.record || again.event != "") {
				t.Errorf("wishes %+v when that is written", again)
			}
		})
	}
}

func TestARecordSurvivesItsAnnotation(t *testing.T) {
	want := configRecord{Key: "k", Seen: "s", Hash: "h", Incomplete: true, Restarted: &metav1.Time{Time: noon}}
	got := recordOf(carrying(&want, ""))
	if got == nil || got.String() != want.String() || !got.Restarted.Equal(want.Restarted) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestARestartIsSeenInTheStatefulSet(t *testing.T) {
	begun := &configRecord{Key: "k", Seen: "s", Hash: "h", Restarted: &metav1.Time{Time: noon}}
	for _, row := range []struct {
		sentence string
		change   func(*appsv1.StatefulSet)
		want     bool
	}{
		{"just written", func(c *appsv1.StatefulSet) { c.Generation = 2; c.Status.ObservedGeneration = 1 }, true},
		{"pods of two revisions", func(c *appsv1.StatefulSet) { c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b" }, true},
		{"all are new and Ready", func(c *appsv1.StatefulSet) { c.Status.CurrentRevision, c.Status.UpdateRevision = "b", "b" }, false},
		{"scaled to 0 meanwhile", func(c *appsv1.StatefulSet) {
			c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b"
			c.Spec.Replicas = ptr.To(int32(0))
		}, false},
		{"it goes", func(c *appsv1.StatefulSet) {
			c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b"
			c.DeletionTimestamp = &metav1.Time{Time: noon}
		}, false},
		{"pods of two revisions for another reason", func(c *appsv1.StatefulSet) {
			c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b"
			c.Annotations = nil
		}, false},
	} {
		child := carrying(begun, "h")
		row.change(child)
		if got := !restartsSince(child).IsZero(); got != row.want {
			t.Errorf("%s: restarts is %v", row.sentence, got)
		}
	}
}

func TestE16ASetThatIsNotFollowedKeepsItsPods(t *testing.T) {
	child := carrying(&configRecord{Key: "k", Seen: "s", Hash: "h"}, "h")
	if w := unfollowed(child); w.restarts(child) || w.record != "" {
		t.Errorf("wishes %+v", w)
	}
}

func TestMessagesSayWhatIsMissing(t *testing.T) {
	v := configView{child: carrying(&configRecord{Key: "k"}, ""), configuration: configuration{missing: []string{"ConfigMap a does not exist", "Secret b does not exist"}}}
	if w := targetConfig(&v, noon); !strings.Contains(w.message, "ConfigMap a") || !strings.Contains(w.message, "Secret b") {
		t.Errorf("says %q", w.message)
	}
}

func TestARestartIsNotForgottenWithTheKey(t *testing.T) {
	v := configView{child: carrying(&configRecord{Key: "k", Seen: "s1", Hash: "h1", Restarted: &metav1.Time{Time: noon}}, "h1"),
		configuration: configuration{key: "other", seen: "s1", hash: "x"}}
	after := carrying(nil, "h1")
	after.Annotations = map[string]string{v1alpha1.AnnotationConfigRecord: targetConfig(&v, noon).record}
	if r := recordOf(after); r == nil || r.Key != "other" || !r.Restarted.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("a restart is forgotten with the key: %v", r)
	}
}

// E14 what serves is not restarted beside an upgrade, which takes pods from it too.
func TestHoldsRestart(t *testing.T) {
	const held = "an upgrade is under way"
	under := func(phase v1alpha1.Phase) *v1alpha1.ExtendedStatefulSetStatus {
		return &v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1, UpdateVersion: 2, Phase: phase, Update: &v1alpha1.UpdateStatus{}}
	}
	for _, row := range []struct {
		says   string
		status *v1alpha1.ExtendedStatefulSetStatus
		number int64
		want   string
	}{
		{"no upgrade holds anything up", &v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1}, 1, ""},
		{"one that runs its job holds up what serves", under(v1alpha1.PhasePreJob), 1, held},
		{"so does one that promotes", under(v1alpha1.PhasePromoting), 1, held},
		{"but not the new version", under(v1alpha1.PhaseCanary), 2, ""},
		{"nor does one that was given up", under(v1alpha1.PhaseStale), 1, ""},
		{"or that never began", under(v1alpha1.PhaseAborted), 1, ""},
	} {
		if got := holdsRestart(row.status, row.number); got != row.want {
			t.Errorf("%s: %q, want %q", row.says, got, row.want)
		}
	}
}
