package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// situation is a description of the pods by an engineer on call, with the columns Desired, Ready,
// Updated and Lost, and the conditions: status and reason of Available, Progressing and Degraded,
// and words that must be in the message of one of them.
type situation struct {
	sentence string
	world    *facts.World
	columns  string
	says     string
	words    string
}

func situations() []situation {
	const long = 50 * time.Minute
	well := func(id string) *fixture.PodFixture { return fixture.Pod(id).On("n-" + id).Ready() }
	down := func(id string, d time.Duration) *fixture.PodFixture {
		return fixture.Pod(id).On("n-" + id).UnreadyFor(d)
	}
	never := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Replacement.UnreadySeconds, s.Replacement.StartupSeconds, s.Replacement.PendingSeconds = new(int32(0)), new(int32(0)), new(int32(0))
	})
	restarted := fixture.With(func(w *facts.World) { w.Watch = leadership.Watch{Since: fixture.Noon.Add(-time.Second)} })
	foreign := fixture.With(func(w *facts.World) { w.Foreign = []string{"one", "two", "three"} })
	const (
		allThere   = "True AllMembersAvailable, "
		someAway   = "False MembersUnavailable, "
		complete   = "False Complete, "
		healthy    = "False Healthy"
		notReady   = "True MembersNotReady"
		badVersion = "True RevisionFailing"
	)
	return []situation{
		{"all members are available", fixture.Seen(fixture.Set("db"), well("a"), well("b"), well("c")),
			"3 3 3 0", allThere + complete + healthy, "no problems detected"},
		{"a new set whose members are starting", fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.Starting("a"), fixture.Starting("b"), fixture.Starting("c")),
			"3 0 3 0", someAway + "True WaitingForMembers, " + healthy, "waiting for 3 members to become available"},
		{"one member has been unready for a minute", fixture.Seen(fixture.Set("db"), down("a", time.Minute), well("b"), well("c")),
			"3 2 3 0", someAway + "True WaitingForMembers, " + healthy, "no problems detected so far"},
		{"V13 the only member is down", fixture.Seen(fixture.Set("db").Replicas(1), down("a", time.Second)),
			"1 0 1 0", someAway + "True WaitingForMembers, " + notReady, "no member is Ready; previously Ready: db-a; look for a common cause; `kubectl -n ns describe pod db-a` shows details"},
		{"V13 the whole set is down", fixture.Seen(fixture.Set("db"), down("a", time.Second), down("b", time.Second), down("c", time.Second)),
			"3 0 3 0", someAway + "True WaitingForMembers, " + notReady, "no member is Ready; previously Ready: db-a, db-b, db-c"},
		{"V13 two members have been unready for a long time",
			fixture.Seen(fixture.Set("db"), down("a", long), down("b", long), well("c")),
			"3 1 3 0", someAway + "True WaitingForMembers, True ReplacementHeld", "2 members are unready at the same time"},
		{"V13 one member has been unready for a long time and is never replaced", fixture.Seen(never, down("a", 10*time.Minute), well("b"), well("c")),
			"3 2 3 0", someAway + "True WaitingForMembers, " + notReady, "spec.replacement sets no deadline for this case: db-a"},
		{"V13 one member has been unschedulable for a long time and is never replaced", fixture.Seen(never, fixture.Pod("a").UnschedulableFor(10*time.Minute), well("b"), well("c")),
			"3 2 3 0", someAway + "True WaitingForMembers, " + notReady, "sets no deadline for this case: db-a"},
		{"V13 one member never started and is never replaced", fixture.Seen(never, fixture.Pod("a").Aged(10*time.Minute).On("n1").Starting(), well("b"), well("c")),
			"3 2 3 0", someAway + "True WaitingForMembers, " + notReady, "sets no deadline for this case: db-a"},
		{"a node is lost, its member is being replaced", fixture.Seen(fixture.Set("db"), well("a").NodeGone(), well("b"), well("c")),
			"3 2 2 1", someAway + "True Replacing, " + healthy, "replacing 1 member"},
		{"two nodes are lost, one replacement is pending", fixture.Seen(fixture.Set("db"), well("a").NodeGone(), well("b").NodeGone(), well("c")),
			"3 1 1 2", someAway + "True Replacing, True ReplacementHeld", "pending replacement: db-b"},
		{"a user deleted a pod, its member is being replaced", fixture.Seen(fixture.Set("db"), well("a").Going(), well("b"), well("c")),
			"3 2 2 1", someAway + "True Replacing, " + healthy, "replacing 1 member"},
		{"the quota is used up", fixture.Seen(fixture.Set("db"), well("a"), well("b"), fixture.Refused(facts.ReasonMissing, "create pod db-f1: exceeded quota", time.Minute)),
			"3 2 2 0", someAway + "True Scaling, True WriteRefused", "exceeded quota"},
		{"an update is in progress", fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), well("c"), fixture.OldImage()),
			"3 3 1 0", allThere + "True Updating, " + healthy, "1 of 3 members have revision now"},
		{"the new image could not be pulled for a minute",
			fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.OldA(), fixture.OldB(), fixture.Starting("c").Waiting("ImagePullBackOff"), fixture.OldImage()),
			"3 2 1 0", someAway + "True Updating, " + healthy, "not Ready: db-c (ImagePullBackOff)"},
		{"the new image could not be pulled for longer than startupSeconds",
			fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").Starting().Waiting("ImagePullBackOff"), fixture.OldImage()),
			"3 2 1 0", someAway + "True Updating, " + badVersion, "db-c (ImagePullBackOff); `kubectl -n ns describe pod db-c` shows why; correct the template"},
		{"V13 the new image could not be pulled, after a restart of the operator",
			fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").Starting().Waiting("ImagePullBackOff"), fixture.OldImage(), restarted),
			"3 2 1 0", someAway + "True Updating, " + badVersion, "correct the template"},
		{"V13 two members have been unready for a long time, after a restart of the operator", fixture.Seen(fixture.Set("db"), down("a", long), down("b", long), well("c"), restarted),
			"3 1 3 0", someAway + "True WaitingForMembers, True ReplacementHeld", "look for a common cause"},
		{"the new version keeps crashing", fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(4), fixture.OldImage()),
			"3 3 1 0", allThere + "True Updating, " + badVersion, "containers keep restarting"},
		{"V14 pods that are not members match the selector", fixture.Seen(fixture.Set("db"), well("a"), well("b"), well("c"), foreign),
			"3 3 3 0", allThere + complete + "True ForeignPods", "ignored: one, two, three;"},
		{"the spec is invalid", fixture.Seen(fixture.Set("d.b"), well("a"), well("b"), well("c")),
			"3 3 0 0", "False InvalidSpec, False InvalidSpec, True InvalidSpec", "no action is taken until the spec is corrected"},
	}
}

