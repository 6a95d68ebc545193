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
)

// oldA, oldB and oldC are the members before their template changed: only the image, or a field
// that cannot be changed in a running pod.
func oldA() *podFixture { return a().of("old") }
func oldB() *podFixture { return b().of("old") }
func oldC() *podFixture { return c().of("old") }

func oldImage() thing { return revisionOfImage("old", "zero") }

func oldCommand() thing {
	return revisionWith("old", func(d *revisionData) { d.Template.Spec.Containers[0].Command = []string{"old"} })
}

func TestRollOutRecreates(t *testing.T) {
	check(t, []row{
		{name: "SC-22 one member is recreated at a time, its name written down first",
			world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a")},
		{name: "SC-22 the next one waits until it is back",
			world: seen(set("db"), pod("a").on("n1").going(), oldB(), oldC(), oldCommand(), updating("a", "uid-of-a", "now"))},
		{name: "SC-22 the pod comes back when the old one is gone",
			world: seen(set("db"), looseClaimOf("a"), oldB(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "SC-22 the next one waits until it is Ready",
			world: seen(set("db"), pod("a").aged(time.Minute).recreated().on("n1").starting(), oldB(), oldC(), oldCommand()), wait: 9 * time.Minute},
		{name: "and for minReadySeconds longer",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }),
				pod("a").recreated().on("n1").readyFor(time.Minute-1), oldB(), oldC(), oldCommand()), wait: 1},
		{name: "and no longer",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }),
				pod("a").recreated().on("n1").readyFor(time.Minute), oldB(), oldC(), oldCommand()), want: recreates("b")},
		{name: "maxUnavailable 2 recreates two", world: seen(set("db").maxUnavailable(2), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a", "b")},
		{name: "maxUnavailable as a percentage is rounded up",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromString("34%"))}), oldA(), oldB(), oldC(), oldCommand()),
			want:  recreates("a", "b")},
		{name: "a member that is not Ready is updated first: it costs nothing",
			world: seen(set("db"), oldA(), pod("b").aged(time.Minute).on("n2").starting().of("old"), oldC(), oldCommand()), want: recreates("b"), wait: 9 * time.Minute},
		{name: "SC-41 all that are not Ready are updated at once, whatever the budget",
			world: seen(set("db").maxConcurrent("3"), pod("a").aged(time.Minute).on("n1").starting().of("old"), pod("b").aged(time.Minute).on("n2").starting().of("old"), oldC(), oldCommand()),
			want:  recreates("a", "b"), wait: 9 * time.Minute},
		{name: "a member that the user marked is updated first", world: seen(set("db"), oldA(), oldB(), oldC().deleteFirst(), oldCommand()), want: recreates("c")},
		{name: "the younger comes before the older", world: seen(set("db"), oldA(), oldB(), pod("c").aged(time.Minute).on("n3").readyFor(time.Second).of("old"), oldCommand()), want: recreates("c")},
		{name: "a partition keeps as many at the old revision",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{Partition: 2}), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a")},
		{name: "and no more are updated then",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{Partition: 2}), a(), oldB(), oldC(), oldCommand())},
		{name: "SC-23 OnDelete updates none", world: seen(set("db").onDelete(), oldA(), oldB(), oldC(), oldCommand())},
		{name: "SC-23 a member deleted under OnDelete is lost: the newcomer has a new name",
			world: seen(set("db").onDelete(), oldA().going(), oldB(), oldC(), oldCommand()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "a revision that cannot be read any more is left by recreating",
			world: seen(set("db"), a().labelled(labelRevision, "forgotten"), b(), c()), want: recreates("a")},
		{name: "inPlace Never recreates for an image",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.UpdateStrategy.InPlace = v1alpha1.InPlaceNever }), oldA(), oldB(), oldC(), oldImage()),
			want:  recreates("a")},
		{name: "members on a lost node do not count as available",
			world: seen(set("db"), a().nodeGone().inPlaceOf("x", 9).aged(0), oldB(), oldC(), oldCommand()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
	})
}

