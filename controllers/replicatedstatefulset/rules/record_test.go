package rules_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// newAgent is the agent of an upgraded operator.
var newAgent = v1alpha1.AgentStatus{Image: "registry/operator:2", Mount: v1alpha1.AgentImageVolume}

// changed changes the spec after the children were built.
func changed(change func(*v1alpha1.ReplicatedStatefulSet)) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		set := fixture.PostgreSQL(change)
		set.ObjectMeta = *w.Set.ObjectMeta.DeepCopy()
		set.Status = w.Set.Status
		w.Set = spec.WithDefaults(set)
	})
}

func image(s *v1alpha1.ReplicatedStatefulSet) {
	s.Spec.Pod.Containers[0].Image = "docker.io/library/postgres:17.1"
}

func cpu(s *v1alpha1.ReplicatedStatefulSet) {
	s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

func inPlace(change func(*v1alpha1.ReplicatedStatefulSet)) func(*v1alpha1.ReplicatedStatefulSet) {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{InPlace: v1alpha1.InPlaceResources}
		change(s)
	}
}

// TestTheAgentChangesWithTheNextRolloutOnly lists when the agent of an upgraded operator gets into the
// pods, and that it is on record before the StatefulSet has it.
func TestTheAgentChangesWithTheNextRolloutOnly(t *testing.T) {
	unpinned := fixture.With(func(w *facts.World) { w.Set.Status.Agent, w.Stateful = nil, nil })
	running := []fixture.Thing{fixture.EpochOne, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()}
	for _, row := range []struct {
		name   string
		things []fixture.Thing
		want   string // the image to be recorded, "none", or "" for no change
		builds bool   // the StatefulSet is created or changed
	}{
		{"a new set", []fixture.Thing{unpinned, fixture.AgentNow(newAgent)}, newAgent.Image, false},
		{"a new set while the image is unknown", []fixture.Thing{unpinned}, "", false},
		{"nothing changes", append(running, fixture.AgentNow(fixture.Agent)), "", false},
		{"an upgrade of the operator", append(running, fixture.AgentNow(newAgent)), "", false},
		{"another mount of the same image", append(running, fixture.AgentNow(v1alpha1.AgentStatus{Image: fixture.AgentImage, Mount: v1alpha1.AgentInitContainer})), "", false},
		{"a rollout without an upgrade", append(running, fixture.AgentNow(fixture.Agent), changed(image)), "", true},
		{"an upgrade, and then a rollout", append(running, fixture.AgentNow(newAgent), changed(image)), newAgent.Image, false},
		{"a rollout while the image is unknown", append(running, changed(image)), "", true},
		{"an upgrade, and then a change in place", append(running, fixture.AgentNow(newAgent), changed(inPlace(cpu))), "", true},
		{"an upgrade, and then a change that is not in place", append(running, fixture.AgentNow(newAgent), changed(cpu)), newAgent.Image, false},
		{"an upgrade, and then a change of the image with inPlace", append(running, fixture.AgentNow(newAgent), changed(inPlace(image))), newAgent.Image, false},
		{"an upgrade of a stopped set", []fixture.Thing{fixture.AgentNow(newAgent), fixture.With(func(w *facts.World) { w.Stateful.Spec.Replicas = new(int32(0)) })}, newAgent.Image, false},
		{"a set without spec.application", append(running, fixture.With(func(w *facts.World) { w.Set.Spec.Application = nil })), "none", false},
		{"a set that is being deleted", append(running, fixture.AgentNow(newAgent), changed(image), fixture.With(func(w *facts.World) { w.Set.DeletionTimestamp = new(fixture.MetaTime(0)) })), "", false},
		{"an invalid set", append(running, fixture.AgentNow(newAgent), changed(image), fixture.With(func(w *facts.World) { w.Invalid = "invalid" })), "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := fixture.WorldOf(fixture.PostgreSQL(), row.things...)
			got, builds := "", false
			for _, step := range rules.Decide(w).Steps {
				for _, a := range slices.Concat(step...) {
					if a.Reason == facts.ReasonAgent {
						got = recorded(a)
					}
					builds = builds || a.Reason == facts.ReasonTemplate || a.Verb == action.Create && a.Object.GetName() == spec.StatefulSetName(w.Set)
				}
			}
			if got != row.want || builds != row.builds {
				t.Errorf("recorded: %q, want %q; the StatefulSet is written: %v, want %v", got, row.want, builds, row.builds)
			}
		})
	}
}

// recorded returns the image that a write records.
func recorded(a action.Action) string {
	if agent := a.Object.(*v1alpha1.ReplicatedStatefulSet).Status.Agent; agent != nil {
		return agent.Image
	}
	return "none"
}

// TestARecordMustBeStored tests that no command is sent if the API server does not store a part of the record on
// which decisions depend, because the CRD is older than the operator.
func TestARecordMustBeStored(t *testing.T) {
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Idle().Sequence("9")))
	var chain action.Chain
	for _, c := range slices.Concat(p.Steps...) {
		if c[len(c)-1].Verb == action.Exec && c[len(c)-1].Command.Name == v1alpha1.CommandSeed {
			chain = c
		}
	}
	if len(chain) < 2 || chain[0].Verb != action.PatchStatus || chain[0].Verify == nil {
		t.Fatalf("the plan is %q", fixture.Gist(&p))
	}
	for _, row := range []struct {
		name  string
		prune func(*v1alpha1.ReplicatedStatefulSetStatus)
		want  string
	}{
		{"all is stored", func(*v1alpha1.ReplicatedStatefulSetStatus) {}, ""},
		{"a field that no decision depends on", func(s *v1alpha1.ReplicatedStatefulSetStatus) { s.Sequences, s.Selector = nil, "" }, ""},
		{"the grants", func(s *v1alpha1.ReplicatedStatefulSetStatus) { s.Grants = nil }, "status.grants"},
		{"a field of a grant", func(s *v1alpha1.ReplicatedStatefulSetStatus) { s.Grants[0].Epoch = 0 }, "status.grants[].epoch"},
		{"a field of a command", func(s *v1alpha1.ReplicatedStatefulSetStatus) { s.Commands[0].ContainerID = "" }, "status.commands[].containerID"},
	} {
		stored := chain[0].Object.DeepCopyObject().(*v1alpha1.ReplicatedStatefulSet)
		row.prune(&stored.Status)
		err := chain[0].Verify(stored)
		if (err != nil) != (row.want != "") || (err != nil && !strings.Contains(err.Error(), "did not store "+row.want+":")) {
			t.Errorf("%s: the error is %v, want %q", row.name, err, row.want)
		}
	}
}
