package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

func TestRollOutRecreates(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "SC-22 one member is recreated at a time, after its name is recorded",
			World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Want: fixture.Recreates("a")},
		{Name: "SC-22 no other member is recreated while the first is terminating",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Going(), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now"))},
		{Name: "SC-22 the pod is recreated when the old pod is deleted",
			World: fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now")), Want: fixture.Brings("a")},
		{Name: "SC-22 no other member is recreated until the first is Ready",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").Aged(time.Minute).Recreated().On("n1").Starting(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Wait: 9 * time.Minute},
		{Name: "no other member is recreated before minReadySeconds have passed",
			World: fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }),
				fixture.Pod("a").Recreated().On("n1").ReadyFor(time.Minute-1), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Wait: 1},
		{Name: "the next member is recreated after minReadySeconds",
			World: fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }),
				fixture.Pod("a").Recreated().On("n1").ReadyFor(time.Minute), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Want: fixture.Recreates("b")},
		{Name: "maxUnavailable 2 recreates two members at a time", World: fixture.Seen(fixture.Set("db").MaxUnavailable(2), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Want: fixture.Recreates("a", "b")},
		{Name: "maxUnavailable as a percentage is rounded up",
			World: fixture.Seen(fixture.Set("db").Rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromString("34%"))}), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()),
			Want:  fixture.Recreates("a", "b")},
		{Name: "an unready member is updated first",
			World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.Pod("b").Aged(time.Minute).On("n2").Starting().Of("old"), fixture.OldC(), fixture.OldCommand()), Want: fixture.Recreates("b"), Wait: 9 * time.Minute},
		{Name: "SC-41 all unready members are updated at once regardless of maxUnavailable",
			World: fixture.Seen(fixture.Set("db").MaxConcurrent("3"), fixture.Pod("a").Aged(time.Minute).On("n1").Starting().Of("old"), fixture.Pod("b").Aged(time.Minute).On("n2").Starting().Of("old"), fixture.OldC(), fixture.OldCommand()),
			Want:  fixture.Recreates("a", "b"), Wait: 9 * time.Minute},
		{Name: "a member with annotation delete-first is updated first", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC().DeleteFirst(), fixture.OldCommand()), Want: fixture.Recreates("c")},
		{Name: "a younger member is updated before an older one", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.Pod("c").Aged(time.Minute).On("n3").ReadyFor(time.Second).Of("old"), fixture.OldCommand()), Want: fixture.Recreates("c")},
		{Name: "members beyond the partition are updated",
			World: fixture.Seen(fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: 2}), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Want: fixture.Recreates("a")},
		{Name: "no member that the partition keeps is updated",
			World: fixture.Seen(fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: 2}), fixture.A(), fixture.OldB(), fixture.OldC(), fixture.OldCommand())},
		{Name: "SC-23 OnDelete updates no members", World: fixture.Seen(fixture.Set("db").OnDelete(), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand())},
		{Name: "SC-23 a member deleted under OnDelete is replaced under a new name",
			World: fixture.Seen(fixture.Set("db").OnDelete(), fixture.OldA().Going(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "a member whose revision was deleted is recreated",
			World: fixture.Seen(fixture.Set("db"), fixture.A().Labelled(spec.LabelRevision, "forgotten"), fixture.B(), fixture.C()), Want: fixture.Recreates("a")},
		{Name: "inPlace Never recreates a member for a new image",
			World: fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.UpdateStrategy.InPlace = v1alpha1.InPlaceNever }), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage()),
			Want:  fixture.Recreates("a")},
		{Name: "members on a lost node do not count as available",
			World: fixture.Seen(fixture.Set("db"), fixture.A().NodeGone().InPlaceOf("x", 9).Aged(0), fixture.OldB(), fixture.OldC(), fixture.OldCommand()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}},
	})
}

