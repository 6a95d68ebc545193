package simulate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/simulate"
)

func TestAKilledProcessWritesNothingMore(t *testing.T) {
	c := newCluster()
	s := simulate.New(c, key, simulate.Hooks{})
	c.Interfere = func(n int, _ action.Action) (before, after error) {
		if n == 2 {
			return simulation.ErrKilled, nil
		}
		return nil, nil
	}
	killed := s.Process
	for c.Writes() < 2 {
		s.Look()
		s.Pass()
	}
	if c.Writes() != 2 || s.Process == killed {
		t.Errorf("%d writes, want 2; restarted: %t", c.Writes(), s.Process != killed)
	}
	run(t, c, s)
	if n := len(membersOf(t, c)); n != 3 {
		t.Errorf("%d members, want 3", n)
	}
}

func TestAPassWaitsForACacheWithAllOwnWrites(t *testing.T) {
	s := simulate.New(newCluster(), key, simulate.Hooks{})
	if !s.Pass().Acted {
		t.Fatal("the first pass writes nothing")
	}
	before := s.Writes()
	if s.Pass().Acted || s.Writes() != before {
		t.Errorf("a pass on an old cache makes %d writes", s.Writes()-before)
	}
	s.Look()
	if !s.Pass().Acted {
		t.Error("a pass on a new cache makes no writes")
	}
}

func TestDecisionsAreSeenBeforeTheyAreCarriedOut(t *testing.T) {
	var s *simulate.Simulation
	var live []bool
	c := newCluster()
	s = simulate.New(c, key, simulate.Hooks{Decided: func(f *facts.Facts) {
		if f.Set.Name != key.Name || c.Writes() > 0 {
			t.Errorf("decided for %s after %d writes", f.Set.Name, c.Writes())
		}
		live = append(live, f.Live)
	}})
	s.Pass()
	if !slices.Equal(live, []bool{true}) || c.Writes() == 0 {
		t.Errorf("%d writes after decisions with live %v", c.Writes(), live)
	}
}

// Objects that Cut removes are not in the cache, and their changes do not reach the watch.
func TestTheCacheIsCut(t *testing.T) {
	c := newCluster()
	hidden := ""
	s := simulate.New(c, key, simulate.Hooks{Cut: func(obj client.Object) client.Object {
		if obj.GetName() == hidden {
			return nil
		}
		return obj
	}, ID: func(n int) string { return string(rune('a' + n)) }})
	run(t, c, s)
	if pods := kubelet.Pods(c); pods[0].Name != "shop-a" {
		t.Errorf("the first pod is %s", pods[0].Name)
	}
	hidden = "shop-a"
	next := copyOf(t, c)
	s = simulate.New(next, key, simulate.Hooks{Cut: s.Cut})
	if err := s.Reader.Cache.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: hidden}, kubelet.Pods(c)[0]); err == nil {
		t.Errorf("%s is in the cache", hidden)
	}
	next.DeleteNow(kubelet.Pods(next)[0])
	next.DeleteNow(kubelet.Pods(next)[0])
	s.Look()
	for name, want := range map[string]bool{"shop-a": false, "shop-b": true, "shop-c": false} {
		if got := s.Reader.Deletions.Observed(client.ObjectKey{Namespace: key.Namespace, Name: name}); got != want {
			t.Errorf("the deletion of %s was observed: %t, want %t", name, got, want)
		}
	}
}

func TestIDsAreNotReused(t *testing.T) {
	c := newCluster()
	s := simulate.New(c, key, simulate.Hooks{})
	run(t, c, s)
	s.Use("new4")
	for _, name := range []string{"shop-new1", "shop-new2", "shop-new3"} {
		c.DeleteNow(membersOf(t, c)[name])
	}
	for _, claim := range []string{"shop-data-new1", "shop-data-new2"} {
		c.DeleteNow(c.All[objects.Key{Kind: "PersistentVolumeClaim", Namespace: key.Namespace, Name: claim}])
	}
	run(t, c, s)
	if members := membersOf(t, c); members["shop-new5"] == nil || members["shop-new6"] == nil || members["shop-new7"] == nil {
		t.Errorf("members are %v", members)
	}
}

// The story has the status only where something fails.
func TestStatusWritesAreNotInTheStory(t *testing.T) {
	c := newCluster()
	s := simulate.New(c, key, simulate.Hooks{})
	run(t, c, s)
	if story := strings.Join(c.Story, "\n"); strings.Contains(story, "Observed") || !strings.Contains(story, "create pod shop-new1") {
		t.Errorf("the story is %s", story)
	}
	if setOf(t, c).Status.ReadyReplicas != 3 {
		t.Errorf("%d members are Ready in the status", setOf(t, c).Status.ReadyReplicas)
	}
	c.Interfere = func(int, action.Action) (before, after error) { return simulation.Fails.Before, nil }
	c.Remove(membersOf(t, c)["shop-new1"])
	c.Now = c.Now.Add(time.Minute)
	s.Look()
	if passed := s.Pass(); passed.Err == nil {
		t.Error("the error of a write is not returned")
	}
	if story := strings.Join(c.Story, "\n"); !strings.Contains(story, "Observed") && !strings.Contains(story, "! InternalError") {
		t.Errorf("the story is %s", story)
	}
}

// A simulation also starts without any other object.
func TestASetAlone(t *testing.T) {
	c := simulation.New(fixture.Noon)
	if passed := simulate.New(c, key, simulate.Hooks{}).Pass(); passed.Acted || passed.Err != nil {
		t.Errorf("a pass without a set: %+v", passed)
	}
}
