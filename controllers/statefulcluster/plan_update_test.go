package statefulcluster

import (
	"errors"
	"fmt"
	"slices"
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
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// oldA, oldB and oldC are the members before their template changed: only the image, or a field
// that cannot be changed in a running pod.
func oldA() *podFixture { return a().of("old") }

func oldB() *podFixture { return b().of("old") }
func oldC() *podFixture { return c().of("old") }

func oldImage() thing { return revisionOfImage("old", "zero") }

func oldCommand() thing {
	return revisionWith("old", func(d *children.RevisionData) { d.Template.Spec.Containers[0].Command = []string{"old"} })
}

func TestRollOutRecreates(t *testing.T) {
	check(t, []row{
		{name: "SC-22 one member is recreated at a time, after its name is recorded",
			world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a")},
		{name: "SC-22 no other member is recreated while the first is terminating",
			world: seen(set("db"), pod("a").on("n1").going(), oldB(), oldC(), oldCommand(), updating("a", "uid-of-a", "now"))},
		{name: "SC-22 the pod is recreated when the old pod is deleted",
			world: seen(set("db"), looseClaimOf("a"), oldB(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "SC-22 no other member is recreated until the first is Ready",
			world: seen(set("db"), pod("a").aged(time.Minute).recreated().on("n1").starting(), oldB(), oldC(), oldCommand()), wait: 9 * time.Minute},
		{name: "no other member is recreated before minReadySeconds have passed",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }),
				pod("a").recreated().on("n1").readyFor(time.Minute-1), oldB(), oldC(), oldCommand()), wait: 1},
		{name: "the next member is recreated after minReadySeconds",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }),
				pod("a").recreated().on("n1").readyFor(time.Minute), oldB(), oldC(), oldCommand()), want: recreates("b")},
		{name: "maxUnavailable 2 recreates two members at a time", world: seen(set("db").maxUnavailable(2), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a", "b")},
		{name: "maxUnavailable as a percentage is rounded up",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromString("34%"))}), oldA(), oldB(), oldC(), oldCommand()),
			want:  recreates("a", "b")},
		{name: "an unready member is updated first",
			world: seen(set("db"), oldA(), pod("b").aged(time.Minute).on("n2").starting().of("old"), oldC(), oldCommand()), want: recreates("b"), wait: 9 * time.Minute},
		{name: "SC-41 all unready members are updated at once regardless of maxUnavailable",
			world: seen(set("db").maxConcurrent("3"), pod("a").aged(time.Minute).on("n1").starting().of("old"), pod("b").aged(time.Minute).on("n2").starting().of("old"), oldC(), oldCommand()),
			want:  recreates("a", "b"), wait: 9 * time.Minute},
		{name: "a member with annotation delete-first is updated first", world: seen(set("db"), oldA(), oldB(), oldC().deleteFirst(), oldCommand()), want: recreates("c")},
		{name: "a younger member is updated before an older one", world: seen(set("db"), oldA(), oldB(), pod("c").aged(time.Minute).on("n3").readyFor(time.Second).of("old"), oldCommand()), want: recreates("c")},
		{name: "members beyond the partition are updated",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{Partition: 2}), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a")},
		{name: "no member that the partition keeps is updated",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{Partition: 2}), a(), oldB(), oldC(), oldCommand())},
		{name: "SC-23 OnDelete updates no members", world: seen(set("db").onDelete(), oldA(), oldB(), oldC(), oldCommand())},
		{name: "SC-23 a member deleted under OnDelete is replaced under a new name",
			world: seen(set("db").onDelete(), oldA().going(), oldB(), oldC(), oldCommand()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "a member whose revision was deleted is recreated",
			world: seen(set("db"), a().labelled(spec.LabelRevision, "forgotten"), b(), c()), want: recreates("a")},
		{name: "inPlace Never recreates a member for a new image",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.UpdateStrategy.InPlace = v1alpha1.InPlaceNever }), oldA(), oldB(), oldC(), oldImage()),
			want:  recreates("a")},
		{name: "members on a lost node do not count as available",
			world: seen(set("db"), a().nodeGone().inPlaceOf("x", 9).aged(0), oldB(), oldC(), oldCommand()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
	})
}

