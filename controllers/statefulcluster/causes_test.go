package statefulcluster

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
)

// kept returns a world in which a sample has kept the third member from running for that long, as
// observe reads it; nil if the sample is not about a member.
func kept(s *causestest.Sample, age time.Duration) *world {
	things := []thing{a(), b()}
	switch {
	case s.Fails:
		return nil
	case s.Refused != "":
		return seen(set("db"), append(things, refused(reasonMissing, `create pod db-f1: `+s.Refused, time.Minute))...)
	}
	third := pod("c").on("n3")
	w := seen(set("db"), append(things, third)...)
	m := w.members[2]
	since := noon.Add(-age)
	if s.Pod != nil {
		s.Pod(m.pod, since)
	} else {
		m.pod.Status.Conditions[0].LastTransitionTime.Time = since
	}
	if s.Deleted { // an update waits for its deletion
		w.set.Status.Updating = []v1alpha1.UpdatingMember{{Name: m.name(), UID: m.pod.UID, Revision: "now"}}
	}
	w.causes = s.Read(noon, causesOf(w))
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
		set := w.set.DeepCopy()
		set.Status = told(w)
		s.Check(t, v1alpha1.ConditionDegraded, set, set.Status.Conditions)
	}
}

// W7: a pod that stays terminating and that the set does not wait for is named in condition
// Degraded, which stays False.
func TestW7ADepartedPodThatDoesNotGoIsNamed(t *testing.T) {
	w := seen(set("db").replicas(2), a(), b(), pod("x").on("n3").going())
	w.members[2].pod.Finalizers = []string{"example.com/hold"}
	w.members[2].pod.Spec.NodeName = ""
	w.members[2].pod.DeletionTimestamp.Time = noon.Add(-time.Hour)
	w.retired = map[types.UID]bool{w.members[2].pod.UID: true}
	known := causes.Known{}
	w.causes = known.Read(context.Background(), causestest.Events(), noon, causesOf(w))
	const want = "False Healthy: no problems detected; pod db-x is not deleted: Terminating: it has finalizer example.com/hold; check which client set the finalizer: kubectl -n ns get pod db-x -o jsonpath='{.metadata.finalizers}'"
	if got := says(told(w), v1alpha1.ConditionDegraded); got != want {
		t.Errorf("condition Degraded is %s, want %s", got, want)
	}
}
