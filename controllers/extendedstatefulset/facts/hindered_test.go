package facts_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// between returns a change to a pod that has crashed the given number of times, and has been Ready
// since the given time.
func between(restarts int32, ready time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		fixture.Crashing(1)(pod)
		s := &pod.Status.ContainerStatuses[0]
		s.RestartCount, s.State = restarts, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(fixture.Noon.Add(-ready))}}
		pod.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(fixture.Noon.Add(-ready))}
	}
}

// young sets the age of a pod.
func young(age time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(-age))
		pod.Status.Conditions[0].LastTransitionTime = pod.CreationTimestamp
	}
}

func TestW17PodsOfTheVersionThatServesNeedAPerson(t *testing.T) {
	ill := func(changes ...func(*corev1.Pod)) *fixture.Scene {
		s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2)
		for _, change := range changes {
			s.But(fixture.States(1, change))
		}
		return s
	}
	said := func(w *facts.World) {
		w.Refusals, w.RefusalsDue = nil, fixture.Noon
		w.Set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPodsHindered, Message: "as before"}}
	}
	const healthy = "Healthy: no problems detected"
	for _, row := range []struct {
		name  string
		scene *fixture.Scene
		want  []string
	}{
		{"W17 an image that cannot be pulled", ill(fixture.Pulling), []string{"PodsHindered: pods of version 1 cannot be created or started: db-v1-0, db-v1-1, db-v1-2 (", "ImagePullBackOff", "For details: kubectl -n ns describe pod db-v1-0"}},
		{"W17 a crash loop", ill(fixture.Crashing(2)), []string{"PodsHindered: ", "ended with code 2", "kubectl -n ns logs db-v1-0 --all-containers --previous"}},
		{"W17 no suitable Node", ill(fixture.Homeless), []string{"PodsHindered: ", "Unschedulable", "describe pod db-v1-0"}},
		{"W17 a quota", ill().But(fixture.Absent(1, "it cannot be created: exceeded quota: small")), []string{"PodsHindered: ", "exceeded quota: small", "kubectl -n ns describe statefulset db-v1", "annotate statefulset db-v1 again=1"}},
		{"W17 only one of three pods", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2).But(func(w *facts.World) { fixture.Pulling(w.Children[0].Pods[2]) }), []string{"PodsHindered: pods of version 1 cannot be created or started: db-v1-2 ("}},
		{"W17 no report before hinderedTime", ill(fixture.Pulling, young(spec.HinderedTime-time.Second)), []string{healthy}},
		{"W17 a report after hinderedTime", ill(fixture.Pulling, young(spec.HinderedTime)), []string{"PodsHindered: "}},
		{"W17 no report while the cause is unknown", ill(), []string{healthy}},
		{"W17 a report between two crashes", ill(between(3, time.Second)), []string{"PodsHindered: "}},
		{"W17 no report after one crash", ill(between(1, time.Second)), []string{healthy}},
		{"W17 no report when the pod has been Ready for hinderedTime", ill(between(3, spec.HinderedTime)), []string{healthy}},
		{"W17 the report is kept after a restart of the operator", ill().But(fixture.Absent(1, "")).But(said), []string{"PodsHindered: as before"}},
		{"W17 no report when the pods exist", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(said), []string{healthy}},
		{"W17 no report while an upgrade may fix the pods", ill(fixture.Pulling).But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady = true }).
			Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0), []string{healthy}},
		{"W17 a report while an upgrade waits for the pods", ill(fixture.Pulling).Edited(), []string{"PodsHindered: ", `. The upgrade to the present template waits for them. To upgrade anyway: kubectl -n ns patch ests db --type=merge -p '{"spec":{"updateStrategy":{"updateNotReady":true}}}'. For details: kubectl`}},
		{"W17 no report for a canary, which has its own timeout", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).But(fixture.States(2, fixture.Pulling)), []string{healthy}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, p := fixture.Decided(row.scene.W)
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
	s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 1}, 0)
	for _, change := range []func(*corev1.Pod){fixture.Pulling, young(spec.HinderedTime - 7*time.Second)} {
		s.But(fixture.States(1, change))
	}
	if _, p := fixture.Decided(s.W); p.Wait != 7*time.Second {
		t.Errorf("next pass in %s", p.Wait)
	}
}
