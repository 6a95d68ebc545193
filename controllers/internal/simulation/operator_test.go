package simulation

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// script is an operator whose passes return the given results, and then nothing.
type script struct {
	passes []Passed
	last   Passed
	moves  int // the number of rounds with a move
}

func (s *script) Look() {}

func (s *script) Pass() Passed {
	if len(s.passes) == 0 {
		return s.last
	}
	next := s.passes[0]
	s.passes = s.passes[1:]
	return next
}

func (s *script) Moves() []func() {
	if s.moves == 0 {
		return nil
	}
	s.moves--
	return []func(){func() {}}
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for _, row := range []struct {
		name    string
		script  script
		settled bool
		took    time.Duration
	}{
		{"nothing to do", script{}, true, 0},
		{"writes, and a kubelet", script{passes: []Passed{{Acted: true}, {Acted: true}}, moves: 3}, true, 3 * round},
		{"a requeue within patience", script{passes: []Passed{{Wait: 40 * time.Second}, {Acted: true}}}, true, 40*time.Second + round},
		{"a requeue after patience", script{last: Passed{Wait: 2 * time.Minute}}, true, 0},
		{"the key is requeued for ever", script{last: Passed{Wait: 25 * time.Second}}, true, 50 * time.Second},
		{"polling for ever", script{last: Passed{Wait: 20 * time.Second, Polls: true}}, true, 60 * time.Second},
		{"one failed pass", script{passes: []Passed{{Err: broken}}}, true, round},
		{"failed passes for ever", script{last: Passed{Err: broken}}, false, time.Minute},
		{"writes for ever", script{last: Passed{Acted: true}}, false, maxRounds * round},
	} {
		c := New(noon)
		if got := Run(c, &row.script, time.Minute); got != row.settled || c.Now.Sub(noon) != row.took {
			t.Errorf("%s: settled %t after %s, want %t after %s", row.name, got, c.Now.Sub(noon), row.settled, row.took)
		}
	}
}

func TestGarbage(t *testing.T) {
	c := newCluster()
	owned := func(name string, owners ...metav1.OwnerReference) {
		c.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}})
	}
	first := read(t, c, &corev1.Pod{}, "a")
	owned("one", metav1.OwnerReference{UID: first.UID})
	owned("two", metav1.OwnerReference{UID: first.UID}, metav1.OwnerReference{UID: "never read"})
	owned("none")
	if n := len(Garbage(c)); n != 0 {
		t.Fatalf("%d objects are garbage while their owner exists", n)
	}
	c.Remove(first)
	for _, move := range append(Garbage(c), Garbage(c)...) { // others may act in between
		move()
	}
	var left []string
	for key := range c.All {
		if key.Kind == "ConfigMap" {
			left = append(left, key.Name)
		}
	}
	if len(left) != 2 || c.All[objects.Key{Kind: "ConfigMap", Namespace: "ns", Name: "one"}] != nil {
		t.Errorf("left are %q, want none and two", left)
	}
}
