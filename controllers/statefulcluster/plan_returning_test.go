package statefulcluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

func TestANodeThatDiesUnderAReturningMember(t *testing.T) {
	going := func(d time.Duration) *podFixture { return pod("a").on("n1").ready().going().nodeNotReadyFor(d) }
	entry := updating("a", "uid-of-a", "now")
	check(t, []row{
		{name: "its pod may still end: it is waited for", world: seen(set("db"), going(30*time.Second-1), b(), c(), entry), wait: 1},
		{name: "it may never end: the member is given up, on record before its successor is made",
			world: seen(set("db"), going(30*time.Second), b(), c(), entry),
			want:  []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
		{name: "it waits for its turn like any lost member",
			world: seen(set("db").replicas(4), going(time.Minute), b(), c(), pod("d").aged(time.Minute).inPlaceOf("x", 1).on("n4").starting(), entry),
			held:  []string{"db-a"}, wait: 9 * time.Minute},
		{name: "a node that is gone ends nothing: the member is given up at once",
			world: seen(set("db"), pod("a").on("n1").ready().going().nodeGone(), b(), c(), entry),
			want:  []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
		{name: "SC-37 nor does one that is out of service",
			world: seen(set("db"), pod("a").on("n1").ready().going().nodeOutOfService(), b(), c(), entry),
			want:  []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
		{name: "an evicted member comes back all the same: its volumes can move, and the control plane removes the pod",
			world: seen(set("db").keepsEvicted(), pod("a").on("n1").ready().evicted().nodeGone(), b(), c(), evictedEntry("a"))},
		{name: "an evicted member whose node is lost is not kept: its volume may never come",
			world: seen(set("db").keepsEvicted(), pod("a").on("n1").ready().evicted().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{createsInPlaceOf("a", "f1")}},
	})
	if p := planOf(seen(set("db"), going(time.Minute), b(), c(), entry)); len(p.updating) != 0 {
		t.Errorf("it is given up, and status.updating will still name it: %v", p.updating)
	}
}

func evictedEntry(id string) thing {
	return with(func(w *world) {
		w.set.Status.Updating = []v1alpha1.UpdatingMember{{Name: "db-" + id, UID: types.UID("uid-of-" + id), Revision: "now", Reason: v1alpha1.UpdatingEviction}}
	})
}

// After an eviction the template is not to blame.
func TestWhyAMemberCameBack(t *testing.T) {
	evicted := evictedEntry("a")
	made := firstWritten(seen(set("db"), looseClaimOf("a"), b(), c(), evicted))
	if got := made.GetAnnotations()[v1alpha1.AnnotationUpdated]; got != string(v1alpha1.UpdatingEviction) {
		t.Errorf("it says that it came back because of %q", got)
	}
	check(t, []row{{name: "a member that came back from an eviction and is not Ready is lost in its time",
		world: seen(set("db"), pod("a").annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingEviction)).on("n1").starting(), b(), c()),
		want:  []string{replaces("a", "f1", v1alpha1.LossStartup)}}})
}

// V1 The API server may refuse a pod of the revision recorded for a returning member.
func TestACorrectedTemplateBringsAMemberBack(t *testing.T) {
	bad := revisionWith("bad", func(d *revisionData) { d.Template.Spec.RuntimeClassName = new("none") }).numbered(50)
	entry := updating("a", "uid-of-old-a", "bad")
	partition := func(n int32) *setFixture { return set("db").rolling(v1alpha1.RollingUpdate{Partition: n}) }
	rows := []struct {
		name              string
		world             *world
		revision, because string
	}{
		{"V1 with the corrected template", seen(set("db"), bad, looseClaimOf("a"), b(), c(), entry), "now", "Update"},
		{"V1 an evicted member too, and the template is to blame then",
			seen(set("db"), bad, looseClaimOf("a"), b(), c(), evictedEntry("a"), entryOf("bad")), "now", "Update"},
		{"V1 with its own template while the partition keeps that many at it",
			seen(partition(1), bad, looseClaimOf("a"), b(), c(), entry), "bad", "Update"},
		{"V1 with the corrected template when others fill the partition",
			seen(partition(1), bad, looseClaimOf("a"), b().of("bad"), c(), entry), "now", "Update"},
		{"V1 with its own template under OnDelete", seen(set("db").onDelete(), bad, looseClaimOf("a"), b(), c(), entry), "bad", "Update"},
	}
	for _, r := range rows {
		pod := firstWritten(r.world)
		if got := pod.GetLabels()[labelRevision]; got != r.revision {
			t.Errorf("%s: it comes back with revision %s, want %s", r.name, got, r.revision)
		}
		if got := pod.GetAnnotations()[v1alpha1.AnnotationUpdated]; got != r.because {
			t.Errorf("%s: it says that it came back because of %q, want %q", r.name, got, r.because)
		}
	}
}

// entryOf sets the revision of the entry in status.updating.
func entryOf(revision string) thing {
	return with(func(w *world) { w.set.Status.Updating[0].Revision = revision })
}

var noCommand = act{"the user wants the old template", func(s *stage) {
	s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Template.Spec.Containers[0].Command = nil })
}}

