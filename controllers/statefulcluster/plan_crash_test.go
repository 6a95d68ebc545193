package statefulcluster

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// V9 Pods of a bad template may become Ready and crash later. c is the member that crashes; a
// member of "now" was Ready once.
func TestACrashLoopThatBeganWithTheRevision(t *testing.T) {
	crashes := func() *podFixture { return pod("c").on("n3").unreadyFor(50 * time.Minute).restarted(5) }
	short := func(id string) *podFixture { return pod(id).on("n1").readyFor(spec.SettlingTime - time.Minute) }
	rolling := func(things ...thing) *facts.World {
		return seen(set("db"), append(things, oldCommand(), nowUnproven)...)
	}
	check(t, []row{
		{name: "V9 a crashing member is not replaced if no member was Ready for long enough with its revision",
			world: rolling(oldA(), oldB(), crashes().recreated()), failing: []string{"db-c"}},
		{name: "V9 the only member of a set is not replaced while it crashes",
			world: seen(set("db").replicas(1), nowUnproven, crashes()), failing: []string{"db-c"}},
		{name: "V9 a crashing member is not replaced if another member was Ready with its revision for a short time only",
			world: seen(set("db"), nowUnproven, short("a"), short("b"), crashes()), failing: []string{"db-c"}, wait: time.Minute},
		{name: "V9 a crashing member is replaced if its revision works elsewhere, because its data or node may be bad",
			world: seen(set("db"), nowUnproven, pod("a").on("n1").readyFor(spec.SettlingTime), short("b"), crashes()),
			want:  []string{replaces("c", "f1", v1alpha1.LossUnready), "patch controllerrevision now: RevisionReady"}},
		{name: "V9 an unready member that did not crash is replaced",
			world: seen(set("db"), nowUnproven, short("a"), short("b"), pod("c").on("n3").unreadyFor(50*time.Minute)),
			want:  []string{replaces("c", "f1", v1alpha1.LossUnready)}, wait: time.Minute},
		{name: "V9 a member that crashed only before its in-place update is replaced",
			world: seen(set("db"), nowUnproven, short("a"), short("b"), crashes().annotated(v1alpha1.AnnotationRestarts, "5")),
			want:  []string{replaces("c", "f1", v1alpha1.LossUnready)}, wait: time.Minute},
		{name: "V9 an invalid note about restarts is ignored",
			world:   seen(set("db"), nowUnproven, short("a"), short("b"), crashes().annotated(v1alpha1.AnnotationRestarts, "many")),
			failing: []string{"db-c"}, wait: time.Minute},
		{name: "V9 a crashing member is replaced if its revision ever worked",
			world: seen(set("db").replicas(1).replacesInOutage(), crashes()), want: []string{replaces("c", "f1", v1alpha1.LossUnready)}},
		{name: "V9 a crashing member on a lost Node is replaced",
			world: rolling(oldA(), oldB(), crashes().nodeGone()), want: []string{replaces("c", "f1", v1alpha1.LossNodeGone)}},

		{name: "V9 the update continues when a member is Ready",
			world: rolling(oldA(), oldB(), pod("c").on("n3").readyFor(time.Second)), want: recreates("a"), wait: spec.SettlingTime - time.Second},
		{name: "V9 the update waits when the updated member has crashed",
			world: rolling(oldA(), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(1)), wait: spec.SteadyTime - time.Second},
		{name: "V9 the update continues when a member that crashed once has been Ready for a while",
			world: rolling(oldA(), oldB(), pod("c").on("n3").readyFor(spec.SteadyTime).restarted(1)), want: recreates("a"), wait: spec.SettlingTime - spec.SteadyTime},
		{name: "V9 the update waits longer when the updated member has crashed twice",
			world: rolling(oldA(), oldB(), pod("c").on("n3").readyFor(spec.SteadyTime).restarted(2)), wait: spec.SettlingTime - spec.SteadyTime},
		{name: "V9 the update continues when the revision is proven, despite crashes",
			world: seen(set("db"), oldA(), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(2), oldCommand()), want: recreates("a")},
		{name: "V9 restarts of members with an old revision do not block the update",
			world: seen(set("db"), pod("a").on("n1").readyFor(time.Second).restarted(7).of("old"), oldB(), c(), oldCommand()), want: recreates("a")},
		{name: "V9 unready members are updated despite crashes, because they may need the update",
			world: rolling(pod("a").on("n1").unreadyFor(time.Second).of("old"), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(1)),
			want:  recreates("a"), wait: spec.SteadyTime - time.Second},
		{name: "V9 a surge update retires no member for a new one that crashed",
			world: seen(set("db").surge(1), nowUnproven, oldA(), oldB(), oldC(), oldCommand(), pod("d").on("n3").readyFor(time.Second).restarted(1)), wait: spec.SteadyTime - time.Second},
	})
}

