package rules_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestW15UnknownOwners(t *testing.T) {
	const deleted = "patch status of statefulsingleton db: Replaced, a > delete pod a: Timeout, the handover takes longer than maxTransitionTime"
	began := func() *fixture.SingletonFixture {
		return fixture.Singleton("db").Held("a", 1).With(func(s *v1.StatefulSingleton) {
			s.Status.TransitionTimestamp, s.Spec.OnTimeout = &metav1.Time{Time: fixture.Noon.Add(-301 * time.Second)}, v1.TimeoutDeletesOld
		})
	}
	fixture.Check(t, []fixture.Row{
		{"W15 DeleteOld deletes a pod whose unknown owner has a newer revision at its gate", fixture.WorldOf(began(), fixture.Granted("a", 1).Unknown("web", "one", 9), fixture.Waiting("b").Unknown("web", "two", 5)), []string{deleted}},
		{"W15 Wait deletes no pod of an unknown owner", fixture.WorldOf(fixture.Singleton("db").Held("a", 1), fixture.Granted("a", 1).Unknown("web", "one", 9), fixture.Waiting("b").Unknown("web", "two", 5)), nil},
		{"W15 DeleteOld deletes no pod for a standby of the same revision", fixture.WorldOf(began(), fixture.Granted("a", 1).Unknown("web", "one", 9), fixture.Waiting("b").Unknown("web", "one", 5)), nil},
		{"W15 DeleteOld deletes no pod for an older pod", fixture.WorldOf(began(), fixture.Granted("a", 1).Unknown("web", "one", 5), fixture.Waiting("b").Unknown("web", "two", 9)), nil},
		{"W15 DeleteOld deletes no pod for a pod that an older ReplicaSet recreated", fixture.WorldOf(began(), fixture.Granted("a", 1).Unknown("new", "new", 9).Since(9), fixture.Waiting("b").Unknown("old", "old", 1).Since(20)), nil},
		{"W15 DeleteOld deletes a pod without a controller for a newer pod", fixture.WorldOf(began(), fixture.Granted("a", 1).BareFor(9), fixture.Waiting("b").BareFor(5)), []string{deleted}},
		{"W15 DeleteOld deletes no pod for a pod that is not at its gate", fixture.WorldOf(began(), fixture.Granted("a", 1).BareFor(9), fixture.Waiting("b").BareFor(5).Coming()), nil},
		{"W15 DeleteOld deletes no pod that was created before the object", fixture.WorldOf(began(), fixture.Granted("a", 1).BareFor(9).With(func(p *corev1.Pod) { p.Annotations[v1.AnnotationSingletonUID] = "another" }), fixture.Waiting("b").BareFor(5)), nil},
	})
}

