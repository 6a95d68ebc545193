package children_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestNothingActsInATrial(t *testing.T) {
	set := fixture.SetOf(3, 1)
	set.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "1m"}
	trial, err := children.NewTrial(set, 2)
	if err != nil {
		t.Fatal(err)
	}
	sts, owners := trial.StatefulSet, slices.Clone(trial.StatefulSet.OwnerReferences)
	for _, service := range trial.Services {
		owners = append(owners, service.OwnerReferences...)
		if service.Spec.Selector[v1alpha1.LabelApp] != sts.Spec.Template.Labels[v1alpha1.LabelApp] {
			t.Errorf("Service %s selects %v, and the pods have %v", service.Name, service.Spec.Selector, sts.Spec.Template.Labels)
		}
	}
	if *sts.Spec.Replicas != 2 || len(sts.Spec.Template.Finalizers)+len(owners) > 0 {
		t.Errorf("%d pods with finalizers %v, owners %v; want 2 pods without finalizers and owners", *sts.Spec.Replicas, sts.Spec.Template.Finalizers, owners)
	}
	if trial.Container != "main" || trial.Timeouts["stop"] != time.Minute || len(trial.Services) != 4 || trial.Services[0].Name != sts.Spec.ServiceName {
		t.Errorf("container %q, stop within %s, %d Services, the first that of %q", trial.Container, trial.Timeouts["stop"], len(trial.Services), sts.Spec.ServiceName)
	}
	delete(set.Spec.Pod.Commands, "status")
	if _, err := children.NewTrial(set, 2); err == nil {
		t.Error("a trial is built for a set without the command status")
	}
}
