package causes_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// causeOf returns the cause of a sample that has lasted for 70 s.
func causeOf(s *causestest.Sample) causes.Found {
	switch {
	case s.Refused != "":
		trail := causes.Trail{}
		trail.Follow("db-0", nil, causes.Refused(s.Refused), now.Add(-70*time.Second))
		return trail.Follow("db-0", nil, causes.Refused(s.Refused), now)
	case s.Fails:
		return causes.Found{Cause: causes.Cause{Word: causes.StartFails, Detail: "start failed with exit code 1"}, Lasts: true}
	}
	pod, told := &corev1.Pod{}, causes.InEvents([]corev1.Event{s.Told})
	if s.Pod != nil {
		s.Pod(pod, now.Add(-70*time.Second))
	} else {
		pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(now.Add(-70*time.Second)), "n1"
	}
	if s.Deleted {
		return causes.Found{Cause: causes.Stuck(pod, now), Lasts: true}
	}
	return causes.Trail{}.Follow("db-0", pod, told, now)
}

// W7: each row of the table has a sample that is recognized, and a command to resolve it.
func TestW7EachSituationIsSeen(t *testing.T) {
	seen := map[string]bool{}
	for i := range causestest.All {
		s := &causestest.All[i]
		found := causeOf(s)
		if got := found.Situation(); got != s.Situation {
			t.Errorf("%s: classified as %q (%s)", s.Situation, got, found)
		}
		if !found.Lasts {
			t.Errorf("%s: ignored after more than a minute", s.Situation)
		}
		says := found.Tell("member db-0", "shop", "db-0")
		if !strings.HasPrefix(says, "member db-0 ") || !strings.Contains(says, s.Shows) || !strings.Contains(says, ": kubectl ") {
			t.Errorf("%s: got %q, want %q and a command", s.Situation, says, s.Shows)
		}
		seen[s.Situation] = true
	}
	for _, row := range causes.Rows {
		if !seen[row.Situation] && !strings.HasPrefix(row.Seen, "conditions of the Job") { // TestW18ConditionsSayWhoSuspendsAJob
			t.Errorf("%s: no sample", row.Situation)
		}
	}
	if len(causes.Rows) < 40 {
		t.Errorf("%d situations", len(causes.Rows))
	}
}

// A starting pod has no cause, and neither has a pod that was Ready before its deletion.
func TestNothingIsSaidOfAPodThatStarts(t *testing.T) {
	pod := &corev1.Pod{}
	pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(now), "n1"
	trail := causes.Trail{}
	if found := trail.Follow("db-0", pod, causes.Cause{}, now.Add(time.Hour)); found.Known() || found.Lasts {
		t.Errorf("the first pass has cause %v", found)
	}
	deleted := metav1.NewTime(now)
	pod.DeletionTimestamp = &deleted
	if got := causes.Stuck(pod, now.Add(time.Second)); got.Known() {
		t.Errorf("a pod that was just deleted: %v", got)
	}
}

// A cause counts after a minute. It ends when the pod is Ready, and continues while one pod after
// another is rejected.
func TestTrail(t *testing.T) {
	sample := func(situation string) *causestest.Sample {
		for i := range causestest.All {
			if causestest.All[i].Situation == situation {
				return &causestest.All[i]
			}
		}
		t.Fatalf("no sample of %s", situation)
		return nil
	}
	pod := func(situation string, created time.Time) *corev1.Pod {
		p := &corev1.Pod{}
		sample(situation).Pod(p, created)
		return p
	}
	fresh := func(created time.Time) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	}
	follow := func(trail causes.Trail, p *corev1.Pod, at time.Duration) causes.Found {
		return trail.Follow("db-0", p, causes.Cause{}, now.Add(at))
	}
	image, sysctl := "the image cannot be pulled: it is missing, or its registry refuses access", "the kubelet does not allow a sysctl"

	trail := causes.Trail{}
	if f := follow(trail, pod(image, now), 20*time.Second); f.Lasts || f.Again != 40*time.Second || f.Word != "ImagePullBackOff" {
		t.Errorf("after 20 s: %+v", f)
	}
	if f := follow(trail, pod(image, now), time.Minute); !f.Lasts {
		t.Errorf("after a minute: %+v", f)
	}
	if f := follow(trail, fresh(now.Add(5*time.Minute)), 5*time.Minute); f.Known() {
		t.Errorf("the pod was replaced by a starting pod: %+v", f)
	}

	trail = causes.Trail{} // the kubelet rejects one pod per second
	var last causes.Found
	for i := range 40 {
		created := time.Duration(i) * 2 * time.Second
		last = follow(trail, fresh(now.Add(created)), created)
		if i > 1 && last.Word != "SysctlForbidden" {
			t.Fatalf("a new pod after %v: %+v", created, last)
		}
		last = follow(trail, pod(sysctl, now.Add(created)), created+time.Second)
	}
	if !last.Lasts {
		t.Errorf("creates were refused for more than a minute: %+v", last)
	}
	if f := follow(trail, fresh(now.Add(81*time.Second)), 81*time.Second); !f.Lasts || f.Again <= 0 {
		t.Errorf("a new pod immediately afterwards: %+v", f)
	}
	if f := follow(trail, fresh(now.Add(81*time.Second)), 2*time.Minute); f.Known() {
		t.Errorf("a new Ready pod: %+v", f)
	}
}