// SC-48 A dry-run create of the new pod comes before the deletion of the first old one.
func TestNobodyGoesForAPodThatIsRefused(t *testing.T) {
	policy := refused(reasonTrial, "policy", time.Minute)
	overSurge := func() *setFixture {
		return set("db").rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(1))})
	}
	check(t, []row{
		{name: "SC-48 the new pod of the first is tried out", world: seen(set("db").maxUnavailable(2), oldA(), oldB(), oldC(), oldCommand()), want: recreates("a", "b")},
		{name: "SC-48 while it is refused no one goes", world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand(), policy), wait: time.Minute},
		{name: "SC-48 nor one that is not Ready", world: seen(set("db"), pod("a").aged(time.Minute).on("n1").starting().of("old"), oldB(), oldC(), oldCommand(), policy), wait: time.Minute},
		{name: "SC-48 when the time is over it is tried again", world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand(), refused(reasonTrial, "policy", 0)), want: recreates("a")},
		{name: "what needs no new pod goes on", world: seen(set("db"), oldA(), oldB(), oldC(), oldImage(), policy), want: updatesInPlace("a")},
		{name: "who is away comes back", world: seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now"), policy), want: brings("a")},
		{name: "SC-48 with a surge no one is retired while new members are refused",
			world: seen(overSurge(), oldA(), oldB(), oldC(), oldCommand(), refused(reasonMissing, "policy", time.Minute)), wait: time.Minute},
	})
	tried := planOf(seen(set("db"), oldA(), oldB(), oldC(), oldCommand())).Steps[0][0][0].Object
	made := firstWritten(seen(set("db"), looseClaimOf("a"), oldB(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")))
	if !apiequality.Semantic.DeepEqual(tried, made) {
		t.Errorf("what is tried is not what is created:\n%v\n%v", tried, made)
	}
}

// SC-48 Condition Degraded reports why no member is updated, and what to do.
func TestARefusedTrialIsTold(t *testing.T) {
	w := seen(set("db"), oldA(), oldB(), oldC(), oldCommand())
	p := planOf(w)
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-a", errors.New("no PriorityClass with name none was found"))
	known := &remembered{refused: map[string]refusal{}, retired: map[types.UID]bool{}, crashed: map[types.UID]bool{}}
	outcomes := []action.Outcome{{Action: p.Steps[0][0][0], Err: fmt.Errorf("try pod db-a: %w", no)}}
	if err := known.learn(derive(w), &p, outcomes); err != nil {
		t.Errorf("what is refused for good is tried again at once: %v", err)
	}
	status := summarize(derive(w), &p, results{outcomes, known.refused})
	want := `True WriteRefused: no pod is deleted for the update, because the API server would refuse the new pod; ` +
		`correct the template or the cause of the refusal: try pod db-a: pods "db-a" is forbidden: no PriorityClass with name none was found; create it, or name another in the template: kubectl get priorityclasses`
	if got := says(status, v1alpha1.ConditionDegraded); got != want {
		t.Errorf("the status says %s, want %s", got, want)
	}
	if len(status.Updating) > 0 {
		t.Errorf("status.updating has %v, and no one was deleted", status.Updating)
	}
}

func TestSurge(t *testing.T) {
	d := func() *podFixture { return pod("d").on("n4").ready() }
	check(t, []row{
		{name: "a surge adds a member of the new revision with a new name", world: seen(set("db").surge(1), oldA(), oldB(), oldC(), oldImage()), want: creates("f1")},
		{name: "no old one goes before it is Ready",
			world: seen(set("db").surge(1), oldA(), oldB(), oldC(), pod("d").aged(time.Minute).on("n4").starting(), oldImage()), wait: 9 * time.Minute},
		{name: "then one old one is retired", world: seen(set("db").surge(1), oldA(), oldB(), oldC(), d(), oldImage()), want: retires("a")},
		{name: "the next one is added while it goes", world: seen(set("db").surge(1), oldA().claimsRetained().going(), oldB(), oldC(), d(), oldImage()), want: creates("f1")},
		{name: "no more are added than are old", world: seen(set("db").surge(3), a(), b(), oldC(), oldImage()), want: creates("f1")},
		{name: "the retired is the first of the scale-down order: the one on the most crowded node",
			world: seen(set("db").surge(1), oldA(), oldB(), pod("c").on("n2").ready().of("old"), d(), oldImage()), want: retires("b")},
		{name: "at the end there are as many as the spec says", world: seen(set("db").surge(1), a(), b(), c(), d()), want: retires("a")},
		{name: "SC-49 the last old one is lost: it is no scale-down, and its successor is there",
			world: seen(set("db").surge(1), oldA().nodeGone(), b(), c(), d(), oldImage()), want: []string{deletesLost("a", v1alpha1.LossNodeGone)}},
		{name: "SC-49 one of two old ones is lost: the other needs a new one too",
			world: seen(set("db").surge(1), oldA().nodeGone(), oldB(), c(), d(), oldImage()), want: []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{name: "SC-49 one that never ran has no data to lose",
			world: seen(set("db").surge(1), pod("a").aged(time.Hour).on("n1").starting().withoutContainers().nodeGone().of("old"), b(), c(), d(), oldImage()), want: retires("a")},
		{name: "a scale-down takes who is lost first", world: seen(set("db").surge(1), a().nodeGone(), b(), c(), d()), want: retires("a")},
		{name: "a surge as a percentage is rounded up",
			world: seen(set("db").rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromString("34%"))}),
				oldA(), oldB(), oldC(), oldImage()), want: creates("f1", "f2")},
	})
}

