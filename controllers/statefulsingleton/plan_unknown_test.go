package statefulsingleton

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// unknown makes the pod one that an owner of an unknown kind created that many minutes ago.
func (m *memberFixture) unknown(owner, revision string, minutes int) *memberFixture {
	m.Family = facts.Family{Owner: types.UID(owner), Name: "CloneSet " + owner, Unknown: "CloneSet", Revision: revision}
	return m.age(minutes)
}

// bareFor makes the pod one without a controller that was created that many minutes ago.
func (m *memberFixture) bareFor(minutes int) *memberFixture {
	m.Family = facts.Family{Unknown: facts.NoController}
	return m.age(minutes)
}

// since sets when the ReplicaSet of the pod was created.
func (m *memberFixture) since(minutes int) *memberFixture {
	m.Family.Since = noon.Add(-time.Duration(minutes) * time.Minute)
	return m
}

func TestW15UnknownOwners(t *testing.T) {
	const deleted = "patch status of statefulsingleton db: Replaced, a > delete pod a: Timeout, the handover takes longer than maxTransitionTime"
	began := func() *singletonFixture {
		return singleton("db").held("a", 1).with(func(s *v1.StatefulSingleton) {
			s.Status.TransitionTimestamp, s.Spec.OnTimeout = &metav1.Time{Time: noon.Add(-301 * time.Second)}, v1.TimeoutDeletesOld
		})
	}
	check(t, []row{
		{"W15 DeleteOld deletes a pod whose unknown owner has a newer revision at its gate", worldOf(began(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "two", 5)), []string{deleted}},
		{"W15 Wait deletes no pod of an unknown owner", worldOf(singleton("db").held("a", 1), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "two", 5)), nil},
		{"W15 DeleteOld deletes no pod for a standby of the same revision", worldOf(began(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "one", 5)), nil},
		{"W15 DeleteOld deletes no pod for an older pod", worldOf(began(), granted("a", 1).unknown("web", "one", 5), waiting("b").unknown("web", "two", 9)), nil},
		{"W15 DeleteOld deletes no pod for a pod that an older ReplicaSet recreated", worldOf(began(), granted("a", 1).unknown("new", "new", 9).since(9), waiting("b").unknown("old", "old", 1).since(20)), nil},
		{"W15 DeleteOld deletes a pod without a controller for a newer pod", worldOf(began(), granted("a", 1).bareFor(9), waiting("b").bareFor(5)), []string{deleted}},
		{"W15 DeleteOld deletes no pod for a pod that is not at its gate", worldOf(began(), granted("a", 1).bareFor(9), waiting("b").bareFor(5).coming()), nil},
		{"W15 DeleteOld deletes no pod that was created before the object", worldOf(began(), granted("a", 1).bareFor(9).with(func(p *corev1.Pod) { p.Annotations[v1.AnnotationSingletonUID] = "another" }), waiting("b").bareFor(5)), nil},
	})
}

// replaced returns an object with onTimeout DeleteOld and a late handover, which has
// deleted a pod of revision one of web for another pod.
func replaced(change func(*v1.ReplacedPod)) *singletonFixture {
	entry := v1.ReplacedPod{Name: "a", Owner: "web", Revision: "one", For: "b", DeletedAt: metav1.NewTime(noon.Add(-3 * time.Hour))}
	change(&entry)
	return singleton("db").held("b", 2).with(func(s *v1.StatefulSingleton) {
		s.Spec.OnTimeout, s.Status.Replaced = v1.TimeoutDeletesOld, []v1.ReplacedPod{entry}
		s.Status.TransitionTimestamp = &metav1.Time{Time: noon.Add(-301 * time.Second)}
	})
}

