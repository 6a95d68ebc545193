package facts_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestW15WhichOwnersAreUnknown(t *testing.T) {
	owner := func(kind string) *metav1.OwnerReference {
		return &metav1.OwnerReference{Kind: kind, Name: "web", UID: "uid"}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "set", UID: "set"}}
	for want, is := range map[string]facts.Family{
		"":           facts.UnknownFamily(&fixture.Pod().Pod, owner("DaemonSet")),
		"CloneSet":   facts.UnknownFamily(&fixture.Pod().Pod, owner("CloneSet")),
		"ReplicaSet": facts.UnknownReplicaSet(set, nil),
		"Rollout":    facts.UnknownReplicaSet(set, owner("Rollout")),
	} {
		if is.Unknown != want {
			t.Errorf("%q: %+v", want, is)
		}
	}
}
