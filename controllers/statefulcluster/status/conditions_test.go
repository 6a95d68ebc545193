package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

func TestAvailableCondition(t *testing.T) {
	slow := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 })
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"all members are available", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), "True AllMembersAvailable: 3 of 3 members are available"},
		{"a set with replicas 0 is available", fixture.Seen(fixture.Set("db").Replicas(0)), "True AllMembersAvailable: 0 of 0 members are available"},
		{"one member is not Ready", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Starting("c")), "False MembersUnavailable: 2 of 3 members are available"},
		{"one member has not been Ready for minReadySeconds", fixture.Seen(slow, fixture.A(), fixture.B(), fixture.Pod("c").On("n1").ReadyFor(time.Second)), "False MembersUnavailable: 2 of 3 members are available"},
		{"the Node of one member is deleted", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().NodeGone()), "False MembersUnavailable: 2 of 3 members are available"},
		{"one member is being patched", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().Patching(`{"resize":true}`)), "False MembersUnavailable: 2 of 3 members are available"},
		{"the spec is invalid", fixture.Seen(fixture.Set("d.b"), fixture.A(), fixture.B(), fixture.C()), "False InvalidSpec: the spec is invalid; see condition Degraded"},
	} {
		if got := fixture.Says(fixture.Told(r.world), v1alpha1.ConditionAvailable); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

func TestProgressingCondition(t *testing.T) {
	partition := func() *fixture.SetFixture { return fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: 2}) }
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"no operation in progress with 3 members", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), "False Complete: no operation in progress; the set has 3 members"},
		{"no operation in progress with 1 member", fixture.Seen(fixture.Set("db").Replicas(1), fixture.A()), "False Complete: no operation in progress; the set has 1 member"},
		{"no operation in progress with 0 members", fixture.Seen(fixture.Set("db").Replicas(0)), "False Complete: no operation in progress; the set has 0 members"},
		{"too few members", fixture.Seen(fixture.Set("db"), fixture.A()), "True Scaling: the set has 1 member and should have 3"},
		{"a surge update with one additional member", fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.Starting("d"), fixture.OldImage()), "True Updating: 1 of 3 members have revision now; not Ready: db-d"},
		{"too many members", fixture.Seen(fixture.Set("db").Replicas(1), fixture.A(), fixture.B()), "True Scaling: the set has 2 members and should have 1"},
		{"one lost member", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().NodeGone()), "True Replacing: replacing 1 member"},
		{"two lost members", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B().NodeGone(), fixture.C().NodeGone()), "True Replacing: replacing 2 members"},
		{"one member that a user deleted", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().Going()), "True Replacing: replacing 1 member"},
		{"a replacement that is not Ready", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Starting("c").InPlaceOf("x", 1)), "True Replacing: replacing 1 member"},
		{"one member of an old revision", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.OldC(), fixture.OldImage()), "True Updating: 2 of 3 members have revision now"},
		{"one member being patched", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().Patching(`{"resize":true}`)), "True Updating: 2 of 3 members have revision now"},
		{"one returning member", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Pod("c").On("n1").Going(), fixture.Updating("c", "uid-of-c", "now")), "True Updating: 2 of 3 members have revision now"},
		{"old members kept by a partition", fixture.Seen(partition(), fixture.A(), fixture.OldB(), fixture.OldC(), fixture.OldImage()),
			"False Complete: 1 of 3 members have revision now; rollingUpdate.partition keeps 2 members at revision old"},
		{"one old member kept by a partition of 2", fixture.Seen(partition().Replicas(1), fixture.OldB(), fixture.OldImage()),
			"False Complete: 0 of 1 members have revision now; rollingUpdate.partition keeps 1 member at revision old"},
		{"old members of two revisions kept by a partition", fixture.Seen(partition(), fixture.A(), fixture.OldB(), fixture.C().Of("older"), fixture.OldImage(), fixture.RevisionOfImage("older", "minus one")),
			"False Complete: 1 of 3 members have revision now; rollingUpdate.partition keeps 2 members at revision old, older"},
		{"no old members with a partition", fixture.Seen(partition(), fixture.A(), fixture.B(), fixture.C()), "False Complete: no operation in progress; the set has 3 members"},
		{"old members with OnDelete", fixture.Seen(fixture.Set("db").OnDelete(), fixture.A(), fixture.OldB(), fixture.OldC(), fixture.OldImage()),
			"False Complete: 1 of 3 members have the new template; a member keeps its template until it is deleted (updateStrategy OnDelete)"},
		{"no old members with OnDelete", fixture.Seen(fixture.Set("db").OnDelete(), fixture.A(), fixture.B(), fixture.C()), "False Complete: no operation in progress; the set has 3 members"},
		{"one starting member", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Starting("c")), "True WaitingForMembers: waiting for 1 member to become available; not Ready: db-c"},
		{"two starting members", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.Starting("b"), fixture.Starting("c")), "True WaitingForMembers: waiting for 2 members to become available; not Ready: db-b, db-c"},
		{"one member that has not been Ready for minReadySeconds", fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }), fixture.A(), fixture.B(), fixture.Pod("c").On("n1").ReadyFor(0)),
			"True WaitingForMembers: waiting for 1 member to become available"},
		{"an update blocked by a bad image", fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.Starting("c").Waiting("ImagePullBackOff"), fixture.OldImage()),
			"True Updating: 1 of 3 members have revision now; not Ready: db-c (ImagePullBackOff)"},
		{"a scale-up blocked by an unschedulable member", fixture.Seen(fixture.Set("db").OrderedReady(), fixture.A(), fixture.Pod("b").UnschedulableFor(time.Minute)),
			"True Scaling: the set has 2 members and should have 3; not Ready: db-b (Unschedulable)"},
		{"the spec is invalid", fixture.Seen(fixture.Set("d.b"), fixture.A()), "False InvalidSpec: no action is taken until the spec is corrected"},
	} {
		if got := fixture.Says(fixture.Told(r.world), v1alpha1.ConditionProgressing); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

// A crashing container runs between two crashes. A message that followed it would be written again
// and again.
func TestWhoCrashesIsSaidToUntilReady(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Starting("c").Waiting("CrashLoopBackOff"))
	crashes := "True WaitingForMembers: waiting for 1 member to become available; not Ready: db-c (CrashLoopBackOff)"
	known := &observe.Remembered{Retired: map[types.UID]bool{}}
	look := func(why, want string) {
		t.Helper()
		known.Recall(w)
		f := facts.Derive(w)
		p := rules.Decide(f)
		status := status.Summarize(f, &p, status.Results{})
		if got := fixture.Says(status, v1alpha1.ConditionProgressing); got != want {
			t.Errorf("%s: %s, want %s", why, got, want)
		}
		if err := known.Learn(f, p.GivenUp, nil); err != nil {
			t.Error(err)
		}
	}
	look("the container waits after a crash", crashes)
	w.Members[2].Pod = fixture.Seen(fixture.Set("db"), fixture.Starting("c")).Members[0].Pod
	look("the container runs between two crashes", crashes)
	w.Members[2].Pod.Status.ContainerStatuses = fixture.Waiting("ErrImagePull")
	look("the image cannot be pulled after a crash", strings.ReplaceAll(crashes, "CrashLoopBackOff", "ImagePullBackOff"))
	w.Members[2].Pod.Status.ContainerStatuses = fixture.Waiting("CrashLoopBackOff")
	look("the container crashes again", crashes)
	w.Members[2].Pod.Status.ContainerStatuses = nil
	w.Set.Generation++
	look("a user changed the spec", strings.TrimSuffix(crashes, " (CrashLoopBackOff)"))
}

