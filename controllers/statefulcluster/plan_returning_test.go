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
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func TestANodeThatDiesUnderAReturningMember(t *testing.T) {
	going := func(d time.Duration) *podFixture { return pod("a").on("n1").ready().going().nodeNotReadyFor(d) }
	entry := updating("a", "uid-of-a", "now")
	check(t, []row{
		{name: "a returning member on a lost node is kept for nodeLostSeconds", world: seen(set("db"), going(30*time.Second-1), b(), c(), entry), wait: 1},
		{name: "a returning member on a lost node is replaced after nodeLostSeconds, after the status is written",
			world: seen(set("db"), going(30*time.Second), b(), c(), entry),
			want:  []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
		{name: "a returning member on a lost node is limited by maxConcurrent",
			world: seen(set("db").replicas(4), going(time.Minute), b(), c(), pod("d").aged(time.Minute).inPlaceOf("x", 1).on("n4").starting(), entry),
			held:  []string{"db-a"}, wait: 9 * time.Minute},
		{name: "a returning member whose Node is deleted is replaced at once",
			world: seen(set("db"), pod("a").on("n1").ready().going().nodeGone(), b(), c(), entry),
			want:  []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
		{name: "SC-37 a returning member on a Node out of service is replaced at once",
			world: seen(set("db"), pod("a").on("n1").ready().going().nodeOutOfService(), b(), c(), entry),
			want:  []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
		{name: "an evicted member whose Node is deleted returns, because the control plane removes the pod and its volumes",
			world: seen(set("db").keepsEvicted(), pod("a").on("n1").ready().evicted().nodeGone(), b(), c(), evictedEntry("a"))},
		{name: "an evicted member on a lost node is replaced, because its volume may stay attached",
			world: seen(set("db").keepsEvicted(), pod("a").on("n1").ready().evicted().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{createsInPlaceOf("a", "f1")}},
	})
	if p := planOf(seen(set("db"), going(time.Minute), b(), c(), entry)); len(p.Updating) != 0 {
		t.Errorf("status.updating still has the replaced member: %v", p.Updating)
	}
}

func evictedEntry(id string) thing {
	return with(func(w *facts.World) {
		w.Set.Status.Updating = []v1alpha1.UpdatingMember{{Name: "db-" + id, UID: types.UID("uid-of-" + id), Revision: "now", Reason: v1alpha1.UpdatingEviction}}
	})
}

// After an eviction the template is not to blame.
func TestWhyAMemberCameBack(t *testing.T) {
	evicted := evictedEntry("a")
	made := firstWritten(seen(set("db"), looseClaimOf("a"), b(), c(), evicted))
	if got := made.GetAnnotations()[v1alpha1.AnnotationUpdated]; got != string(v1alpha1.UpdatingEviction) {
		t.Errorf("annotation %s is %q, want %q", v1alpha1.AnnotationUpdated, got, v1alpha1.UpdatingEviction)
	}
	check(t, []row{{name: "a member that returned from an eviction and is not Ready is lost at its deadline",
		world: seen(set("db"), pod("a").annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingEviction)).on("n1").starting(), b(), c()),
		want:  []string{replaces("a", "f1", v1alpha1.LossStartup)}}})
}

// V1 The API server may refuse a pod of the revision recorded for a returning member.
func TestACorrectedTemplateBringsAMemberBack(t *testing.T) {
	bad := revisionWith("bad", func(d *children.RevisionData) { d.Template.Spec.RuntimeClassName = new("none") }).numbered(50)
	entry := updating("a", "uid-of-old-a", "bad")
	partition := func(n int32) *setFixture { return set("db").rolling(v1alpha1.RollingUpdate{Partition: n}) }
	rows := []struct {
		name              string
		world             *facts.World
		revision, because string
	}{
		{"V1 a member returns with the corrected template", seen(set("db"), bad, looseClaimOf("a"), b(), c(), entry), "now", "Update"},
		{"V1 an evicted member returns with the corrected template, with Update as its reason",
			seen(set("db"), bad, looseClaimOf("a"), b(), c(), evictedEntry("a"), entryOf("bad")), "now", "Update"},
		{"V1 a member returns with its own template if the partition keeps it",
			seen(partition(1), bad, looseClaimOf("a"), b(), c(), entry), "bad", "Update"},
		{"V1 a member returns with the corrected template if other members fill the partition",
			seen(partition(1), bad, looseClaimOf("a"), b().of("bad"), c(), entry), "now", "Update"},
		{"V1 a member returns with its own template under OnDelete", seen(set("db").onDelete(), bad, looseClaimOf("a"), b(), c(), entry), "bad", "Update"},
	}
	for _, r := range rows {
		pod := firstWritten(r.world)
		if got := pod.GetLabels()[spec.LabelRevision]; got != r.revision {
			t.Errorf("%s: the pod has revision %s, want %s", r.name, got, r.revision)
		}
		if got := pod.GetAnnotations()[v1alpha1.AnnotationUpdated]; got != r.because {
			t.Errorf("%s: the reason of the return is %q, want %q", r.name, got, r.because)
		}
	}
}

// entryOf sets the revision of the entry in status.updating.
func entryOf(revision string) thing {
	return with(func(w *facts.World) { w.Set.Status.Updating[0].Revision = revision })
}

var noCommand = act{"the user restores the old template", func(s *stage) {
	s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Template.Spec.Containers[0].Command = nil })
}}