func TestW15UnknownOwnersDoNotTakeTurns(t *testing.T) {
	const deletes = "patch status of statefulsingleton db: Replaced, b > delete pod b: Timeout, the handover takes longer than maxTransitionTime"
	as := func(change func(*v1.ReplacedPod)) *facts.World {
		return worldOf(replaced(change), granted("b", 2).unknown("web", "two", 9), waiting("a").unknown("web", "one", 5))
	}
	missing := func(minutes int) func(*v1.ReplacedPod) {
		return func(r *v1.ReplacedPod) {
			r.MissingSince = &metav1.Time{Time: noon.Add(-time.Duration(minutes) * time.Minute)}
		}
	}
	many := replaced(missing(9)).with(func(s *v1.StatefulSingleton) {
		for len(s.Status.Replaced) < facts.MaxReplaced {
			s.Status.Replaced = append(s.Status.Replaced, *s.Status.Replaced[0].DeepCopy())
		}
	})
	check(t, []row{
		{"W15 DeleteOld deletes no pod for a revision that it has replaced", as(func(*v1.ReplacedPod) {}), nil},
		{"W15 DeleteOld deletes a pod for another revision of the owner", as(func(r *v1.ReplacedPod) { r.Revision = "zero" }), []string{deletes}},
		{"W15 DeleteOld deletes a pod for the same revision of another owner", as(func(r *v1.ReplacedPod) { r.Owner = "other" }), []string{deletes}},
		{"W15 DeleteOld deletes no pod for a revision that was recreated within an hour", as(missing(64)), nil},
		{"W15 DeleteOld deletes a pod for a revision that was recreated after an hour", as(missing(65)), []string{deletes}},
		{"W15 DeleteOld deletes a pod for the successor of the running revision although the successor was replaced before", worldOf(replaced(func(*v1.ReplacedPod) {}), granted("b", 2).unknown("web", "one", 9), waiting("c").unknown("web", "two", 5)), []string{deletes}},
		{"W15 DeleteOld deletes no pod for a bare pod with the name of a replaced one",
			worldOf(replaced(func(r *v1.ReplacedPod) { r.Owner, r.Revision = "", "a" }), granted("b", 2).bareFor(9), waiting("a").bareFor(5)), nil},
		{"W15 DeleteOld deletes no pod for a bare pod with the generateName of a replaced one",
			worldOf(replaced(func(r *v1.ReplacedPod) { r.Owner, r.Revision = "", "a-" }), granted("b", 2).bareFor(9), waiting("a-2").bareFor(5).with(func(p *corev1.Pod) { p.GenerateName = "a-" })), nil},
		{"W15 DeleteOld deletes no more pods than status.replaced can hold", worldOf(many, granted("b", 2).unknown("web", "two", 9), waiting("c").unknown("web", "three", 5)), nil},
	})
}

// TestW15CompetingRevisionsComeToRest checks that two revisions do not replace each other
// forever, even if each is recreated at once and every handover times out.
func TestW15CompetingRevisionsComeToRest(t *testing.T) {
	object := singleton("db").held("pod-1", 1).with(func(s *v1.StatefulSingleton) {
		s.Spec.OnTimeout, s.Status.TransitionTimestamp = v1.TimeoutDeletesOld, &metav1.Time{Time: noon.Add(-301 * time.Second)}
	})
	runs, waits := "one", "two"
	for deleted := 0; ; deleted++ {
		w := worldOf(object, granted("pod-1", 1).unknown("web", runs, 9), waiting("b").unknown("web", waits, 5))
		f := facts.Derive(w)
		steps := rules.Decide(f).Steps
		if len(steps) == 0 {
			c := meta.FindStatusCondition(status.Summarize(f).Conditions, v1.ConditionRolloutHeld)
			if c.Reason != v1.ReasonOwnersCompete || !strings.Contains(c.Message, "pod b of CloneSet web waits at its gate for pod pod-1 of CloneSet web to stop") {
				t.Errorf("after %d deletions: %s %s", deleted, c.Reason, c.Message)
			}
			if f.Late || f.Handover || deleted != 1 {
				t.Errorf("after %d deletions: handover %t, late %t", deleted, f.Handover, f.Late)
			}
			return
		}
		if deleted == 4 {
			t.Fatalf("the revisions alternate: %q", steps.Strings())
		}
		object.Status.Replaced = steps[0][0][0].Object.(*v1.StatefulSingleton).Status.Replaced
		runs, waits = waits, runs
	}
}

