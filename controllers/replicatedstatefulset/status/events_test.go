package status_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestV18ReasonsOfEvents tests that the reason of each event matches its text.
func TestV18ReasonsOfEvents(t *testing.T) {
	well := func() *fixture.PodFixture { return fixture.Pod(1).Secondary().Sequence("9") }
	unsent := func(command string) *fixture.PodFixture {
		f := fixture.Pod(0).Began(command, 8*time.Second).Unsent(command, 8*time.Second, 1)
		r := f.Results[command]
		r.Decided = fixture.Ago(8 * time.Second)
		f.Results[command] = r
		return f
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		want  []string
	}{
		{"V18 a start whose container ended emits CommandEnded", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Began("secondary", time.Minute).Crashed(), well()),
			[]string{"Normal CommandEnded: secondary of rss-db-0 ended with its container"}},
		{"V18 a member that never was primary emits NotPromoted", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Idle(), well()),
			[]string{"Normal NotPromoted: rss-db-0 is not primary: status reports that it has stopped"}},
		{"V18 a former primary emits Demoted", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Confirmed().Idle(), well()),
			[]string{"Normal Demoted: rss-db-0 is not primary: status reports that it has stopped"}},
		{"V18 a successful demote emits Demoted", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Ends("demote", podexec.Succeeded, 0).StatusSince(0, time.Second), well()),
			[]string{"Normal Demoted: demote of rss-db-0 succeeded"}},
		{"V18 a seed with unknown outcome emits Seeded", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("seed", 15*time.Second).Status(8), well()),
			[]string{"Normal Seeded: seed of rss-db-0 took effect: status reports primary"}},
		{"V18 a stop with unknown outcome emits MemberStopped", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Began("stop", 15*time.Second).Status(7), well()),
			[]string{"Normal MemberStopped: stop of rss-db-0 took effect: status reports idle"}},
		{"V18 a failed start emits MemberFailed", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Ends("secondary", podexec.Failed, 1), well()),
			[]string{"Warning MemberFailed: secondary of rss-db-0 failed with exit code 1"}},
		{"V15 an unsent command emits CommandNotSent", fixture.WorldOf(fixture.SetOf(2, 1), unsent("secondary"), well()),
			[]string{"Normal CommandNotSent: secondary was not sent to rss-db-0 and changed nothing there; it will be retried if it is still needed: the stream broke"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			var got []string
			for _, n := range facts.Derive(r.world).Record.Events {
				got = append(got, fmt.Sprintf("%s %s: %s", n.Kind, n.Reason, n.Text))
			}
			if !slices.Equal(got, r.want) {
				t.Errorf("the events are %q, want %q", got, r.want)
			}
		})
	}
}