// SC-48 A dry-run create of the new pod comes before the deletion of the first old one.
func TestNobodyGoesForAPodThatIsRefused(t *testing.T) {
	policy := refused(facts.ReasonTrial, "policy", time.Minute)
	overSurge := func() *setFixture {
		return set("db").rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(1))})
	}
	check(t, []row{
		{name: "SC-48 an update starts with a dry-run create of the first new pod", world: seen(set("db").maxUnavailable(2), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a", "b")},
		{name: "SC-48 no pod is deleted while the new pod is refused", world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand(), policy), wait: time.Minute},
		{name: "SC-48 no unready pod is deleted while the new pod is refused", world: seen(set("db"), pod("a").aged(time.Minute).on("n1").starting().of("old"), oldB(), oldC(), oldCommand(), policy), wait: time.Minute},
		{name: "SC-48 a refused dry-run create is retried when its retry time has come", world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand(), refused(facts.ReasonTrial, "policy", 0)), want: recreates("a")},
		{name: "an in-place update continues while new pods are refused", world: seen(set("db"), oldA(), oldB(), oldC(), oldImage(), policy), want: updatesInPlace("a")},
		{name: "a returning member is recreated while the dry-run create is refused", world: seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now"), policy), want: brings("a")},
		{name: "SC-48 no member is retired for a surge update while new members are refused",
			world: seen(overSurge(), oldA(), oldB(), oldC(), oldCommand(), refused(facts.ReasonMissing, "policy", time.Minute)), wait: time.Minute},
	})
	tried := planOf(seen(set("db"), oldA(), oldB(), oldC(), oldCommand())).Steps[0][0][0].Object
	made := firstWritten(seen(set("db"), looseClaimOf("a"), oldB(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")))
	if !apiequality.Semantic.DeepEqual(tried, made) {
		t.Errorf("pod of the dry run differs from the created pod:\n%v\n%v", tried, made)
	}
}

// SC-48 Condition Degraded reports why no member is updated, and what to do.
func TestARefusedTrialIsTold(t *testing.T) {
	w := seen(set("db"), oldA(), oldB(), oldC(), oldCommand())
	p := planOf(w)
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-a", errors.New("no PriorityClass with name none was found"))
	known := &observe.Remembered{Refused: map[string]facts.Refusal{}, Retired: map[types.UID]bool{}, Crashed: map[types.UID]bool{}}
	outcomes := []action.Outcome{{Action: p.Steps[0][0][0], Err: fmt.Errorf("try pod db-a: %w", no)}}
	if err := known.Learn(facts.Derive(w), p.GivenUp, outcomes); err != nil {
		t.Errorf("a refused dry-run create is retried at once: %v", err)
	}
	status := status.Summarize(facts.Derive(w), &p, status.Results{Outcomes: outcomes, Refused: known.Refused})
	want := `True WriteRefused: no pod is deleted for the update, because the API server would refuse the new pod; ` +
		`correct the template or the cause of the refusal: try pod db-a: pods "db-a" is forbidden: no PriorityClass with name none was found; create it, or name another in the template: kubectl get priorityclasses`
	if got := says(status, v1alpha1.ConditionDegraded); got != want {
		t.Errorf("condition Degraded is %s, want %s", got, want)
	}
	if len(status.Updating) > 0 {
		t.Errorf("status.updating is %v, but no pod was deleted", status.Updating)
	}
}

func TestSurge(t *testing.T) {
	d := func() *podFixture { return pod("d").on("n4").ready() }
	check(t, []row{
		{name: "a surge creates a member of the new revision with a new name", world: seen(set("db").surge(1), oldA(), oldB(), oldC(), oldImage()), want: creates("f1")},
		{name: "no old member is retired before the new member is Ready",
			world: seen(set("db").surge(1), oldA(), oldB(), oldC(), pod("d").aged(time.Minute).on("n4").starting(), oldImage()), wait: 9 * time.Minute},
		{name: "one old member is retired when the new member is available", world: seen(set("db").surge(1), oldA(), oldB(), oldC(), d(), oldImage()), want: retires("a")},
		{name: "another member is created while an old member is terminating", world: seen(set("db").surge(1), oldA().claimsRetained().going(), oldB(), oldC(), d(), oldImage()), want: creates("f1")},
		{name: "a surge creates no more members than old members exist", world: seen(set("db").surge(3), a(), b(), oldC(), oldImage()), want: creates("f1")},
		{name: "a surge retires the member on the most crowded node, as in scale-down order",
			world: seen(set("db").surge(1), oldA(), oldB(), pod("c").on("n2").ready().of("old"), d(), oldImage()), want: retires("b")},
		{name: "surplus members are retired when the surge update is complete", world: seen(set("db").surge(1), a(), b(), c(), d()), want: retires("a")},
		{name: "SC-49 the last old member is lost, not retired, and has a successor already",
			world: seen(set("db").surge(1), oldA().nodeGone(), b(), c(), d(), oldImage()), want: []string{deletesLost("a", v1alpha1.LossNodeGone)}},
		{name: "SC-49 one of two old members is lost and replaced, because the other needs a new member too",
			world: seen(set("db").surge(1), oldA().nodeGone(), oldB(), c(), d(), oldImage()), want: []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{name: "SC-49 a lost old member that never ran is retired",
			world: seen(set("db").surge(1), pod("a").aged(time.Hour).on("n1").starting().withoutContainers().nodeGone().of("old"), b(), c(), d(), oldImage()), want: retires("a")},
		{name: "a lost member is retired first when the surge update is complete", world: seen(set("db").surge(1), a().nodeGone(), b(), c(), d()), want: retires("a")},
		{name: "maxSurge as a percentage is rounded up",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromString("34%"))}),
				oldA(), oldB(), oldC(), oldImage()), want: creates("f1", "f2")},
	})
}

