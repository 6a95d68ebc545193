package replicatedstatefulset

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestV12StopsThatStatusDenies tests that a stop or demote counts only when status confirms it, as
// a start does. Otherwise one that ends with 0 and does nothing would be sent forever.
func TestV12StopsThatStatusDenies(t *testing.T) {
	stopped := func(code int, age, asked time.Duration) *podFixture {
		return pod(1).granted().ends("stop", podexec.Succeeded, 0).age(age).statusSince(code, asked)
	}
	demoted := func(code int, age, asked time.Duration) *podFixture {
		return pod(1).granted().ends("demote", podexec.Succeeded, 0).age(age).statusSince(code, asked)
	}
	other := func() *podFixture { return pod(0).primary().sequence("9") }
	check(t, []row{
		{"V12 no retry of a stop while the program may still stop", worldOf(setOf(2, 1), other(), stopped(8, 5*time.Second, 500*time.Millisecond)), nil},
		{"V12 query status each second after a stop", worldOf(setOf(2, 1), other(), stopped(8, 5*time.Second, 2*time.Second)), []string{"1 asked status"}},
		{"V12 record a failed stop that status never confirmed", worldOf(setOf(2, 1), other(), stopped(8, spec.SettleWithin+time.Second, 500*time.Millisecond)),
			[]string{"learned: stop of 1 failed: it exited with 0, but status did not confirm it"}},
		{"V12 record a failed stop when status reports a failure", worldOf(setOf(2, 1), other(), stopped(1, spec.SettleWithin+time.Second, 500*time.Millisecond)),
			[]string{"learned: stop of 1 failed: it exited with 0, but status did not confirm it"}},
		{"V12 query status again before a stop is recorded as failed", worldOf(setOf(2, 1), other(), stopped(8, spec.SettleWithin+5*time.Second, 6*time.Second)), []string{"1 asked status"}},
		{"V12 record the success of a stop that status confirms", worldOf(setOf(2, 1), other(), stopped(7, 5*time.Second, 500*time.Millisecond)),
			[]string{"learned: stop of 1 succeeded; 1 is not primary: status reports that it has stopped"}},
		{"V12 record the success of a stop whose container ended", worldOf(setOf(2, 1), other(), pod(1).granted().ends("stop", podexec.Succeeded, 0).crashed()),
			[]string{"learned: stop of 1 succeeded; 1 is not primary: its container has ended"}},
		{"V12 record a failed demote that status never confirmed", worldOf(setOf(2, 1), other(), demoted(8, spec.SettleWithin+time.Second, 500*time.Millisecond)),
			[]string{"learned: demote of 1 failed: it exited with 0, but status did not confirm it"}},
		{"V12 stop the primary after a failed demote", worldOf(setOf(2, 1), other(), pod(1).failures(1, "demote", 0, false).primary()), []string{"1: Stop, with 0 1"}},
		{"V12 no second stop within the backoff", worldOf(setOf(2, 1), other(), pod(1).failures(1, "stop", 0, false).lately(500*time.Millisecond).primary()), nil},
		{"V12 delete the pod after two failed stops", worldOf(setOf(2, 1), other(), pod(1).failures(2, "stop", 0, false).primary()),
			[]string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"V12 delete the pod of a failed member after a failed stop", worldOf(setOf(2, 1), other(), pod(1).status(1).failures(1, "stop", 0, false)),
			[]string{"delete pod 1: Failed, stop failed: it exited with 0, but status did not confirm it"}},
	})
}

// idles makes a command of a pod end with 0 and do nothing.
func idles(command string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s ends with 0 and does nothing", command)
		s.db.idles[command] = true
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
		"a stop for a scale-down":                  {setOf(3, 1), []func(*stage){idles("rss-db-2 stop"), scaleTo(2)}, 2},
		"a stop of a surplus primary":              {setOf(3, 2, "demote", "promote"), []func(*stage){idles("rss-db-1 stop"), primariesTo(1)}, 2},
		"a demote of a surplus primary":            {setOf(3, 2), []func(*stage){idles("rss-db-1 demote"), primariesTo(1)}, 1},
		"a demote and a stop of a surplus primary": {setOf(3, 2), []func(*stage){idles("rss-db-1 demote"), idles("rss-db-1 stop"), primariesTo(1)}, 2},
		"a stop for a new template":                {setOf(3, 1), []func(*stage){idles("rss-db-2 stop"), image("two")}, 2},
		"a demote for a switchover":                {setOf(3, 1), []func(*stage){idles("rss-db-0 demote"), switchTo(2)}, 1},
		"a stop of the set":                        {setOf(3, 3, "secondary", "promote", "demote"), []func(*stage){idles("rss-db-1 stop"), scaleTo(0)}, 2},
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
				s.look()
				s.pass()
				s.check()
				for _, move := range append(s.machines(), s.db.moves()...) {
					move()
				}
				for _, c := range s.set().Status.Conditions {
					degraded = degraded || c.Type == v1alpha1.ConditionDegraded && c.Status == metav1.ConditionTrue
				}
			}
			if !degraded {
				t.Error("Degraded was never True")
			}
			for command := range s.db.idles {
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

// TestV12LabelsDoNotChangeToAndFro tests V12: the labels of a member that was ordered to stop, and
// does not, stay unchanged.
func TestV12LabelsDoNotChangeToAndFro(t *testing.T) {
	none := map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	for _, r := range []struct {
		name  string
		world func(*podFixture) *facts.World
		want  []string
	}{
		{"labels stay while the member is a surplus primary", func(f *podFixture) *facts.World { return worldOf(setOf(2, 1), pod(0).primary(), f) }, nil},
		{"labels stay while the member should be removed", func(f *podFixture) *facts.World {
			return worldOf(setOf(2, 2, "secondary"), pod(0).primary(), f, replicas(1))
		}, nil},
		{"labels change when the member may stay primary", func(f *podFixture) *facts.World { return worldOf(setOf(2, 2), pod(0).primary(), f) }, []string{"1 primary"}},
	} {
		t.Run("V12 "+r.name, func(t *testing.T) {
			f := pod(1).failures(1, "stop", 0, false).lately(500 * time.Millisecond).primary()
			f.labels = none
			p := rules.Decide(r.world(f))
			if got := labelsOf(&p); !slices.Equal(got, r.want) {
				t.Errorf("the labels are %q, want %q", got, r.want)
			}
		})
	}
}