// V1 The API server refuses pods of the new template. With a corrected template the member is
// recreated, with its name and claims.
func TestV1ARefusedTemplateIsCorrected(t *testing.T) {
	for _, story := range []story{
		{"corrected with the old template", three, []act{command("refused"), noCommand}},
		{"corrected with another template", three, []act{command("refused"), command("serve")}},
		{"corrected while maxUnavailable is 2", func() *setFixture { return three().maxUnavailable(2) }, []act{command("refused"), command("serve")}},
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
				s.Breaks("V1 %d names were used, want 3", len(s.invariants.names))
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
			s.Breaks("SC-48 the update to a refused template has step: %s", line)
		}
	}
	s.Check(s.t)
}

func TestManyAreRecreatedInBatches(t *testing.T) {
	var things []thing
	for i := range rules.RecreateBatch + 5 {
		things = append(things, pod(fmt.Sprintf("m%04d", i)).on("n1").ready().of("old"))
	}
	all := int32(rules.RecreateBatch + 5)
	p := planOf(seen(set("db").replicas(all).maxUnavailable(int(all)), append(things, oldCommand())...))
	if len(p.Updating) != rules.RecreateBatch || len(p.Steps[2]) != rules.RecreateBatch {
		t.Errorf("%d entries and %d deletes in one pass, want %d", len(p.Updating), len(p.Steps[2]), rules.RecreateBatch)
	}
	check(t, []row{{name: "a refused deletion for an update waits for its retry",
		world: seen(set("db"), oldA(), oldB(), oldC(), oldCommand(), refused(facts.ReasonUpdate, "policy", time.Minute)), wait: time.Minute}})
}

func TestASurgeInOrder(t *testing.T) {
	ordered := func() *setFixture { return set("db").surge(1).orderedReady() }
	check(t, []row{
		{name: "a surge with OrderedReady does not wait for unready members with the old revision",
			world: seen(ordered(), oldA(), oldB(), pod("c").aged(time.Minute).on("n3").starting().of("old"), oldImage()), want: creates("f1"), wait: 9 * time.Minute},
		{name: "a surge with OrderedReady waits for the new member", world: seen(ordered().replicas(4), oldA(), oldB(), oldC(), pod("d").aged(time.Minute).on("n4").starting(), oldImage()), wait: 9 * time.Minute},
	})
}

func TestResourcesInPlace(t *testing.T) {
	limit := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	check(t, []row{
		{name: "removing a resource request recreates the pod",
			world: seen(set("db"), oldA(), oldB(), oldC(), changedOld(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = cpu("1") })), want: recreates("a")},
		{name: "removing a resource limit recreates the pod",
			world: seen(set("db"), oldA(), oldB(), oldC(), changedOld(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = limit("1") })), want: recreates("a")},
	})
}

func TestGrowingIsLookedForLive(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  bool
	}{
		{"no live read if no expansion was refused", seen(set("db"), a(), b(), c(), cached), false},
		{"no live read before the retry of a refused expansion", seen(set("db"), a(), b(), c(), cached, refused(facts.ReasonExpand, "no", time.Minute)), false},
		{"live read for the retry of a refused expansion", seen(set("db"), a(), b(), c(), cached, refused(facts.ReasonExpand, "no", 0)), true},
	} {
		if got := planOf(r.world).Look; got != r.want {
			t.Errorf("%s: p.look is %t", r.name, got)
		}
	}
}