// V1 The API server refuses pods of the new template. With a corrected template the member is
// recreated, with its name and claims.
func TestV1ARefusedTemplateIsCorrected(t *testing.T) {
	for _, story := range []story{
		{"by the old template", three, []act{command("refused"), noCommand}},
		{"by another template", three, []act{command("refused"), command("serve")}},
		{"while two may be away", func() *setFixture { return three().maxUnavailable(2) }, []act{command("refused"), command("serve")}},
	} {
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, story.set())
			s.Interfere = func(_ int, a action.Action) (before, after error) {
				if p, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create && slices.Contains(p.Spec.Containers[0].Command, "refused") {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, p.Name, errors.New("quota")), nil
				}
				return nil, nil
			}
			// The last retry was delayed for longer than that: only the edit causes the next one.
			s.play(story, func() { s.settle(10 * time.Second) })
			s.ends()
			if len(s.invariants.names) != 3 {
				s.Breaks("V1 %d names were used, and 3 members have come back", len(s.invariants.names))
			}
			s.Check(s.t)
		})
	}
}

// SC-48 A dry-run create shows that the API server would refuse pods of the new template.
func TestSC48ARefusedTemplateTakesNoOneDown(t *testing.T) {
	s := newStage(t, three())
	s.Interfere = func(_ int, a action.Action) (before, after error) {
		if p, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Try && slices.Contains(p.Spec.Containers[0].Command, "refused") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, p.Name, errors.New("policy")), nil
		}
		return nil, nil
	}
	s.play(story{"", three, []act{command("refused"), noCommand}}, func() { s.settle(10 * time.Second) })
	s.ends()
	for _, line := range s.Story {
		if strings.Contains(line, "delete pod") {
			s.Breaks("SC-48 for a template that is refused: %s", line)
		}
	}
	s.Check(s.t)
}

func TestManyAreRecreatedInBatches(t *testing.T) {
	var things []thing
	for i := range recreateBatch + 5 {
		things = append(things, pod(fmt.Sprintf("m%04d", i)).on("n1").ready().of("old"))
	}
	all := int32(recreateBatch + 5)
	p := planOf(seen(set("db").replicas(all).maxUnavailable(int(all)), append(things, oldCommand())...))
	if len(p.updating) != recreateBatch || len(p.Steps[2]) != recreateBatch {
		t.Errorf("%d entries and %d deletes in one pass, want %d", len(p.updating), len(p.Steps[2]), recreateBatch)
	}
	check(t, []row{{name: "recreating that was refused waits",
		world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand(), refused(reasonUpdate, "policy", time.Minute)), wait: time.Minute}})
}

func TestASurgeInOrder(t *testing.T) {
	ordered := func() *setFixture { return set("db").surge(1).orderedReady() }
	check(t, []row{
		{name: "OrderedReady: a surge does not wait for the bad members that it replaces",
			world: seen(ordered(), oldA(), oldB(), pod("c").aged(time.Minute).on("n3").starting().of("old"), oldImage()), want: creates("f1"), wait: 9 * time.Minute},
		{name: "but for the new one", world: seen(ordered().replicas(4), oldA(), oldB(), oldC(), pod("d").aged(time.Minute).on("n4").starting(), oldImage()), wait: 9 * time.Minute},
	})
}

func TestResourcesInPlace(t *testing.T) {
	limit := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	check(t, []row{
		{name: "a request cannot be taken away from a running pod",
			world: seen(set("db"), oldA(), oldB(), oldC(), changedOld(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = cpu("1") })), want: recreates("a")},
		{name: "nor a limit",
			world: seen(set("db"), oldA(), oldB(), oldC(), changedOld(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = limit("1") })), want: recreates("a")},
	})
}

func TestGrowingIsLookedForLive(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *world
		want  bool
	}{
		{"nothing was refused", seen(set("db"), a(), b(), c(), cached), false},
		{"it was refused just now", seen(set("db"), a(), b(), c(), cached, refused(reasonExpand, "no", time.Minute)), false},
		{"it was refused and can be tried again", seen(set("db"), a(), b(), c(), cached, refused(reasonExpand, "no", 0)), true},
	} {
		if got := planOf(r.world).look; got != r.want {
			t.Errorf("%s: looks live is %t", r.name, got)
		}
	}
}