func TestV13V14ConditionsSayWhatAnEngineerOnCallWouldSay(t *testing.T) {
	for _, r := range situations() {
		s := fixture.Told(r.world)
		var says, messages []string
		for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
			c := meta.FindStatusCondition(s.Conditions, kind)
			says = append(says, fmt.Sprintf("%s %s", c.Status, c.Reason))
			messages = append(messages, c.Message)
		}
		if got := strings.Join(says, ", "); got != r.says {
			t.Errorf("%q: conditions are\n  %s\nwant\n  %s", r.sentence, got, r.says)
		}
		if !strings.Contains(strings.Join(messages, "\n"), r.words) {
			t.Errorf("%q: no condition contains %q:\n  %s", r.sentence, r.words, strings.Join(messages, "\n  "))
		}
		if got := fmt.Sprintf("%d %d %d %d", *r.world.Set.Spec.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.LostReplicas); got != r.columns {
			t.Errorf("%q: the columns show %s, want %s", r.sentence, got, r.columns)
		}
	}
}

// V11 While an update recreates members, the set does not report scaling after any step that
// succeeded.
func TestV11ARecreatedMemberIsNoScaling(t *testing.T) {
	for name, w := range map[string]*facts.World{
		"the old pod was just deleted": fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.OldCommand()),
		"the new pod was just created": fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.OldC(), fixture.Updating("a", "uid-of-a", "now"), fixture.OldCommand()),
	} {
		p := fixture.PlanOf(w)
		var outcomes []action.Outcome
		for _, step := range p.Steps {
			for _, chain := range step {
				for _, a := range chain {
					outcomes = append(outcomes, action.Outcome{Action: a, Answer: a.Object})
				}
			}
		}
		if got := fixture.Says(fixture.StatusOf(w, &p, outcomes), v1alpha1.ConditionProgressing); !strings.HasPrefix(got, "True Updating: ") {
			t.Errorf("V11 %s: %s, want True Updating", name, got)
		}
	}
}

func TestAMemberThatComesBackIsNoOutage(t *testing.T) {
	f := facts.Derive(fixture.Seen(fixture.Set("db").Replicas(2), fixture.A().UnreadyFor(time.Second), fixture.LooseClaimOf("b"), fixture.Updating("b", "uid-of-old-b", "now")))
	if len(f.Down) > 0 {
		t.Errorf("members reported as an outage while one returns: %v", f.Down)
	}
}