// SC-48 A dry-run create of the new pod comes before the deletion of the first old one.
func TestNobodyGoesForAPodThatIsRefused(t *testing.T) {
	policy := fixture.Refused(facts.ReasonTrial, "policy", time.Minute)
	overSurge := func() *fixture.SetFixture {
		return fixture.Set("db").Rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(1))})
	}
	fixture.Check(t, []fixture.Row{
		{Name: "SC-48 an update starts with a dry-run create of the first new pod", World: fixture.Seen(fixture.Set("db").MaxUnavailable(2), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand()), Want: fixture.Recreates("a", "b")},
		{Name: "SC-48 no pod is deleted while the new pod is refused", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), policy), Wait: time.Minute},
		{Name: "SC-48 no unready pod is deleted while the new pod is refused", World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").Aged(time.Minute).On("n1").Starting().Of("old"), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), policy), Wait: time.Minute},
		{Name: "SC-48 a refused dry-run create is retried when its retry time has come", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Refused(facts.ReasonTrial, "policy", 0)), Want: fixture.Recreates("a")},
		{Name: "an in-place update continues while new pods are refused", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage(), policy), Want: fixture.UpdatesInPlace("a")},
		{Name: "a returning member is recreated while the dry-run create is refused", World: fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now"), policy), Want: fixture.Brings("a")},
		{Name: "SC-48 no member is retired for a surge update while new members are refused",
			World: fixture.Seen(overSurge(), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Refused(facts.ReasonMissing, "policy", time.Minute)), Wait: time.Minute},
	})
	tried := fixture.PlanOf(fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand())).Steps[0][0][0].Object
	made := fixture.FirstWritten(fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now")))
	if !apiequality.Semantic.DeepEqual(tried, made) {
		t.Errorf("pod of the dry run differs from the created pod:\n%v\n%v", tried, made)
	}
}

// SC-48 Condition Degraded reports why no member is updated, and what to do.
func TestARefusedTrialIsTold(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand())
	p := fixture.PlanOf(w)
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-a", errors.New("no PriorityClass with name none was found"))
	known := &observe.Remembered{Refused: map[string]facts.Refusal{}, Retired: map[types.UID]bool{}, Crashed: map[types.UID]bool{}}
	outcomes := []action.Outcome{{Action: p.Steps[0][0][0], Err: fmt.Errorf("try pod db-a: %w", no)}}
	if err := known.Learn(facts.Derive(w), p.GivenUp, outcomes); err != nil {
		t.Errorf("a refused dry-run create is retried at once: %v", err)
	}
	status := status.Summarize(facts.Derive(w), &p, status.Results{Outcomes: outcomes, Refused: known.Refused})
	want := `True WriteRefused: no pod is deleted for the update, because the API server would refuse the new pod; ` +
		`correct the template or the cause of the refusal: try pod db-a: pods "db-a" is forbidden: no PriorityClass with name none was found; create it, or name another in the template: kubectl get priorityclasses`
	if got := fixture.Says(status, v1alpha1.ConditionDegraded); got != want {
		t.Errorf("condition Degraded is %s, want %s", got, want)
	}
	if len(status.Updating) > 0 {
		t.Errorf("status.updating is %v, but no pod was deleted", status.Updating)
	}
}

func TestSurge(t *testing.T) {
	d := func() *fixture.PodFixture { return fixture.Pod("d").On("n4").Ready() }
	fixture.Check(t, []fixture.Row{
		{Name: "a surge creates a member of the new revision with a new name", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage()), Want: fixture.Creates("f1")},
		{Name: "no old member is retired before the new member is Ready",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.Pod("d").Aged(time.Minute).On("n4").Starting(), fixture.OldImage()), Wait: 9 * time.Minute},
		{Name: "one old member is retired when the new member is available", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA(), fixture.OldB(), fixture.OldC(), d(), fixture.OldImage()), Want: retires("a")},
		{Name: "another member is created while an old member is terminating", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA().ClaimsRetained().Going(), fixture.OldB(), fixture.OldC(), d(), fixture.OldImage()), Want: fixture.Creates("f1")},
		{Name: "a surge creates no more members than old members exist", World: fixture.Seen(fixture.Set("db").Surge(3), fixture.A(), fixture.B(), fixture.OldC(), fixture.OldImage()), Want: fixture.Creates("f1")},
		{Name: "a surge retires the member on the most crowded node, as in scale-down order",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n2").Ready().Of("old"), d(), fixture.OldImage()), Want: retires("b")},
		{Name: "surplus members are retired when the surge update is complete", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.A(), fixture.B(), fixture.C(), d()), Want: retires("a")},
		{Name: "SC-49 the last old member is lost, not retired, and has a successor already",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA().NodeGone(), fixture.B(), fixture.C(), d(), fixture.OldImage()), Want: []string{fixture.DeletesLost("a", v1alpha1.LossNodeGone)}},
		{Name: "SC-49 one of two old members is lost and replaced, because the other needs a new member too",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.OldA().NodeGone(), fixture.OldB(), fixture.C(), d(), fixture.OldImage()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{Name: "SC-49 a lost old member that never ran is retired",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.Pod("a").Aged(time.Hour).On("n1").Starting().WithoutContainers().NodeGone().Of("old"), fixture.B(), fixture.C(), d(), fixture.OldImage()), Want: retires("a")},
		{Name: "a lost member is retired first when the surge update is complete", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.A().NodeGone(), fixture.B(), fixture.C(), d()), Want: retires("a")},
		{Name: "maxSurge as a percentage is rounded up",
			World: fixture.Seen(fixture.Set("db").Rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromString("34%"))}),
				fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage()), Want: fixture.Creates("f1", "f2")},
	})
}

