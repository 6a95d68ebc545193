package statefulcluster

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
)

// kept returns a world in which a sample has kept the third member from running for that long, as
// observe reads it; nil if the sample is not about a member.
func kept(s *causestest.Sample, age time.Duration) *facts.World {
	things := []thing{a(), b()}
	switch {
	case s.Fails:
		return nil
	case s.Refused != "":
		return seen(set("db"), append(things, refused(facts.ReasonMissing, `create pod db-f1: `+s.Refused, time.Minute))...)
	}
	third := pod("c").on("n3")
	w := seen(set("db"), append(things, third)...)
	m := w.Members[2]
	since := noon.Add(-age)
	if s.Pod != nil {
		s.Pod(m.Pod, since)
	} else {
		m.Pod.Status.Conditions[0].LastTransitionTime.Time = since
	}
	if s.Deleted { // an update waits for its deletion
		w.Set.Status.Updating = []v1alpha1.UpdatingMember{{Name: m.Name(), UID: m.Pod.UID, Revision: "now"}}
	}
	w.Causes = s.Read(noon, observe.CausesOf(w))
	return w
}

// W7: the reason why a member does not run is in condition Degraded after a minute, with a command
// that helps, and in Stalled if it needs manual intervention.
func TestW7EachCauseIsToldOf(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		w := kept(s, 70*time.Second)
		if w == nil {
			continue
		}
		set := w.Set.DeepCopy()
		set.Status = told(w)
		s.Check(t, v1alpha1.ConditionDegraded, set, set.Status.Conditions)
	}
}

// W7: a pod that stays terminating and that the set does not wait for is named in condition
// Degraded, which stays False.
func TestW7ADepartedPodThatDoesNotGoIsNamed(t *testing.T) {
	w := seen(set("db").replicas(2), a(), b(), pod("x").on("n3").going())
	w.Members[2].Pod.Finalizers = []string{"example.com/hold"}
	w.Members[2].Pod.Spec.NodeName = ""
	w.Members[2].Pod.DeletionTimestamp.Time = noon.Add(-time.Hour)
	w.Retired = map[types.UID]bool{w.Members[2].Pod.UID: true}
	known := causes.Known{}
	w.Causes = known.Read(context.Background(), causestest.Events(), noon, observe.CausesOf(w))
	const want = "False Healthy: no problems detected; pod db-x is not deleted: Terminating: it has finalizer example.com/hold; check which client set the finalizer: kubectl -n ns get pod db-x -o jsonpath='{.metadata.finalizers}'"
	if got := says(told(w), v1alpha1.ConditionDegraded); got != want {
		t.Errorf("condition Degraded is %s, want %s", got, want)
	}
}