// TestV18EachCommandHasAReason tests V18: there is a reason for the success of each command.
func TestV18EachCommandHasAReason(t *testing.T) {
	for command, want := range map[string]string{
		v1alpha1.CommandSeed: v1alpha1.EventSeeded, v1alpha1.CommandPrimary: v1alpha1.EventMemberStarted, v1alpha1.CommandPromote: v1alpha1.EventMemberStarted,
		v1alpha1.CommandSecondary: v1alpha1.EventMemberStarted, v1alpha1.CommandStop: v1alpha1.EventMemberStopped, v1alpha1.CommandDemote: v1alpha1.EventDemoted,
	} {
		if got := record.SucceededAs(command); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// TestV15CommandsMayBeginLaterWhereTheAPIServerIsSlow tests V15: the time in which a command must
// begin follows the latency of the API server. It is on record, because until it has expired the
// command may reach another container.
func TestV15CommandsMayBeginLaterWhereTheAPIServerIsSlow(t *testing.T) {
	for _, r := range []struct {
		name   string
		took   time.Duration
		unsent int
		want   time.Duration
	}{
		{"a fast API server", 0, 0, 5 * time.Second},
		{"an API server that takes 3 s for a pass", 3 * time.Second, 0, 11 * time.Second},
		{"after one command that was not sent in time", 0, 1, 10 * time.Second},
		{"after two commands that were not sent in time", 0, 2, 20 * time.Second},
		{"the maximum", time.Minute, 9, podexec.MaxHurry},
	} {
		t.Run("V15 "+r.name, func(t *testing.T) {
			f := fixture.Pod(0).Secondary().Sequence("9")
			if r.unsent > 0 {
				f.Unsent("promote", 10*time.Minute, r.unsent)
			}
			w := fixture.WorldOf(fixture.SetOf(2, 1), f, fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(15*time.Second), fixture.With(func(w *facts.World) { w.Took = r.took }))
			p := rules.Decide(w)
			if len(p.Steps) != 1 || len(p.Steps[0][0]) != 2 {
				t.Fatalf("the plan is %q", p.Steps.Strings())
			}
			sent, written := p.Steps[0][0][1].Command, p.Steps[0][0][0].Object.(*v1alpha1.ReplicatedStatefulSet).Status
			if sent.Within != r.want {
				t.Errorf("the command must begin within %s, want %s", sent.Within, r.want)
			}
			until := w.Now.Add(r.want + spec.StrayAfter)
			if got := spec.StrayUntil(written.Commands[0].StartedAt, written.Commands[0].BeginWithin); !got.Equal(until) {
				t.Errorf("by its record, the command can reach a container until %s, want %s", got, until)
			}
			if got := spec.StrayUntil(written.Grants[0].Since, written.Grants[0].BeginWithin); !got.Equal(until) {
				t.Errorf("by its grant, the command can reach a container until %s, want %s", got, until)
			}
		})
	}
}

// heard records events.
type heard []string

func (h *heard) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	*h = append(*h, fmt.Sprintf("%s %s: %s", kind, reason, fmt.Sprintf(note, args...)))
}

// TestV7EventsComeAfterTheirWrite tests V7: no event is emitted for a failed write. The next pass
// makes the same observation and emits the event.
func TestV7EventsComeAfterTheirWrite(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "replicatedstatefulsets"}, "db", errors.New("another version"))
	for _, r := range []struct {
		name string
		err  error
		want []string
	}{
		{"a successful write", nil, []string{"Normal NotPromoted: rss-db-0 is not primary: status reports that it has stopped"}},
		{"a conflict", conflict, nil},
		{"a refused write", apierrors.NewForbidden(schema.GroupResource{}, "db", errors.New("no")), nil},
	} {
		told, w := &heard{}, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Idle(), fixture.Pod(1).Secondary().Sequence("9"))
		p := rules.Decide(w)
		var outcomes []action.Outcome
		for _, chain := range p.Steps[0] {
			outcomes = append(outcomes, action.Outcome{Action: chain[0], Answer: chain[0].Object, Err: r.err})
		}
		c := &status.Reporter{Events: told, Reader: &observe.Reader{}, Runner: &action.Runner{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()}}
		c.Report(context.Background(), &p, outcomes)
		if !slices.Equal(*told, r.want) {
			t.Errorf("V7 %s: the events are %q, want %q", r.name, *told, r.want)
		}
	}
}

// TestAHandoverIsTold tests RS-80: the reason of a handover is reported when it begins, whatever
// its outcome.
func TestAHandoverIsTold(t *testing.T) {
	for _, set := range []*v1alpha1.ReplicatedStatefulSet{fixture.SetOf(2, 1), fixture.SetOf(2, 1, "demote")} {
		told := &heard{}
		p := rules.Decide(fixture.WorldOf(set, fixture.Pod(0).Primary().WasToGo(0).Sequence("9"), fixture.Pod(1).Secondary().Later("9")))
		r := &status.Reporter{Events: told, Reader: &observe.Reader{}}
		for _, chain := range slices.Concat(p.Steps...) {
			for _, a := range chain {
				r.Emit(&p, &action.Outcome{Action: a, Answer: a.Object})
			}
		}
		if want := []string{"Normal HandingOver: rss-db-0: its eviction was requested, and rss-db-1 can take over"}; !slices.Equal(*told, want) {
			t.Errorf("the events are %q, want %q", *told, want)
		}
	}
}

// TestAGrantIsConfirmedOnceItsMemberIsSeenAsPrimary tests that a grant stays confirmed when the
// failing primary becomes unready before its grant ends.
func TestAGrantIsConfirmedOnceItsMemberIsSeenAsPrimary(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  bool
	}{
		{"status reports primary", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary()), true},
		{"the member is found as primary", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Status(8)), true},
		{"the seed of the member is running", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).WithGranted().WithRuns("seed", time.Second)), false},
		{"a confirmed primary does not answer", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).WithGranted().Confirmed()), true},
	} {
		granted := facts.Derive(r.world).Record.Granted
		if len(granted) != 1 || granted[0].Confirmed != r.want {
			t.Errorf("%s: %+v", r.name, granted)
		}
	}
	fixture.Check(t, []fixture.Row{{"no write only to confirm a primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("3")), []string{"1: Secondary, with 0"}}})
}