func TestEvictions(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "an evicted member is lost with onEviction Replace", World: fixture.Seen(fixture.Set("db"), fixture.A().Evicted(), fixture.B(), fixture.C()), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "an evicted member is recorded with onEviction Keep while its pod is terminating",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Evicted(), fixture.B(), fixture.C()), Want: []string{"patch status of statefulcluster db: Update"}},
		{Name: "an evicted member waits with onEviction Keep until its pod is deleted",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Evicted(), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now"))},
		{Name: "an evicted member is recreated with onEviction Keep when its pod is deleted",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")), Want: fixture.Brings("a")},
		{Name: "a member that a user deleted is lost with onEviction Keep", World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Going(), fixture.B(), fixture.C()), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "a retired member is not recreated with onEviction Keep",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted().Replicas(2), fixture.A().ClaimsRetained().Evicted(), fixture.B(), fixture.C())},
		{Name: "an evicted member with a successor is not recreated with onEviction Keep",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Evicted(), fixture.B().InPlaceOf("a", 1), fixture.C(), fixture.Pod("d").On("n4").Ready())},
		{Name: "a lost member whose pod is evicted later is not recreated with onEviction Keep",
			World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Evicted(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
				w.Set.Status.Lost = []v1alpha1.LostMember{{Name: "db-a", Reason: v1alpha1.LossNodeGone}}
			})), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
	})
	p := fixture.PlanOf(fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Of("old").Evicted(), fixture.B(), fixture.C(), fixture.OldImage()))
	if len(p.Updating) != 1 || p.Updating[0] != (v1alpha1.UpdatingMember{Name: "db-a", UID: "uid-of-a", Revision: "old", Reason: v1alpha1.UpdatingEviction}) {
		t.Errorf("status.updating is %v, want db-a with revision old", p.Updating)
	}
}

func TestW2SurgeUpdates(t *testing.T) {
	one := func(things ...fixture.Thing) *facts.World {
		return fixture.Seen(fixture.Set("db").Replicas(1).Surge(1), append(things, fixture.OldImage())...)
	}
	down := func(id, node string) *fixture.PodFixture {
		return fixture.Pod(id).Of("old").On(node).UnreadyFor(time.Minute).NodeNotReadyFor(time.Minute)
	}
	fixture.Check(t, []fixture.Row{
		{Name: "W2 an old member with data is retired only when a new member is available",
			World: one(fixture.OldA(), fixture.Pod("d").Aged(2*time.Second).On("n4").Starting()), Wait: 10*time.Minute - 2*time.Second},
		{Name: "W2 an unready old member with data is kept until a new member is available",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.Pod("a").Of("old").On("n1").UnreadyFor(time.Second), fixture.OldB(), fixture.OldC(), fixture.Pod("d").Aged(2*time.Second).On("n4").Starting(), fixture.OldImage()), Wait: 5*time.Minute - time.Second},
		{Name: "W2 an unready old member with data is retired when a new member is available", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.Pod("a").Of("old").On("n1").UnreadyFor(time.Second), fixture.OldB(), fixture.OldC(), fixture.Pod("d").On("n4").Ready(), fixture.OldImage()),
			Want: retires("a"), Wait: 5*time.Minute - time.Second},
		{Name: "W2 an old member that never ran is retired at once", World: fixture.Seen(fixture.Set("db").Surge(1), fixture.Pod("a").Of("old").Aged(time.Minute), fixture.OldB(), fixture.OldC(), fixture.Pod("d").Aged(2*time.Second).On("n4").Starting(), fixture.OldImage()),
			Want: retires("a"), Wait: 10*time.Minute - 2*time.Second},
		{Name: "W2 no old member is retired in an outage",
			World: fixture.Seen(fixture.Set("db").Surge(1), down("a", "n1"), down("b", "n2"), down("c", "n3"), fixture.Pod("d").Aged(2*time.Minute).On("n4").Starting().NodeNotReadyFor(time.Minute), fixture.OldImage())},
	})
}

