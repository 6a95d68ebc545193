package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// between returns a change to a pod that has crashed the given number of times, and has been Ready
// since the given time.
func between(restarts int32, ready time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		crashing(1)(pod)
		s := &pod.Status.ContainerStatuses[0]
		s.RestartCount, s.State = restarts, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-ready))}}
		pod.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-ready))}
	}
}

// young sets the age of a pod.
func young(age time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(noon.Add(-age))
		pod.Status.Conditions[0].LastTransitionTime = pod.CreationTimestamp
	}
}

func TestW17PodsOfTheVersionThatServesNeedAPerson(t *testing.T) {
	ill := func(changes ...func(*corev1.Pod)) *scene {
		s := of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2)
		for _, change := range changes {
			s.but(states(1, change))
		}
		return s
	}
	said := func(w *facts.World) {
		w.Refusals, w.RefusalsDue = nil, noon
		w.Set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPodsHindered, Message: "as before"}}
	}
	const healthy = "Healthy: no problems detected"
	for _, row := range []struct {
		name  string
		scene *scene
		want  []string
	}{
		{"W17 an image that cannot be pulled", ill(pulling), []string{"PodsHindered: pods of version 1 cannot be created or started: db-v1-0, db-v1-1, db-v1-2 (", "ImagePullBackOff", "For details: kubectl -n ns describe pod db-v1-0"}},
		{"W17 a crash loop", ill(crashing(2)), []string{"PodsHindered: ", "ended with code 2", "kubectl -n ns logs db-v1-0 --all-containers --previous"}},
		{"W17 no suitable Node", ill(homeless), []string{"PodsHindered: ", "Unschedulable", "describe pod db-v1-0"}},
		{"W17 a quota", ill().but(absent(1, "it cannot be created: exceeded quota: small")), []string{"PodsHindered: ", "exceeded quota: small", "kubectl -n ns describe statefulset db-v1", "annotate statefulset db-v1 again=1"}},
		{"W17 only one of three pods", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 2).but(func(w *facts.World) { pulling(w.Children[0].Pods[2]) }), []string{"PodsHindered: pods of version 1 cannot be created or started: db-v1-2 ("}},
		{"W17 no report before hinderedTime", ill(pulling, young(spec.HinderedTime-time.Second)), []string{healthy}},
		{"W17 a report after hinderedTime", ill(pulling, young(spec.HinderedTime)), []string{"PodsHindered: "}},
		{"W17 no report while the cause is unknown", ill(), []string{healthy}},
		{"W17 a report between two crashes", ill(between(3, time.Second)), []string{"PodsHindered: "}},
		{"W17 no report after one crash", ill(between(1, time.Second)), []string{healthy}},
		{"W17 no report when the pod has been Ready for hinderedTime", ill(between(3, spec.HinderedTime)), []string{healthy}},
		{"W17 the report is kept after a restart of the operator", ill().but(absent(1, "")).but(said), []string{"PodsHindered: as before"}},
		{"W17 no report when the pods exist", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(said), []string{healthy}},
		{"W17 no report while an upgrade may fix the pods", ill(pulling).but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady = true }).
			upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).has(2, children.Span{Start: 0, Replicas: 1}, 0), []string{healthy}},
		{"W17 a report while an upgrade waits for the pods", ill(pulling).edited(), []string{"PodsHindered: ", `. The upgrade to the present template waits for them. To upgrade anyway: kubectl -n ns patch ests db --type=merge -p '{"spec":{"updateStrategy":{"updateNotReady":true}}}'. For details: kubectl`}},
		{"W17 no report for a canary, which has its own timeout", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).has(2, children.Span{Start: 0, Replicas: 1}, 0).but(states(2, pulling)), []string{healthy}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, p := decided(row.scene.w)
			c := status.Degraded(f, p)
			for _, want := range row.want {
				if got := c.Reason + ": " + c.Message; !strings.Contains(got, want) {
					t.Errorf("got %s\nwant %s", got, want)
				}
			}
		})
	}
}

// TestW17ItIsLookedAtAgainWhenItsTimeIsOver verifies that a pass is scheduled for the end of
// HinderedTime, which has no watch event (W17).
func TestW17ItIsLookedAtAgainWhenItsTimeIsOver(t *testing.T) {
	s := of(plain()).has(1, children.Span{Start: 0, Replicas: 1}, 0)
	for _, change := range []func(*corev1.Pod){pulling, young(spec.HinderedTime - 7*time.Second)} {
		s.but(states(1, change))
	}
	if _, p := decided(s.w); p.Wait != 7*time.Second {
		t.Errorf("next pass in %s", p.Wait)
	}
}