func TestW15UnknownOwnersDoNotTakeTurns(t *testing.T) {
	const deletes = "patch status of statefulsingleton db: Replaced, b > delete pod b: Timeout, the handover takes longer than maxTransitionTime"
	as := func(change func(*v1.ReplacedPod)) *facts.World {
		return fixture.WorldOf(fixture.Replaced(change), fixture.Granted("b", 2).Unknown("web", "two", 9), fixture.Waiting("a").Unknown("web", "one", 5))
	}
	missing := func(minutes int) func(*v1.ReplacedPod) {
		return func(r *v1.ReplacedPod) {
			r.MissingSince = &metav1.Time{Time: fixture.Noon.Add(-time.Duration(minutes) * time.Minute)}
		}
	}
	many := fixture.Replaced(missing(9)).With(func(s *v1.StatefulSingleton) {
		for len(s.Status.Replaced) < facts.MaxReplaced {
			s.Status.Replaced = append(s.Status.Replaced, *s.Status.Replaced[0].DeepCopy())
		}
	})
	fixture.Check(t, []fixture.Row{
		{"W15 DeleteOld deletes no pod for a revision that it has replaced", as(func(*v1.ReplacedPod) {}), nil},
		{"W15 DeleteOld deletes a pod for another revision of the owner", as(func(r *v1.ReplacedPod) { r.Revision = "zero" }), []string{deletes}},
		{"W15 DeleteOld deletes a pod for the same revision of another owner", as(func(r *v1.ReplacedPod) { r.Owner = "other" }), []string{deletes}},
		{"W15 DeleteOld deletes no pod for a revision that was recreated within an hour", as(missing(64)), nil},
		{"W15 DeleteOld deletes a pod for a revision that was recreated after an hour", as(missing(65)), []string{deletes}},
		{"W15 DeleteOld deletes a pod for the successor of the running revision although the successor was replaced before", fixture.WorldOf(fixture.Replaced(func(*v1.ReplacedPod) {}), fixture.Granted("b", 2).Unknown("web", "one", 9), fixture.Waiting("c").Unknown("web", "two", 5)), []string{deletes}},
		{"W15 DeleteOld deletes no pod for a bare pod with the name of a replaced one",
			fixture.WorldOf(fixture.Replaced(func(r *v1.ReplacedPod) { r.Owner, r.Revision = "", "a" }), fixture.Granted("b", 2).BareFor(9), fixture.Waiting("a").BareFor(5)), nil},
		{"W15 DeleteOld deletes no pod for a bare pod with the generateName of a replaced one",
			fixture.WorldOf(fixture.Replaced(func(r *v1.ReplacedPod) { r.Owner, r.Revision = "", "a-" }), fixture.Granted("b", 2).BareFor(9), fixture.Waiting("a-2").BareFor(5).With(func(p *corev1.Pod) { p.GenerateName = "a-" })), nil},
		{"W15 DeleteOld deletes no more pods than status.replaced can hold", fixture.WorldOf(many, fixture.Granted("b", 2).Unknown("web", "two", 9), fixture.Waiting("c").Unknown("web", "three", 5)), nil},
	})
}

// TestW15CompetingRevisionsComeToRest checks that two revisions do not replace each other
// forever, even if each is recreated at once and every handover times out.
func TestW15CompetingRevisionsComeToRest(t *testing.T) {
	object := fixture.Singleton("db").Held("pod-1", 1).With(func(s *v1.StatefulSingleton) {
		s.Spec.OnTimeout, s.Status.TransitionTimestamp = v1.TimeoutDeletesOld, &metav1.Time{Time: fixture.Noon.Add(-301 * time.Second)}
	})
	runs, waits := "one", "two"
	for deleted := 0; ; deleted++ {
		w := fixture.WorldOf(object, fixture.Granted("pod-1", 1).Unknown("web", runs, 9), fixture.Waiting("b").Unknown("web", waits, 5))
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

func TestW15UnknownOwnersAreToldOf(t *testing.T) {
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"W15 a newer revision of an unknown owner is reported", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unknown("web", "one", 9), fixture.Waiting("b").Unknown("web", "two", 5)),
			"it is owned by CloneSet web, and the operator does not support this kind of owner. To hand over: kubectl -n ns delete pod a. If it is a standby, no action is needed"},
		{"W15 a pod without a controller is reported", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("web"), fixture.Waiting("b").BareFor(5)), "no controller owns it. To hand over: kubectl -n ns delete pod a"},
		{"W15 a standby of the same revision is not reported", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Unknown("web", "one", 9), fixture.Waiting("b").Unknown("web", "one", 5)), ""},
		{"W15 a waiting pod is not reported in the first minute", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).BareFor(9), fixture.Waiting("b").BareFor(5).HeldFor(59*time.Second)), ""},
		{"W15 a waiting pod is reported after a minute", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).BareFor(9), fixture.Waiting("b").BareFor(5).HeldFor(60*time.Second)), "no controller owns it"},
		{"W15 a terminating pod is being replaced", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).BareFor(9).Deleted(), fixture.Waiting("b").BareFor(5)), ""},
	} {
		s := status.Summarize(facts.Derive(r.w))
		c := meta.FindStatusCondition(s.Conditions, v1.ConditionRolloutHeld)
		if r.want == "" && c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, r.want) {
			t.Errorf("%s: %s %s", r.name, c.Status, c.Message)
		}
	}
}