func TestEvictions(t *testing.T) {
	check(t, []row{
		{name: "Replace: an evicted member is lost", world: seen(set("db"), a().evicted(), b(), c()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "Keep: its name is written down while its pod ends",
			world: seen(set("db").keepsEvicted(), a().evicted(), b(), c()), want: []string{"patch status of statefulcluster db: Update"}},
		{name: "Keep: nothing happens until the pod is gone",
			world: seen(set("db").keepsEvicted(), a().evicted(), b(), c(), updating("a", "uid-of-a", "now"))},
		{name: "Keep: then the same member comes back",
			world: seen(set("db").keepsEvicted(), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "Keep: a pod that a user deleted is lost all the same", world: seen(set("db").keepsEvicted(), a().going(), b(), c()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "Keep: one that a scale-down took stays retired",
			world: seen(set("db").keepsEvicted().replicas(2), a().claimsRetained().evicted(), b(), c())},
		{name: "Keep: one that has a successor does not come back",
			world: seen(set("db").keepsEvicted(), a().evicted(), b().inPlaceOf("a", 1), c(), pod("d").on("n4").ready())},
		{name: "Keep: one that was recorded as lost does not come back, though its pod is evicted later",
			world: seen(set("db").keepsEvicted(), a().evicted(), b(), c(), with(func(w *world) {
				w.set.Status.Lost = []v1alpha1.LostMember{{Name: "db-a", Reason: v1alpha1.LossNodeGone}}
			})), want: []string{createsInPlaceOf("a", "f1")}},
	})
	p := planOf(seen(set("db").keepsEvicted(), a().of("old").evicted(), b(), c(), oldImage()))
	if len(p.updating) != 1 || p.updating[0] != (v1alpha1.UpdatingMember{Name: "db-a", UID: "uid-of-a", Revision: "old", Reason: v1alpha1.UpdatingEviction}) {
		t.Errorf("status.updating says %v, want db-a with the revision that it had", p.updating)
	}
}

func TestW2SurgeUpdates(t *testing.T) {
	one := func(things ...thing) *world {
		return seen(set("db").replicas(1).surge(1), append(things, oldImage())...)
	}
	down := func(id, node string) *podFixture {
		return pod(id).of("old").on(node).unreadyFor(time.Minute).nodeNotReadyFor(time.Minute)
	}
	check(t, []row{
		{name: "W2 a member with data that is not Ready waits for a new one that is available",
			world: one(oldA(), pod("d").aged(2*time.Second).on("n4").starting()), wait: 10*time.Minute - 2*time.Second},
		{name: "W2 also if it does not serve",
			world: seen(set("db").surge(1), pod("a").of("old").on("n1").unreadyFor(time.Second), oldB(), oldC(), pod("d").aged(2*time.Second).on("n4").starting(), oldImage()), wait: 5*time.Minute - time.Second},
		{name: "W2 it goes then", world: seen(set("db").surge(1), pod("a").of("old").on("n1").unreadyFor(time.Second), oldB(), oldC(), pod("d").on("n4").ready(), oldImage()),
			want: retires("a"), wait: 5*time.Minute - time.Second},
		{name: "W2 one that never ran goes at once", world: seen(set("db").surge(1), pod("a").of("old").aged(time.Minute), oldB(), oldC(), pod("d").aged(2*time.Second).on("n4").starting(), oldImage()),
			want: retires("a"), wait: 10*time.Minute - 2*time.Second},
		{name: "W2 in an outage none goes",
			world: seen(set("db").surge(1), down("a", "n1"), down("b", "n2"), down("c", "n3"), pod("d").aged(2*time.Minute).on("n4").starting().nodeNotReadyFor(time.Minute), oldImage())},
	})
}

func TestUpdatingEntries(t *testing.T) {
	check(t, []row{
		{name: "SC-42 the old pod is gone, its claims are there: the same name returns",
			world: seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "SC-42 a user deleted the pod before the operator did: the entry names a living pod no more, the member is lost",
			world: seen(set("db"), a().going(), b(), c()), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "an entry whose old pod was not deleted is void, and the update is begun again",
			world: seen(set("db"), oldA(), b(), c(), oldCommand(), updating("a", "uid-of-a", "now")), want: recreates("a")},
		{name: "an entry whose new pod is there is done with", world: seen(set("db"), a(), b(), c(), updating("a", "uid-of-old-a", "now"))},
		{name: "a new pod that is deleted in its turn is lost, whatever the entry says",
			world: seen(set("db"), a().going(), b(), c(), updating("a", "uid-of-old-a", "now")), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "a member whose claims went meanwhile cannot come back: the entry goes",
			world: seen(set("db"), b(), c(), updating("a", "uid-of-a", "now")), want: []string{"patch status of statefulcluster db: Update"}},
		{name: "nor on claims that were set aside",
			world: seen(set("db"), looseClaimOf("a").retained(lost), b(), c(), updating("a", "uid-of-a", "now")), want: []string{"patch status of statefulcluster db: Update"}},
		{name: "nor on claims that are being deleted",
			world: seen(set("db"), looseClaimOf("a").but(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(ago(0)) }), b(), c(), updating("a", "uid-of-a", "now")),
			want:  []string{"patch status of statefulcluster db: Update"}},
		{name: "SC-22 others are updated in the pass that brings one back, as far as maxUnavailable allows",
			world: seen(set("db").maxUnavailable(2), looseClaimOf("a"), b(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")),
			want:  slices.Concat(brings("a"), recreates("c"))},
		{name: "SC-22 and not when it does not",
			world: seen(set("db").maxUnavailable(1), looseClaimOf("a"), b(), oldC(), oldCommand(), updating("a", "uid-of-a", "now")), want: brings("a")},
		{name: "not when the status is to be written first",
			world: seen(set("db").replicas(4).maxUnavailable(4), b(), oldC(), oldCommand(), updating("a", "uid-of-a", "now"), updating("d", "uid-of-d", "now"), looseClaimOf("d")),
			want:  []string{"patch status of statefulcluster db: Update"}},
		{name: "a return that was refused waits, and keeps its slot",
			world: seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now"), refused(reasonReturned, "quota", time.Minute)), wait: time.Minute},
	})
	for name, w := range map[string]*world{
		"void": seen(set("db"), a(), b(), c(), updating("a", "uid-of-a", "now")),
		"done": seen(set("db"), a(), b(), c(), updating("a", "uid-of-old-a", "now")),
	} {
		if p := planOf(w); len(p.updating) != 0 {
			t.Errorf("an entry that is %s stays: %v", name, p.updating)
		}
	}
}

func TestWhatComesBack(t *testing.T) {
	w := seen(set("db").onDelete(), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "old"), oldImage())
	made := firstWritten(w).(*corev1.Pod)
	switch {
	case made.Name != "db-a" || made.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "db-data-a":
		t.Errorf("%s comes back on %v", made.Name, made.Spec.Volumes)
	case revisionOf(made) != "old" || made.Spec.Containers[0].Image != "zero":
		t.Errorf("it comes back as %s with image %s, not as its entry says", revisionOf(made), made.Spec.Containers[0].Image)
	case made.Annotations[v1alpha1.AnnotationUpdated] != string(v1alpha1.UpdatingUpdate):
		t.Error("nothing says that it was recreated, and unreadiness would count against it")
	}
	w = seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "forgotten"))
	if made := firstWritten(w).(*corev1.Pod); revisionOf(made) != "now" {
		t.Errorf("a revision that is gone is followed by %s, not by the spec's", revisionOf(made))
	}
}

// A pod has the service of its revision, which cannot be changed in a running pod.
func TestAServiceRollsOut(t *testing.T) {
	in := func(service string) *setFixture {
		return set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.ServiceName = service })
	}
	old := func(service string) thing {
		return revisionWith("old", func(d *revisionData) { d.ServiceName = service })
	}
	check(t, []row{
		{name: "SC-26 a service is given by recreating", world: seen(in("peers"), oldA(), oldB(), oldC(), old("")), want: recreates("a")},
		{name: "SC-26 another service too", world: seen(in("peers"), oldA(), oldB(), oldC(), old("friends")), want: recreates("a")},
		{name: "SC-26 a service is taken away by recreating", world: seen(in(""), oldA(), oldB(), oldC(), old("friends")), want: recreates("a")},
		{name: "not where OnDelete keeps the members", world: seen(in("peers").onDelete(), oldA(), oldB(), oldC(), old("friends"))},
		{name: "a set in its service rests", world: seen(in("peers"), a(), b(), c())},
	})
	for revision, want := range map[string]string{"old": "friends", "now": "peers"} {
		w := seen(in("peers").onDelete(), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", revision), old("friends"))
		made := firstWritten(w).(*corev1.Pod)
		if made.Spec.Hostname != "db-a" || made.Spec.Subdomain != want {
			t.Errorf("SC-26 a member that comes back at revision %s is %s.%s, want db-a.%s", revision, made.Spec.Hostname, made.Spec.Subdomain, want)
		}
	}
	if raw := string(buildRevision(seen(in(""))).Data.Raw); strings.Contains(raw, "serviceName") {
		t.Errorf("a set without a service does not keep the revision that it had: %s", raw)
	}
}

// A partition keeps members at the current revision. A new member replaces one that was lost there.
func TestNewMembersUnderAPartition(t *testing.T) {
	under := func(partition int32, things ...thing) string {
		s := set("db").rolling(v1alpha1.RollingUpdate{Partition: partition})
		s.Status.CurrentRevision = "old"
		for _, a := range planOf(seen(s, append(things, oldImage())...)).Steps[0][0] {
			if made, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create {
				return revisionOf(made)
			}
		}
		return "none"
	}
	for _, r := range []struct{ name, got, want string }{
		{"too few at the current revision", under(2, a(), oldB()), "old"},
		{"enough at the current revision", under(1, a(), oldB()), "now"},
		{"no partition", under(0, a(), oldB()), "now"},
		{"those that go do not count", under(1, a(), b(), oldC().going()), "old"},
		{"nor does the lost one whose place it takes", under(1, a(), b(), oldC().nodeGone()), "old"},
	} {
		if r.got != r.want {
			t.Errorf("%s: the new member has revision %s, want %s", r.name, r.got, r.want)
		}
	}
	s := set("db").rolling(v1alpha1.RollingUpdate{Partition: 1})
	s.Status.CurrentRevision = "old"
	var made []string
	for _, chain := range planOf(seen(s, oldImage())).Steps[0] {
		made = append(made, revisionOf(chain[0].Object.(*corev1.Pod)))
	}
	if len(made) != 3 || made[0] != "old" || made[1] != "now" || made[2] != "now" {
		t.Errorf("three new members under a partition of one have %v", made)
	}
}