func TestRestartsAreCountedFromTheUpdateInPlace(t *testing.T) {
	patched := firstWritten(seen(set("db"), pod("a").on("n1").ready().restarted(3).of("old"), b(), c(), oldImage()))
	if got := patched.GetAnnotations()[v1alpha1.AnnotationRestarts]; got != "3" {
		t.Errorf("V9 the patch notes %q restarts, want 3", got)
	}
	done := firstWritten(seen(set("db"), pod("a").on("n1").ready().restarted(4).annotated(v1alpha1.AnnotationRestarts, "3").
		patching(`{"containers":{"main":{"restarts":3,"imageID":"id-of-zero"}}}`), b(), c()))
	if got := done.GetAnnotations()[v1alpha1.AnnotationRestarts]; got != "4" {
		t.Errorf("V9 the completed update notes %q restarts, want 4", got)
	}
	fresh := firstWritten(seen(set("db"), oldA(), b(), c(), oldImage()))
	if got, noted := fresh.GetAnnotations()[v1alpha1.AnnotationRestarts]; noted {
		t.Errorf("V9 %q restarts are noted on a pod that never restarted", got)
	}
}

func TestWhatDegradedSaysOfMembersThatFail(t *testing.T) {
	old, image := 50*time.Minute, oldImage()
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"V9 a crash loop is reported while the container waits", seen(set("db"), nowUnproven, oldA(), oldB(), pod("c").on("n3").unreadyFor(time.Second).restarted(2), image),
			"containers keep restarting, and no member with the same template has been Ready for 10 minutes, so these members are not replaced: db-c; `kubectl -n ns logs --previous db-c` shows why; correct the template"},
		{"V9 a crash loop is reported while the container runs", seen(set("db"), nowUnproven, oldA(), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(2), image),
			"containers keep restarting, and no member with the same template has been Ready for 10 minutes, so these members are not replaced: db-c; `kubectl -n ns logs --previous db-c` shows why; correct the template"},
		{"V9 one restart is not a crash loop", seen(set("db"), nowUnproven, oldA(), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(1), image), ""},
		{"V8 the members of a new set are unschedulable because their StorageClass does not exist", seen(set("db").replicas(2), nowNeverReady, pod("a").unschedulableFor(old), pod("b").unschedulableFor(old)),
			"members are unschedulable and are not replaced, because new members would be unschedulable too: db-a, db-b; `kubectl -n ns describe pod db-a` shows what is missing, such as capacity, a node label, a StorageClass or a volume"},
		{"V8 an image cannot be pulled", seen(set("db"), nowUnproven, oldA(), oldB(), pod("c").recreated().on("n3").starting().waiting("ErrImagePull"), image),
			"members do not become Ready and are not replaced, because new members with the same template would fail in the same way: db-c (ImagePullBackOff); `kubectl -n ns describe pod db-c` shows why; correct the template"},
		{"V8 one member fails its probe and another is unschedulable",
			seen(set("db").replicas(2), nowNeverReady, pod("a").unschedulableFor(old), pod("b").on("n1").starting()),
			"members do not become Ready and are not replaced, because new members with the same template would fail in the same way: db-b; `kubectl -n ns describe pod db-b` shows why; correct the template; " +
				"members are unschedulable and are not replaced, because new members would be unschedulable too: db-a; `kubectl -n ns describe pod db-a` shows what is missing, such as capacity, a node label, a StorageClass or a volume"},
	} {
		got := says(told(r.world), v1alpha1.ConditionDegraded)
		want := "True RevisionFailing: " + r.want
		if r.want == "" {
			want = "False Healthy: no problems detected"
		}
		if got != want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, want)
		}
	}
	waits := says(told(seen(set("db"), nowUnproven, oldA(), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(1), image)), v1alpha1.ConditionProgressing)
	if want := "; waiting until members that restarted since their update stay Ready: db-c"; !strings.HasSuffix(waits, want) {
		t.Errorf("V9 Progressing is %s, want it to end with %s", waits, want)
	}
}
