package replicatedstatefulset

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// idles makes a command of a pod end with 0 and do nothing.
func idles(command string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s ends with 0 and does nothing", command)
		s.db.Idles[command] = true
	}
}

// TestV12StopAndDemoteThatDoNothing tests V12: neither is sent more than a few times, labels do not
// flap, and Degraded reports it.
func TestV12StopAndDemoteThatDoNothing(t *testing.T) {
	for name, scenario := range map[string]struct {
		set   *v1alpha1.ReplicatedStatefulSet
		steps []func(*stage)
		sends int
	}{
		"a stop for a scale-down":                  {fixture.SetOf(3, 1), []func(*stage){idles("rss-db-2 stop"), scaleTo(2)}, 2},
		"a stop of a surplus primary":              {fixture.SetOf(3, 2, "demote", "promote"), []func(*stage){idles("rss-db-1 stop"), primariesTo(1)}, 2},
		"a demote of a surplus primary":            {fixture.SetOf(3, 2), []func(*stage){idles("rss-db-1 demote"), primariesTo(1)}, 1},
		"a demote and a stop of a surplus primary": {fixture.SetOf(3, 2), []func(*stage){idles("rss-db-1 demote"), idles("rss-db-1 stop"), primariesTo(1)}, 2},
		"a stop for a new template":                {fixture.SetOf(3, 1), []func(*stage){idles("rss-db-2 stop"), image("two")}, 2},
		"a demote for a switchover":                {fixture.SetOf(3, 1), []func(*stage){idles("rss-db-0 demote"), switchTo(2)}, 1},
		"a stop of the set":                        {fixture.SetOf(3, 3, "secondary", "promote", "demote"), []func(*stage){idles("rss-db-1 stop"), scaleTo(0)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, scenario.set)
			s.settle(20 * time.Second)
			from := len(s.Story)
			for _, step := range scenario.steps {
				step(s)
			}
			degraded := false
			for end := s.Now.Add(3 * time.Minute); s.Now.Before(end); s.Now = s.Now.Add(200 * time.Millisecond) {
				s.Look()
				s.pass()
				s.check()
				for _, move := range append(s.Machines(), s.db.Moves()...) {
					move()
				}
				for _, c := range s.Set().Status.Conditions {
					degraded = degraded || c.Type == v1alpha1.ConditionDegraded && c.Status == metav1.ConditionTrue
				}
			}
			if !degraded {
				t.Error("Degraded was never True")
			}
			for command := range s.db.Idles {
				if n := s.told(from, strings.Replace(command, " ", ": /", 1)); n > scenario.sends {
					t.Errorf("%s was sent %d times", command, n)
				}
				name, _, _ := strings.Cut(command, " ")
				if n := s.told(from, "patch pod "+name+": Role"); n > 4 {
					t.Errorf("the labels of %s were changed %d times", name, n)
				}
			}
			if t.Failed() {
				s.Fatal(t, "")
			}
		})
	}
}

// told counts the lines of the story after from that have the prefix.
func (s *stage) told(from int, begin string) (n int) {
	for _, line := range s.Story[from:] {
		if strings.HasPrefix(strings.TrimSpace(line), begin) {
			n++
		}
	}
	return n
}
