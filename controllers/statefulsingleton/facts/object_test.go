package facts_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

func TestWhoDecides(t *testing.T) {
	older := fixture.Singleton("older").MadeAt(1)
	younger := fixture.Singleton("younger").MadeAt(2)
	rivals := func(s *fixture.SingletonFixture) func(*facts.World) {
		return func(w *facts.World) {
			w.Now, w.Rivals = fixture.Noon.Add(time.Hour), []*v1.StatefulSingleton{&s.StatefulSingleton}
		}
	}
	late := fixture.HandingOver(301*time.Second, v1.TimeoutDeletesOld)
	fixture.Check(t, []fixture.Row{
		{"S26 the younger of two overlapping objects deletes no pod for a handover that takes too long", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("younger").MadeAt(2).Held("a", 1).With(late), fixture.Granted("a", 1).Coming(), fixture.Waiting("b")), rivals(older)), nil},
		{"an object above the limit deletes no pod for a handover that takes too long", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db").Held("a", 1).With(late), fixture.Granted("a", 1).Coming(), fixture.Waiting("b")), func(w *facts.World) { w.BeyondLimit = true }), nil},
		{"S26 the younger of two overlapping objects starts no pod", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("younger").MadeAt(2), fixture.Waiting("a")), rivals(older)), nil},
		{"S26 the older of two overlapping objects starts a pod", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("older").MadeAt(1), fixture.Waiting("a")), rivals(younger)),
			[]string{"patch status of statefulsingleton older: Holder, a, epoch 1 > patch pod a: Grant, epoch 1"}},
		{"S26 the younger of two overlapping objects deletes no pod for a rollout", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("younger").MadeAt(2), fixture.Granted("a", 1).Of("d").Old(), fixture.Waiting("b").Of("d")), rivals(older)), nil},
		{"an object above the limit starts no pod", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), func(w *facts.World) { w.BeyondLimit = true }), nil},
		{"an invalid object starts no pod", fixture.WorldOf(fixture.Singleton("db").Selecting(metav1.LabelSelector{}), fixture.Waiting("a")), nil},
	})
	p := rules.Decide(facts.Derive(fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), func(w *facts.World) { w.FirstSeen = fixture.Noon.Add(-time.Second) })))
	if len(p.Steps) > 0 || p.Wait != time.Second {
		t.Errorf("a new object plans %q and a requeue after %s; want no action, and 1s", p.Steps.Strings(), p.Wait)
	}
}