func TestEvictions(t *testing.T) {
	check(t, []row{
		{name: "an evicted member is lost with onEviction Replace", world: seen(set("db"), a().evicted(), b(), c()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "an evicted member is recorded with onEviction Keep while its pod is terminating",
			world: seen(set("db").keepsEvicted(), a().evicted(), b(), c()), want: []string{"patch status of statefulcluster db: Update"}},
		{name: "an evicted member waits with onEviction Keep until its pod is deleted",
			world: seen(set("db").keepsEvicted(), a().evicted(), b(), c(), updating("a", "uid-of-a", "now"))},
		{name: "an evicted member is recreated with onEviction Keep when its pod is deleted",
			world: seen(set("db").keepsEvicted(), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "a member that a user deleted is lost with onEviction Keep", world: seen(set("db").keepsEvicted(), a().going(), b(), c()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "a retired member is not recreated with onEviction Keep",
			world: seen(set("db").keepsEvicted().replicas(2), a().claimsRetained().evicted(), b(), c())},
		{name: "an evicted member with a successor is not recreated with onEviction Keep",
			world: seen(set("db").keepsEvicted(), a().evicted(), b().inPlaceOf("a", 1), c(), pod("d").on("n4").ready())},
		{name: "a lost member whose pod is evicted later is not recreated with onEviction Keep",
			world: seen(set("db").keepsEvicted(), a().evicted(), b(), c(), with(func(w *facts.World) {
				w.Set.Status.Lost = []v1alpha1.LostMember{{Name: "db-a", Reason: v1alpha1.LossNodeGone}}
			})), want: []string{createsInPlaceOf("a", "f1")}},
	})
	p := planOf(seen(set("db").keepsEvicted(), a().of("old").evicted(), b(), c(), oldImage()))
	if len(p.Updating) != 1 || p.Updating[0] != (v1alpha1.UpdatingMember{Name: "db-a", UID: "uid-of-a", Revision: "old", Reason: v1alpha1.UpdatingEviction}) {
		t.Errorf("status.updating is %v, want db-a with revision old", p.Updating)
	}
}

func TestW2SurgeUpdates(t *testing.T) {
	one := func(things ...thing) *facts.World {
		return seen(set("db").replicas(1).surge(1), append(things, oldImage())...)
	}
	down := func(id, node string) *podFixture {
		return pod(id).of("old").on(node).unreadyFor(time.Minute).nodeNotReadyFor(time.Minute)
	}
	check(t, []row{
		{name: "W2 an old member with data is retired only when a new member is available",
			world: one(oldA(), pod("d").aged(2*time.Second).on("n4").starting()), wait: 10*time.Minute - 2*time.Second},
		{name: "W2 an unready old member with data is kept until a new member is available",
			world: seen(set("db").surge(1), pod("a").of("old").on("n1").unreadyFor(time.Second), oldB(), oldC(), pod("d").aged(2*time.Second).on("n4").starting(), oldImage()), wait: 5*time.Minute - time.Second},
		{name: "W2 an unready old member with data is retired when a new member is available", world: seen(set("db").surge(1), pod("a").of("old").on("n1").unreadyFor(time.Second), oldB(), oldC(), pod("d").on("n4").ready(), oldImage()),
			want: retires("a"), wait: 5*time.Minute - time.Second},
		{name: "W2 an old member that never ran is retired at once", world: seen(set("db").surge(1), pod("a").of("old").aged(time.Minute), oldB(), oldC(), pod("d").aged(2*time.Second).on("n4").starting(), oldImage()),
			want: retires("a"), wait: 10*time.Minute - 2*time.Second},
		{name: "W2 no old member is retired in an outage",
			world: seen(set("db").surge(1), down("a", "n1"), down("b", "n2"), down("c", "n3"), pod("d").aged(2*time.Minute).on("n4").starting().nodeNotReadyFor(time.Minute), oldImage())},
	})
}

func TestUpdatingEntries(t *testing.T) {
	check(t, []row{
		{name: "SC-42 a member whose old pod is deleted is recreated on its claims",
			world: seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "SC-42 a member that a user deleted before the operator did is lost",
			world: seen(set("db"), a().going(), b(), c()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "an entry whose old pod was not deleted is removed and the update starts again",
			world: seen(set("db"), oldA(), b(), c(), oldCommand(), updating("a", "uid-of-a", "now")), want: recreates("a")},
		{name: "an entry whose new pod exists is complete", world: seen(set("db"), a(), b(), c(), updating("a", "uid-of-old-a", "now"))},
		{name: "a member whose new pod is deleted is lost despite its entry",
			world: seen(set("db"), a().going(), b(), c(), updating("a", "uid-of-old-a", "now")), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "the entry of a member whose claims were deleted is removed",
			world: seen(set("db"), b(), c(), updating("a", "uid-of-a", "now")), want: []string{"patch status of statefulcluster db: Update"}},
		{name: "the entry of a member whose claims were set aside is removed",
			world: seen(set("db"), looseClaimOf("a").retained(lost), b(), c(), updating("a", "uid-of-a", "now")), want: []string{"patch status of statefulcluster db: Update"}},
		{name: "the entry of a member whose claims are being deleted is removed",
			world: seen(set("db"), looseClaimOf("a").but(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(ago(0)) }), b(), c(), updating("a", "uid-of-a", "now")),
			want:  []string{"patch status of statefulcluster db: Update"}},
		{name: "SC-22 another member is deleted in the pass that recreates one if maxUnavailable allows it",
			world: seen(set("db").maxUnavailable(2), looseClaimOf("a"), b(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")),
			want:  slices.Concat(brings("a"), recreates("c"))},
		{name: "SC-22 no other member is deleted in the pass that recreates one if maxUnavailable is reached",
			world: seen(set("db").maxUnavailable(1), looseClaimOf("a"), b(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "no member is deleted in the pass that recreates one if the status must be written first",
			world: seen(set("db").replicas(4).maxUnavailable(4), b(), oldC(), oldCommand(), updating("a", "uid-of-a", "now"), updating("d", "uid-of-d", "now"), looseClaimOf("d")),
			want:  []string{"patch status of statefulcluster db: Update"}},
		{name: "a refused create of a returning member waits for its retry and keeps its slot",
			world: seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now"), refused(facts.ReasonReturned, "quota", time.Minute)), wait: time.Minute},
	})
	for name, w := range map[string]*facts.World{
		"void": seen(set("db"), a(), b(), c(), updating("a", "uid-of-a", "now")),
		"done": seen(set("db"), a(), b(), c(), updating("a", "uid-of-old-a", "now")),
	} {
		if p := planOf(w); len(p.Updating) != 0 {
			t.Errorf("a %s entry is kept: %v", name, p.Updating)
		}
	}
}

func TestWhatComesBack(t *testing.T) {
	w := seen(set("db").onDelete(), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "old"), oldImage())
	made := firstWritten(w).(*corev1.Pod)
	switch {
	case made.Name != "db-a" || made.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "db-data-a":
		t.Errorf("%s is recreated with volumes %v", made.Name, made.Spec.Volumes)
	case facts.RevisionOf(made) != "old" || made.Spec.Containers[0].Image != "zero":
		t.Errorf("the pod has revision %s and image %s, want old and zero as in its entry", facts.RevisionOf(made), made.Spec.Containers[0].Image)
	case made.Annotations[v1alpha1.AnnotationUpdated] != string(v1alpha1.UpdatingUpdate):
		t.Error("the pod has no annotation with the reason of its return, so it would be lost while unready")
	}
	w = seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "forgotten"))
	if made := firstWritten(w).(*corev1.Pod); facts.RevisionOf(made) != "now" {
		t.Errorf("a member whose revision was deleted returns with revision %s, want that of the spec", facts.RevisionOf(made))
	}
}

// A pod has the service of its revision, which cannot be changed in a running pod.
func TestAServiceRollsOut(t *testing.T) {
	in := func(service string) *setFixture {
		return set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.ServiceName = service })
	}
	old := func(service string) thing {
		return revisionWith("old", func(d *children.RevisionData) { d.ServiceName = service })
	}
	check(t, []row{
		{name: "SC-26 adding a service recreates members", world: seen(in("peers"), oldA(), oldB(), oldC(), old("")), want: recreates("a")},
		{name: "SC-26 changing the service recreates members", world: seen(in("peers"), oldA(), oldB(), oldC(), old("friends")), want: recreates("a")},
		{name: "SC-26 removing the service recreates members", world: seen(in(""), oldA(), oldB(), oldC(), old("friends")), want: recreates("a")},
		{name: "SC-26 changing the service recreates no members with OnDelete", world: seen(in("peers").onDelete(), oldA(), oldB(), oldC(), old("friends"))},
		{name: "SC-26 a set with an unchanged service has no steps", world: seen(in("peers"), a(), b(), c())},
	})
	for revision, want := range map[string]string{"old": "friends", "now": "peers"} {
		w := seen(in("peers").onDelete(), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", revision), old("friends"))
		made := firstWritten(w).(*corev1.Pod)
		if made.Spec.Hostname != "db-a" || made.Spec.Subdomain != want {
			t.Errorf("SC-26 a member that returns with revision %s is %s.%s, want db-a.%s", revision, made.Spec.Hostname, made.Spec.Subdomain, want)
		}
	}
	if raw := string(children.BuildRevision(seen(in("")).Settings, nil).Data.Raw); strings.Contains(raw, "serviceName") {
		t.Errorf("a set without a service has serviceName in its revision, which changes its name: %s", raw)
	}
}

// A partition keeps members at the current revision. A new member replaces one that was lost there.
func TestNewMembersUnderAPartition(t *testing.T) {
	under := func(partition int32, things ...thing) string {
		s := set("db").rolling(v1alpha1.RollingUpdate{Partition: partition})
		s.Status.CurrentRevision = "old"
		for _, a := range planOf(seen(s, append(things, oldImage())...)).Steps[0][0] {
			if made, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create {
				return facts.RevisionOf(made)
			}
		}
		return "none"
	}
	for _, r := range []struct{ name, got, want string }{
		{"too few members have the current revision", under(2, a(), oldB()), "old"},
		{"enough members have the current revision", under(1, a(), oldB()), "now"},
		{"no partition", under(0, a(), oldB()), "now"},
		{"a terminating member does not count towards the partition", under(1, a(), b(), oldC().going()), "old"},
		{"a lost member does not count towards the partition", under(1, a(), b(), oldC().nodeGone()), "old"},
	} {
		if r.got != r.want {
			t.Errorf("%s: the new member has revision %s, want %s", r.name, r.got, r.want)
		}
	}
	s := set("db").rolling(v1alpha1.RollingUpdate{Partition: 1})
	s.Status.CurrentRevision = "old"
	var made []string
	for _, chain := range planOf(seen(s, oldImage())).Steps[0] {
		made = append(made, facts.RevisionOf(chain[0].Object.(*corev1.Pod)))
	}
	if len(made) != 3 || made[0] != "old" || made[1] != "now" || made[2] != "now" {
		t.Errorf("revisions of three new members with partition 1 are %v", made)
	}
}
