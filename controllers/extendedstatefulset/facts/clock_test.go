package facts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

func TestSoonest(t *testing.T) {
	for _, row := range []struct{ a, b, want time.Duration }{
		{0, 0, 0}, {time.Second, 0, time.Second}, {0, time.Second, time.Second}, {-time.Second, time.Minute, time.Minute},
		{time.Minute, time.Second, time.Second}, {-time.Second, -time.Minute, 0},
	} {
		if got := facts.Soonest(row.a, row.b); got != row.want {
			t.Errorf("the soonest of %s and %s is %s, want %s", row.a, row.b, got, row.want)
		}
	}
}

func TestClock(t *testing.T) {
	readyFor := func(d time.Duration) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(fixture.Noon.Add(-d))}}}}
	}
	minReady := &v1alpha1.ExtendedStatefulSetSpec{}
	minReady.Template.Spec.MinReadySeconds = 30
	hasty := &v1alpha1.ExtendedStatefulSetSpec{}
	hasty.UpdateStrategy.CanaryWatchTime = &metav1.Duration{Duration: 4 * time.Second}
	away := leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(-5 * time.Second), To: fixture.Noon}}}
	for _, row := range []struct {
		says              string
		clock             facts.Clock
		ready             time.Duration
		available, proven bool
	}{
		{"a pod that was Ready for ten seconds is good", facts.Clock{Now: fixture.Noon, Watch: leadership.Watch{}, Spec: &v1alpha1.ExtendedStatefulSetSpec{}}, 10 * time.Second, true, true},
		{"a pod that was Ready for less than ten seconds is not good", facts.Clock{Now: fixture.Noon, Watch: leadership.Watch{}, Spec: &v1alpha1.ExtendedStatefulSetSpec{}}, 10*time.Second - 1, true, false},
		{"a pod is not good if the operator was down in that time", facts.Clock{Now: fixture.Noon, Watch: away, Spec: &v1alpha1.ExtendedStatefulSetSpec{}}, 10 * time.Second, true, false},
		{"a pod that was Ready for less than minReadySeconds is not available", facts.Clock{Now: fixture.Noon, Watch: leadership.Watch{}, Spec: minReady}, 10 * time.Second, false, false},
		{"a pod that was Ready for minReadySeconds is good", facts.Clock{Now: fixture.Noon, Watch: leadership.Watch{}, Spec: minReady}, 30 * time.Second, true, true},
		{"half of a short canaryWatchTime is enough", facts.Clock{Now: fixture.Noon, Watch: leadership.Watch{}, Spec: hasty}, 2 * time.Second, true, true},
	} {
		pod := readyFor(row.ready)
		if available, proven := row.clock.Available(pod), row.clock.Proven(pod); available != row.available || proven != row.proven {
			t.Errorf("%s: available %v, proven %v; want %v, %v", row.says, available, proven, row.available, row.proven)
		}
	}
}
