package statefulsingleton

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// unknown is a pod that was created so many minutes ago by an owner of an unknown kind.
func (m *memberFixture) unknown(owner, revision string, minutes int) *memberFixture {
	m.family = family{owner: types.UID(owner), name: "CloneSet " + owner, unknown: "CloneSet", revision: revision}
	return m.age(minutes)
}

// bareFor is a pod without a controller that was created so many minutes ago.
func (m *memberFixture) bareFor(minutes int) *memberFixture {
	m.family = family{unknown: noController}
	return m.age(minutes)
}

// since says when the owner of the pod came.
func (m *memberFixture) since(minutes int) *memberFixture {
	m.family.since = noon.Add(-time.Duration(minutes) * time.Minute)
	return m
}

func TestW15UnknownOwners(t *testing.T) {
	const deleted = "delete pod a: Timeout, the handover takes longer than maxTransitionTime"
	began := func() *singletonFixture {
		return singleton("db").held("a", 1).with(func(s *v1.StatefulSingleton) {
			s.Status.TransitionTimestamp, s.Spec.OnTimeout = &metav1.Time{Time: noon.Add(-301 * time.Second)}, v1.TimeoutDeletesOld
		})
	}
	check(t, []row{
		{"W15 DeleteOld deletes a pod whose unknown owner has a newer revision at its gate", worldOf(began(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "two", 5)), []string{deleted}},
		{"W15 Wait deletes no pod of an unknown owner", worldOf(singleton("db").held("a", 1), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "two", 5)), nil},
		{"W15 DeleteOld deletes no pod for a standby of the same revision", worldOf(began(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "one", 5)), nil},
		{"W15 DeleteOld deletes no pod for an older one", worldOf(began(), granted("a", 1).unknown("web", "one", 5), waiting("b").unknown("web", "two", 9)), nil},
		{"W15 DeleteOld deletes no pod for one that an older ReplicaSet recreated", worldOf(began(), granted("a", 1).unknown("new", "new", 9).since(9), waiting("b").unknown("old", "old", 1).since(20)), nil},
		{"W15 DeleteOld deletes a pod without a controller for a newer one", worldOf(began(), granted("a", 1).bareFor(9), waiting("b").bareFor(5)), []string{deleted}},
		{"W15 DeleteOld deletes no pod for one that is not at its gate", worldOf(began(), granted("a", 1).bareFor(9), waiting("b").bareFor(5).coming()), nil},
		{"W15 DeleteOld deletes no pod that was created before the object", worldOf(began(), granted("a", 1).bareFor(9).with(func(p *corev1.Pod) { p.Annotations[v1.AnnotationSingletonUID] = "another" }), waiting("b").bareFor(5)), nil},
	})
}

func TestW15UnknownOwnersAreToldOf(t *testing.T) {
	for _, r := range []struct {
		name string
		w    *world
		want string
	}{
		{"W15 a newer revision of an unknown owner", worldOf(held(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "two", 5)),
			"it is created by CloneSet web, and the operator does not know this kind of owner. To hand over: kubectl -n ns delete pod a. If it stands by, nothing has to be done"},
		{"W15 a pod without a controller", worldOf(held(), granted("a", 1).of("web"), waiting("b").bareFor(5)), "no controller owns it. To hand over: kubectl -n ns delete pod a"},
		{"W15 a standby of the same revision", worldOf(held(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "one", 5)), ""},
		{"W15 not in the first minute", worldOf(held(), granted("a", 1).bareFor(9), waiting("b").bareFor(5).heldFor(59*time.Second)), ""},
		{"W15 after a minute", worldOf(held(), granted("a", 1).bareFor(9), waiting("b").bareFor(5).heldFor(60*time.Second)), "no controller owns it"},
		{"W15 a pod that is being deleted is replaced", worldOf(held(), granted("a", 1).bareFor(9).deleted(), waiting("b").bareFor(5)), ""},
	} {
		s := summarize(derive(r.w))
		c := meta.FindStatusCondition(s.Conditions, v1.ConditionRolloutHeld)
		if r.want == "" && c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, r.want) {
			t.Errorf("%s: %s %s", r.name, c.Status, c.Message)
		}
	}
}

func TestW15WhichOwnersAreUnknown(t *testing.T) {
	owner := func(kind string) *metav1.OwnerReference {
		return &metav1.OwnerReference{Kind: kind, Name: "web", UID: "uid"}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "set", UID: "set"}}
	for want, is := range map[string]family{
		"":           unknownFamily(&pod().Pod, owner("DaemonSet")),
		"CloneSet":   unknownFamily(&pod().Pod, owner("CloneSet")),
		"ReplicaSet": unknownReplicaSet(set, nil),
		"Rollout":    unknownReplicaSet(set, owner("Rollout")),
	} {
		if is.unknown != want {
			t.Errorf("%q: %+v", want, is)
		}
	}
}