func TestW15ReplacedPodsAreForgotten(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(-time.Duration(minutes) * time.Minute)}
	}
	is := func(since *metav1.Time) func(*v1.ReplacedPod) {
		return func(r *v1.ReplacedPod) { r.MissingSince = since }
	}
	other := granted("b", 2).unknown("web", "two", 9)
	for _, r := range []struct {
		name string
		w    *facts.World
		want []*metav1.Time
	}{
		{"W15 a pod that exists is not missing", worldOf(replaced(is(nil)), other, waiting("a").unknown("web", "one", 5)), []*metav1.Time{nil}},
		{"W15 a replaced pod that was deleted is missing from now on", worldOf(replaced(is(nil)), other), []*metav1.Time{{Time: noon}}},
		{"W15 a replaced pod that was recreated is not missing", worldOf(replaced(is(at(30))), other, waiting("a").unknown("web", "one", 5)), []*metav1.Time{nil}},
		{"W15 a missing pod stays recorded for an hour", worldOf(replaced(is(at(59))), other), []*metav1.Time{at(59)}},
		{"W15 a pod that has been missing for an hour is removed from the record", worldOf(replaced(is(at(60))), other), nil},
		{"W15 a pod that was recreated after an hour is removed from the record", worldOf(replaced(is(at(66))), other, waiting("a").unknown("web", "one", 5)), nil},
		{"W15 the record is cleared with onTimeout Wait", worldOf(replaced(is(nil)).with(func(s *v1.StatefulSingleton) { s.Spec.OnTimeout = v1.TimeoutWaits }), other, waiting("a").unknown("web", "one", 5)), nil},
	} {
		kept := status.Summarize(facts.Derive(r.w)).Replaced
		if len(kept) != len(r.want) {
			t.Errorf("%s: %+v", r.name, kept)
			continue
		}
		for i, since := range r.want {
			if !kept[i].MissingSince.Equal(since) {
				t.Errorf("%s: missing since %s, want %s", r.name, kept[i].MissingSince, since)
			}
		}
	}
}

func TestW15UnknownOwnersAreToldOf(t *testing.T) {
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"W15 a newer revision of an unknown owner is reported", worldOf(held(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "two", 5)),
			"it is owned by CloneSet web, and the operator does not support this kind of owner. To hand over: kubectl -n ns delete pod a. If it is a standby, no action is needed"},
		{"W15 a pod without a controller is reported", worldOf(held(), granted("a", 1).of("web"), waiting("b").bareFor(5)), "no controller owns it. To hand over: kubectl -n ns delete pod a"},
		{"W15 a standby of the same revision is not reported", worldOf(held(), granted("a", 1).unknown("web", "one", 9), waiting("b").unknown("web", "one", 5)), ""},
		{"W15 a waiting pod is not reported in the first minute", worldOf(held(), granted("a", 1).bareFor(9), waiting("b").bareFor(5).heldFor(59*time.Second)), ""},
		{"W15 a waiting pod is reported after a minute", worldOf(held(), granted("a", 1).bareFor(9), waiting("b").bareFor(5).heldFor(60*time.Second)), "no controller owns it"},
		{"W15 a terminating pod is being replaced", worldOf(held(), granted("a", 1).bareFor(9).deleted(), waiting("b").bareFor(5)), ""},
	} {
		s := status.Summarize(facts.Derive(r.w))
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
	for want, is := range map[string]facts.Family{
		"":           facts.UnknownFamily(&pod().Pod, owner("DaemonSet")),
		"CloneSet":   facts.UnknownFamily(&pod().Pod, owner("CloneSet")),
		"ReplicaSet": facts.UnknownReplicaSet(set, nil),
		"Rollout":    facts.UnknownReplicaSet(set, owner("Rollout")),
	} {
		if is.Unknown != want {
			t.Errorf("%q: %+v", want, is)
		}
	}
}
