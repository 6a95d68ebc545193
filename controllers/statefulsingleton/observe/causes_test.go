package observe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// TestW7APodThatIsNotCreated checks that a pod that cannot be created is reported with the
// API server's last error, also after a restart of the operator, and no longer when it is
// created.
func TestW7APodThatIsNotCreated(t *testing.T) {
	set, d := fixture.LackingSet(`pods "web-1-x" is forbidden: an older reason`, 1)
	w := fixture.WorldOf(fixture.Singleton("db"))
	w.RefusedOwners = []facts.Object{set}
	r := &observe.Reader{Live: fixture.ServerOf(set, d, fixture.RefusedPod("exceeded quota: small, requested: pods=1"))}
	fixture.Look(w, r, 30*time.Second, 29*time.Second, 0)
	if got := fixture.SayingOf(w, v1.ConditionDegraded); got != fixture.NoProblem {
		t.Errorf("after 30 s: %s", got)
	}
	fixture.Look(w, r, 70*time.Second, 69*time.Second, 0)
	stalled := fixture.SayingOf(w, v1.ConditionStalled)
	if got := fixture.SayingOf(w, v1.ConditionDegraded); got != fixture.OverQuota || stalled != fixture.OverQuota {
		t.Errorf("after 60 s: %s\nStalled is %s", got, stalled)
	}
	for _, passes := range [][]time.Duration{{0}, {time.Second, 0}} { // each with an empty memory
		fixture.Look(w, r, passes...)
		if got := fixture.SayingOf(w, v1.ConditionDegraded); got != fixture.OverQuota || fixture.SayingOf(w, v1.ConditionStalled) != stalled {
			t.Errorf("after a restart of the operator: %s", got)
		}
	}
	set.Status.Conditions[0].Status = corev1.ConditionFalse
	fixture.Look(w, r, 2*time.Second, 0)
	if got := fixture.SayingOf(w, v1.ConditionDegraded); got != fixture.NoProblem {
		t.Errorf("after the pod was created: %s", got)
	}
	set, d = fixture.LackingSet(`pods "web-1-x" is forbidden: exceeded quota: small, requested: pods=1`, 1)
	w.RefusedOwners = []facts.Object{set}
	fixture.Look(w, &observe.Reader{Live: fixture.ServerOf(set, d)}, 70*time.Second, 69*time.Second, 0)
	if got := fixture.SayingOf(w, v1.ConditionDegraded); got != fixture.OverQuota {
		t.Errorf("after its events were deleted: %s", got)
	}
}

// TestW7OnePodAfterAnotherIsRefused checks that the cause is reported if a kubelet refuses
// one pod after another, each with a different name.
func TestW7OnePodAfterAnotherIsRefused(t *testing.T) {
	set, d := fixture.LackingSet("", 1)
	r, known := &observe.Reader{Live: fixture.ServerOf(set, d)}, &observe.Remembered{}
	w := fixture.WorldOf(fixture.Singleton("db"))
	for second := -80; second < 0; second += 2 {
		at := fixture.Noon.Add(time.Duration(second) * time.Second)
		next := fixture.Sampled(fixture.Waiting(fmt.Sprintf("p%d", second)))
		next.Pod.CreationTimestamp.Time = at
		next.Silent().Phase(corev1.PodPending)
		w.Pods = append(w.Pods, &next.Member)
		for range 2 { // first it has just been created, and a second later it is refused
			w.Now, w.Delay = at, facts.Delay{}
			r.ReadCauses(context.Background(), w, known)
			w.Object.Status = status.Summarize(facts.Derive(w))
			fixture.SampleOf(t, fixture.Sysctl).Pod(next.Pod, at)
			at = at.Add(time.Second)
		}
	}
	const want = "True PodFailing: pod p-2 was terminated by its Node: SysctlForbidden: forbidden sysctl"
	if got := fixture.SayingOf(w, v1.ConditionStalled); !strings.HasPrefix(got, want) {
		t.Errorf("Stalled is %s", got)
	}
}
