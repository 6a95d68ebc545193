package rules_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestW10NoMemberIsTakenDownUntried(t *testing.T) {
	const trial = "try pod rss-db-%: Trial, dry run before the pod is recreated > "
	for _, r := range []struct {
		name  string
		world *facts.World
		pod   string
	}{
		{"a secondary is stopped", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Secondary().Outdated()), "2"},
		{"the primary is stopped", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary().Outdated().Sequence("9")), "0"},
		{"the pod of an idle member is deleted", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Idle().Outdated()), "2"},
	} {
		p := rules.Decide(r.world)
		lines := strings.Join(p.Steps.Strings(), "\n")
		if !strings.HasPrefix(lines, strings.Replace(trial, "%", r.pod, 1)) {
			t.Errorf("W10 when %s, the plan is\n%s", r.name, lines)
		}
	}
	refused := fixture.With(func(w *facts.World) {
		w.RefusedDryRun = facts.RefusedDryRun{Text: "pods are forbidden: policy", At: fixture.Ago(29 * time.Second)}
	})
	fixture.Check(t, []fixture.Row{
		{"W10 no stop after a refused trial", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Secondary().Outdated(), refused), nil},
		{"W10 no deletion after a refused trial", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Idle().Outdated().Sequence("9"), refused), []string{"2: Secondary, with 0"}},
		{"W10 stop a secondary again after the refused trial expired", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Secondary().Outdated(), refused, fixture.With(func(w *facts.World) { w.Now = w.Now.Add(time.Second) })), []string{"2: Stop, with 0"}},
	})
	outdated := fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), refused)
	if c := fixture.ConditionOf(t, outdated, v1alpha1.ConditionDegraded); c.Reason != v1alpha1.ReasonWriteRefused || !strings.Contains(c.Message, "no member is stopped for the update") || !strings.Contains(c.Message, "policy") {
		t.Errorf("W10 Degraded is %+v", c)
	}
	done := fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), refused)
	if c := fixture.ConditionOf(t, done, v1alpha1.ConditionDegraded); c.Status != metav1.ConditionFalse {
		t.Errorf("W10 with nothing to recreate, Degraded is %+v", c)
	}
}

func TestW10TheTrialIsAPodOfTheStatefulSet(t *testing.T) {
	stateful := children.BuildStatefulSet(spec.WithDefaults(fixture.SetOf(3, 1)), 3, children.Hashes{})
	stateful.UID = "uid"
	pod := children.BuildPod(stateful, 2)
	owner := metav1.GetControllerOf(pod)
	switch {
	case pod.Name != "rss-db-2", pod.Spec.Hostname != "rss-db-2", pod.Spec.Subdomain != "db-svc":
		t.Errorf("the names of the pod are %s, %s, %s", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain)
	case pod.Labels["statefulset.kubernetes.io/pod-name"] != "rss-db-2", pod.Labels["apps.kubernetes.io/pod-index"] != "2":
		t.Errorf("the labels of the pod are %v", pod.Labels)
	case owner == nil || owner.Kind != "StatefulSet" || owner.UID != "uid":
		t.Errorf("the controller of the pod is %+v", owner)
	}
	for _, template := range stateful.Spec.VolumeClaimTemplates {
		var found *corev1.PersistentVolumeClaimVolumeSource
		for _, v := range pod.Spec.Volumes {
			if v.Name == template.Name {
				found = v.PersistentVolumeClaim
			}
		}
		if found == nil || found.ClaimName != template.Name+"-rss-db-2" {
			t.Errorf("the volume of claim template %s is %+v", template.Name, found)
		}
	}
}