func TestDegradedCondition(t *testing.T) {
	gone := func(id string) *fixture.PodFixture { return fixture.Pod(id).On("n9").Ready().NodeGone() }
	theirs := fixture.With(func(w *facts.World) { w.Budget.OwnerReferences = nil })
	foreign := fixture.With(func(w *facts.World) { w.Foreign = []string{"p1", "p2"} })
	many := fixture.With(func(w *facts.World) {
		for i := range 12 {
			w.Foreign = append(w.Foreign, fmt.Sprintf("p%d", i))
		}
	})
	failing := fixture.Pod("c").Recreated().On("n3").Starting()
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"no problems", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), "False Healthy: no problems detected"},
		{"SC-28 the spec is invalid", fixture.Seen(fixture.Set("d.b")), `True InvalidSpec: metadata.name: Invalid value: "d.b": must not contain dots`},
		{"SC-38 lost members are held", fixture.Seen(fixture.Set("db"), gone("a"), gone("b"), fixture.C()),
			"True ReplacementHeld: replacement.maxConcurrent allows replacing 1 member at a time; lost members pending replacement: db-b; raise it to replace all at once"},
		{"SC-38 several lost members are held", fixture.Seen(fixture.Set("db").Replicas(4).MaxConcurrent("2").ReplacesInOutage(), gone("a"), gone("b"), gone("c"), gone("d")),
			"True ReplacementHeld: replacement.maxConcurrent allows replacing 2 members at a time; lost members pending replacement: db-c, db-d; raise it to replace all at once"},
		{"SC-41 a template fails", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), failing),
			"True RevisionFailing: members do not become Ready and are not replaced, because new members with the same template would fail in the same way: db-c; `kubectl -n ns describe pod db-c` shows why; correct the template"},
		{"SC-18 a write was refused", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Refused(facts.ReasonMissing, "exceeded quota", time.Minute)), "True WriteRefused: exceeded quota; raise the quota or free some of it: kubectl -n ns describe quota"},
		{"the expansion of a claim is refused", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonExpand, "no expansion", time.Minute)), "True ClaimResizeRefused: no expansion"},
		{"many members are unready", fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").UnreadyFor(50*time.Minute), fixture.Pod("b").On("n2").UnreadyFor(0), fixture.C()),
			"True ReplacementHeld: 2 members are unready at the same time, more than replacement.maxConcurrent (1), so unready members are not replaced; look for a common cause; `kubectl -n ns describe pod db-a` shows one of them"},
		{"SC-16 foreign pods", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), foreign),
			"True ForeignPods: pods that are not members match the selector and are ignored: p1, p2; Services that select them send them traffic; `kubectl -n ns get pod p1 --show-labels` shows which labels to change"},
		{"many foreign pods", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), many),
			"True ForeignPods: pods that are not members match the selector and are ignored: p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more; Services that select them send them traffic; `kubectl -n ns get pod p0 --show-labels` shows which labels to change"},
		{"a budget of another owner", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), theirs),
			"True WriteRefused: PodDisruptionBudget db exists and belongs to another owner, so none is created; rename it if the members need one"},
		{"the most severe problem is reported: held replacements before refused writes before foreign pods", fixture.Seen(fixture.Set("db"), gone("a"), gone("b"), fixture.C(), foreign, fixture.Refused(facts.ReasonExpand, "no", time.Minute)),
			"True ReplacementHeld: replacement.maxConcurrent allows replacing 1 member at a time; lost members pending replacement: db-b; raise it to replace all at once"},
		{"lost members that wait for a refused create are not reported as held", fixture.Seen(fixture.Set("db"), fixture.A().NodeGone(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonReplaced, "create pod db-x: exceeded quota", time.Minute)),
			"True WriteRefused: create pod db-x: exceeded quota; raise the quota or free some of it: kubectl -n ns describe quota; lost members waiting for their replacements: db-a"},
		{"a refused write comes before a refused expansion", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonExpand, "no", time.Minute), fixture.Refused(facts.ReasonClaim, "quota", time.Minute)), "True WriteRefused: quota; change what rejects the pod, or change the template: kubectl -n ns get events --field-selector reason=FailedCreate"},
		{"a long message is truncated", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonClaim, strings.Repeat("x", 2000), time.Minute)), "True WriteRefused: " + strings.Repeat("x", 1024)},
	} {
		if got := fixture.Says(fixture.Told(r.world), v1alpha1.ConditionDegraded); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestConditionsAreDated(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C())
	w.Set.Status = fixture.Told(w)
	w.Now = fixture.Noon.Add(time.Hour)
	for _, c := range fixture.Told(w).Conditions {
		if !c.LastTransitionTime.Time.Equal(fixture.Noon) || c.ObservedGeneration != 7 {
			t.Errorf("%s did not change, but has lastTransitionTime %v and observedGeneration %d", c.Type, c.LastTransitionTime, c.ObservedGeneration)
		}
	}
	w.Members[0].Pod.Status.Conditions = nil
	if c := meta.FindStatusCondition(fixture.Told(w).Conditions, v1alpha1.ConditionAvailable); !c.LastTransitionTime.Time.Equal(w.Now) {
		t.Errorf("Available changed now, but has lastTransitionTime %v", c.LastTransitionTime)
	}
}

// An invalid spec leaves the revisions in the status as they are; its pods are still counted.
func TestAnInvalidSpecKeepsWhatWasKnown(t *testing.T) {
	s := fixture.Set("d.b")
	s.Status.ReadyReplicas, s.Status.CurrentRevision = 5, "then"
	if got := fixture.Told(fixture.Seen(s, fixture.A())); got.ReadyReplicas != 1 || got.CurrentRevision != "then" || got.ObservedGeneration != 7 {
		t.Errorf("status is %+v", got)
	}
}

func lines(lost []v1alpha1.LostMember) (out []string) {
	for _, l := range lost {
		out = append(out, fmt.Sprintf("%s %s %s", l.Name, l.Reason, strings.Join(l.Claims, ",")))
	}
	return out
}