func TestClaimTemplatesChangedPastAdmission(t *testing.T) {
	w := seen(set("db"), a(), b(), c(), revisionWith("later", func(d *revisionData) {
		d.VolumeClaimTemplates = append(d.VolumeClaimTemplates, volumeClaimTemplate("logs", "1Gi"))
	}).numbered(200))
	want := `spec.volumeClaimTemplates: Forbidden: claim template "logs" is missing; claim templates cannot be removed or renamed after creation`
	if got := changedClaims(w); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := changedClaims(seen(set("db"))); got != "" {
		t.Errorf("nothing was changed, and it says %q", got)
	}
	if got := changedClaims(seen(set("db"), with(func(w *world) { w.revisions = nil }))); got != "" {
		t.Errorf("there is no history, and it says %q", got)
	}
}

// Entries that were not written name pods that were not deleted. Entries that are still recorded
// stay until their removal is written.
func TestUpdatingFollowsTheRecord(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("quota"))
	entry := updating("a", "uid-of-a", "now")
	for _, r := range []struct {
		name  string
		world *world
		want  int
	}{
		{"the first of an update's steps failed", seen(set("db"), oldA(), b(), c(), oldCommand(), with(func(w *world) { w.revisions = w.revisions[1:] })), 0},
		{"the label of a claim was not written before a scale-down gave its member up", seen(set("db").replicas(2), looseClaimOf("a"), b(), c(), entry), 1},
		{"one could not come back, and the next were not begun", seen(set("db").maxUnavailable(2), looseClaimOf("a"), b(), oldC(), oldCommand(), entry), 1},
	} {
		p := planOf(r.world)
		s := statusOf(r.world, &p, []action.Outcome{{Action: p.Steps[0][0][0], Err: refusal}})
		if len(s.Updating) != r.want {
			t.Errorf("%s: status.updating says %v after\n  %s", r.name, s.Updating, strings.Join(p.Steps.Strings(), "\n  "))
		}
	}
}

// SC-53: a kubelet reports how a pod ended even if a user deleted it.
func TestWhoDeletedAPodThatEnded(t *testing.T) {
	running := runningMember("db-a")
	as := func(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		pod = pod.DeepCopy()
		change(pod)
		return pod
	}
	deleted := as(running, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} })
	ended := func(pod *corev1.Pod) *corev1.Pod {
		return as(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	}
	disrupted := as(ended(deleted), func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	})
	for _, r := range []struct {
		name   string
		states []*corev1.Pod
		byUser bool
	}{
		{"SC-53 it was deleted by force", []*corev1.Pod{running}, true},
		{"SC-53 it was deleted, and ended then", []*corev1.Pod{running, deleted, ended(deleted)}, true},
		{"SC-53 it was being deleted when the watch began, and ended then", []*corev1.Pod{deleted, ended(deleted)}, true},
		{"SC-53 it ended before it was deleted", []*corev1.Pod{running, ended(running), ended(deleted)}, false},
		{"SC-53 it was disrupted", []*corev1.Pod{running, deleted, disrupted}, false},
		{"SC-53 it had the label of a member and another owner", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })}, false},
		{"N3 it had the label of a member and an owner of another group", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "x.example/v1" })}, false},
		{"SC-53 it had the label of a member and no owner", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences = nil })}, false},
		{"SC-53 the watch saw it only when it had ended", []*corev1.Pod{ended(deleted)}, false},
	} {
		h, knows := endsWatcher(t)
		h.OnAdd(r.states[0], false)
		for i, is := range r.states[1:] {
			h.OnUpdate(r.states[i], is)
		}
		h.OnDelete(r.states[len(r.states)-1])
		if got := knows("ns", "db-a"); got != r.byUser {
			t.Errorf("%s: deleted by a user %t", r.name, got)
		}
	}
}

// W5: anyone who may create claims can copy the labels of a member.
func TestW5AClaimThatIsNotOnRecordIsNoMember(t *testing.T) {
	recorded := looseClaimOf("y").onRecord()
	check(t, []row{
		{name: "W5 its member does not come back", world: seen(set("db").keepsEvicted().replicas(4), a(), b(), c(), recorded, looseClaimOf("x")),
			want: []string{"patch status of statefulcluster db: Update"}},
		{name: "W5 one of a set without a record does", world: seen(set("db").keepsEvicted(), a(), b(), looseClaimOf("x")),
			want: []string{"patch status of statefulcluster db: Update"}},
	})
	w := seen(set("db").keepsEvicted().replicas(4), a(), b(), c(), recorded, looseClaimOf("x"))
	if got := returnsUnseen(derive(w)); !slices.Equal(got, []string{"db-y"}) {
		t.Errorf("W5 these come back: %v", got)
	}
	if lost := told(seen(set("db"), a(), b(), c(), recorded, looseClaimOf("x"))).Lost; len(lost) != 1 || lost[0].Name != "db-y" {
		t.Errorf("W5 lost are %v", lost)
	}
}