func TestWhatComesBack(t *testing.T) {
	w := fixture.Seen(fixture.Set("db").OnDelete(), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "old"), fixture.OldImage())
	made := fixture.FirstWritten(w).(*corev1.Pod)
	switch {
	case made.Name != "db-a" || made.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "db-data-a":
		t.Errorf("%s is recreated with volumes %v", made.Name, made.Spec.Volumes)
	case facts.RevisionOf(made) != "old" || made.Spec.Containers[0].Image != "zero":
		t.Errorf("the pod has revision %s and image %s, want old and zero as in its entry", facts.RevisionOf(made), made.Spec.Containers[0].Image)
	case made.Annotations[v1alpha1.AnnotationUpdated] != string(v1alpha1.UpdatingUpdate):
		t.Error("the pod has no annotation with the reason of its return, so it would be lost while unready")
	}
	w = fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "forgotten"))
	if made := fixture.FirstWritten(w).(*corev1.Pod); facts.RevisionOf(made) != "now" {
		t.Errorf("a member whose revision was deleted returns with revision %s, want that of the spec", facts.RevisionOf(made))
	}
}

// A pod has the service of its revision, which cannot be changed in a running pod.
func TestAServiceRollsOut(t *testing.T) {
	in := func(service string) *fixture.SetFixture {
		return fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.ServiceName = service })
	}
	old := func(service string) fixture.Thing {
		return fixture.RevisionWith("old", func(d *children.RevisionData) { d.ServiceName = service })
	}
	fixture.Check(t, []fixture.Row{
		{Name: "SC-26 adding a service recreates members", World: fixture.Seen(in("peers"), fixture.OldA(), fixture.OldB(), fixture.OldC(), old("")), Want: fixture.Recreates("a")},
		{Name: "SC-26 changing the service recreates members", World: fixture.Seen(in("peers"), fixture.OldA(), fixture.OldB(), fixture.OldC(), old("friends")), Want: fixture.Recreates("a")},
		{Name: "SC-26 removing the service recreates members", World: fixture.Seen(in(""), fixture.OldA(), fixture.OldB(), fixture.OldC(), old("friends")), Want: fixture.Recreates("a")},
		{Name: "SC-26 changing the service recreates no members with OnDelete", World: fixture.Seen(in("peers").OnDelete(), fixture.OldA(), fixture.OldB(), fixture.OldC(), old("friends"))},
		{Name: "SC-26 a set with an unchanged service has no steps", World: fixture.Seen(in("peers"), fixture.A(), fixture.B(), fixture.C())},
	})
	for revision, want := range map[string]string{"old": "friends", "now": "peers"} {
		w := fixture.Seen(in("peers").OnDelete(), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", revision), old("friends"))
		made := fixture.FirstWritten(w).(*corev1.Pod)
		if made.Spec.Hostname != "db-a" || made.Spec.Subdomain != want {
			t.Errorf("SC-26 a member that returns with revision %s is %s.%s, want db-a.%s", revision, made.Spec.Hostname, made.Spec.Subdomain, want)
		}
	}
	if raw := string(children.BuildRevision(fixture.Seen(in("")).Settings, nil).Data.Raw); strings.Contains(raw, "serviceName") {
		t.Errorf("a set without a service has serviceName in its revision, which changes its name: %s", raw)
	}
}

// A partition keeps members at the current revision. A new member replaces one that was lost there.
func TestNewMembersUnderAPartition(t *testing.T) {
	under := func(partition int32, things ...fixture.Thing) string {
		s := fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: partition})
		s.Status.CurrentRevision = "old"
		for _, a := range fixture.PlanOf(fixture.Seen(s, append(things, fixture.OldImage())...)).Steps[0][0] {
			if made, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create {
				return facts.RevisionOf(made)
			}
		}
		return "none"
	}
	for _, r := range []struct{ name, got, want string }{
		{"too few members have the current revision", under(2, fixture.A(), fixture.OldB()), "old"},
		{"enough members have the current revision", under(1, fixture.A(), fixture.OldB()), "now"},
		{"no partition", under(0, fixture.A(), fixture.OldB()), "now"},
		{"a terminating member does not count towards the partition", under(1, fixture.A(), fixture.B(), fixture.OldC().Going()), "old"},
		{"a lost member does not count towards the partition", under(1, fixture.A(), fixture.B(), fixture.OldC().NodeGone()), "old"},
	} {
		if r.got != r.want {
			t.Errorf("%s: the new member has revision %s, want %s", r.name, r.got, r.want)
		}
	}
	s := fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: 1})
	s.Status.CurrentRevision = "old"
	var made []string
	for _, chain := range fixture.PlanOf(fixture.Seen(s, fixture.OldImage())).Steps[0] {
		made = append(made, facts.RevisionOf(chain[0].Object.(*corev1.Pod)))
	}
	if len(made) != 3 || made[0] != "old" || made[1] != "now" || made[2] != "now" {
		t.Errorf("revisions of three new members with partition 1 are %v", made)
	}
}