func TestClaimTemplatesChangedPastAdmission(t *testing.T) {
	w := seen(set("db"), a(), b(), c(), revisionWith("later", func(d *children.RevisionData) {
		d.VolumeClaimTemplates = append(d.VolumeClaimTemplates, volumeClaimTemplate("logs", "1Gi"))
	}).numbered(200))
	want := `spec.volumeClaimTemplates: Forbidden: claim template "logs" is missing; claim templates cannot be removed or renamed after creation`
	if got := facts.ChangedClaims(w); got != want {
		t.Errorf("changedClaims is %q, want %q", got, want)
	}
	if got := facts.ChangedClaims(seen(set("db"))); got != "" {
		t.Errorf("changedClaims for unchanged templates is %q", got)
	}
	if got := facts.ChangedClaims(seen(set("db"), with(func(w *facts.World) { w.Revisions = nil }))); got != "" {
		t.Errorf("changedClaims without revisions is %q", got)
	}
}

// Entries that were not written name pods that were not deleted. Entries that are still recorded
// stay until their removal is written.
func TestUpdatingFollowsTheRecord(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("quota"))
	entry := updating("a", "uid-of-a", "now")
	for _, r := range []struct {
		name  string
		world *facts.World
		want  int
	}{
		{"the first step of an update failed", seen(set("db"), oldA(), b(), c(), oldCommand(), with(func(w *facts.World) { w.Revisions = w.Revisions[1:] })), 0},
		{"the label of a claim of a retired returning member was not written", seen(set("db").replicas(2), looseClaimOf("a"), b(), c(), entry), 1},
		{"a create of a returning member failed before the next members were deleted", seen(set("db").maxUnavailable(2), looseClaimOf("a"), b(), oldC(), oldCommand(), entry), 1},
	} {
		p := planOf(r.world)
		s := statusOf(r.world, &p, []action.Outcome{{Action: p.Steps[0][0][0], Err: refusal}})
		if len(s.Updating) != r.want {
			t.Errorf("%s: status.updating is %v after\n  %s", r.name, s.Updating, strings.Join(p.Steps.Strings(), "\n  "))
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
		{"SC-53 the pod was force-deleted", []*corev1.Pod{running}, true},
		{"SC-53 the pod was deleted and ended", []*corev1.Pod{running, deleted, ended(deleted)}, true},
		{"SC-53 the pod was terminating when the watch started, and ended", []*corev1.Pod{deleted, ended(deleted)}, true},
		{"SC-53 the pod ended before it was deleted", []*corev1.Pod{running, ended(running), ended(deleted)}, false},
		{"SC-53 the pod was disrupted", []*corev1.Pod{running, deleted, disrupted}, false},
		{"SC-53 the pod had the labels of a member and another owner", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })}, false},
		{"N3 the pod had the labels of a member and an owner of another API group", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "x.example/v1" })}, false},
		{"SC-53 the pod had the labels of a member and no owner", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences = nil })}, false},
		{"SC-53 the pod had ended when the watch started", []*corev1.Pod{ended(deleted)}, false},
	} {
		h, knows := endsWatcher(t)
		h.OnAdd(r.states[0], false)
		for i, is := range r.states[1:] {
			h.OnUpdate(r.states[i], is)
		}
		h.OnDelete(r.states[len(r.states)-1])
		if got := knows("ns", "db-a"); got != r.byUser {
			t.Errorf("%s: deleted by a user is %t", r.name, got)
		}
	}
}

// W5: anyone who may create claims can copy the labels of a member.
func TestW5AClaimThatIsNotOnRecordIsNoMember(t *testing.T) {
	recorded := looseClaimOf("y").onRecord()
	check(t, []row{
		{name: "W5 a claim that is not in status.claims gives no returning member", world: seen(set("db").keepsEvicted().replicas(4), a(), b(), c(), recorded, looseClaimOf("x")),
			want: []string{"patch status of statefulcluster db: Update"}},
		{name: "W5 a claim gives a returning member if the set has no record of claims", world: seen(set("db").keepsEvicted(), a(), b(), looseClaimOf("x")),
			want: []string{"patch status of statefulcluster db: Update"}},
	})
	w := seen(set("db").keepsEvicted().replicas(4), a(), b(), c(), recorded, looseClaimOf("x"))
	if got := facts.ReturningVanished(facts.Derive(w)); !slices.Equal(got, []string{"db-y"}) {
		t.Errorf("W5 returning members are %v, want db-y", got)
	}
	if lost := told(seen(set("db"), a(), b(), c(), recorded, looseClaimOf("x"))).Lost; len(lost) != 1 || lost[0].Name != "db-y" {
		t.Errorf("W5 status.lost is %v, want db-y", lost)
	}
}
