package facts_test

import (
	"strings"
	"testing"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestSuccessors(t *testing.T) {
	old := func() *fixture.MemberFixture { return fixture.Granted("a", 1).Of("d").Old() }
	leaving := func() *fixture.MemberFixture { return fixture.Serving().OnNode(fixture.IsCordoned) }
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"a pod of the newest revision follows the old one", fixture.WorldOf(fixture.Held(), old(), fixture.Waiting("b").Of("d"), fixture.Waiting("c").Of("d").Old()), "b"},
		{"a pod of another Deployment does not", fixture.WorldOf(fixture.Held(), old(), fixture.Waiting("b").Of("other")), ""},
		{"a pod of the same revision does not", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d"), fixture.Waiting("b").Of("d")), ""},
		{"without a rolling update none does", fixture.WorldOf(fixture.Held(), old().Still(), fixture.Waiting("b").Of("d")), ""},
		{"a pod on another Node follows one that has to leave its Node", fixture.WorldOf(fixture.Replacing(), leaving(), fixture.Waiting("b").Of("web").On("n2"), fixture.Waiting("c").Of("web").OnNode(fixture.IsCordoned)), "b"},
		{"a pod that was in a crash loop follows none that has to leave its Node", fixture.WorldOf(fixture.Replacing().Leased().HandsOverCrashLoops(), leaving(), fixture.Leased("b").Of("web").On("n2").Looped()), ""},
		{"with Replace no pod has to leave its Node", fixture.WorldOf(fixture.Held(), leaving(), fixture.Waiting("b").Of("web").On("n2")), ""},
	} {
		f := facts.Derive(r.w)
		var names []string
		for _, m := range f.Successors(f.Active) {
			names = append(names, m.Name())
		}
		if got := strings.Join(names, " "); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func TestWhoDeletesOnTimeout(t *testing.T) {
	deletes := func() *fixture.SingletonFixture {
		return fixture.Held().With(func(s *v1.StatefulSingleton) { s.Spec.OnTimeout = v1.TimeoutDeletesOld })
	}
	for _, r := range []struct {
		name string
		w    *facts.World
		want bool
	}{
		{"DeleteOld", fixture.WorldOf(deletes()), true},
		{"Wait", fixture.WorldOf(fixture.Held()), false},
		{"an object that is terminating", fixture.WorldOf(deletes().Goes()), false},
		{"an object above the limit", fixture.WorldWith(fixture.WorldOf(deletes()), func(w *facts.World) { w.BeyondLimit = true }), false},
		{"no object", fixture.WorldOf(nil), false},
	} {
		if got := r.w.DeletesOnTimeout(); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}
