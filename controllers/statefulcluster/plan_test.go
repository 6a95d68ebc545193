package statefulcluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// undoneBudget makes a policy that reverted the budget a moment ago.
func undoneBudget() thing {
	return with(func(w *facts.World) {
		w.Budget.UID = "budget"
		wanted := w.Budget.DeepCopy()
		w.Budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		patch := action.Action{Verb: action.Patch, Object: wanted, From: w.Budget.DeepCopy()}
		var known undone.Memory
		known.Held(w.Set.Generation, w.Now)
		known.Learn([]action.Outcome{{Action: patch, Answer: w.Budget.DeepCopy()}}, w.Now)
		w.Undone = known.Held(w.Set.Generation, w.Now)
	})
}

func TestNothingIsDone(t *testing.T) {
	deleted := set("db")
	deleted.DeletionTimestamp = ptr.To(ago(time.Second))
	check(t, []row{
		{name: "SC-34 a set that matches its spec has no steps", world: seen(set("db"), a(), b(), c())},
		{name: "a set that is being deleted has no steps", world: seen(deleted, a().nodeGone())},
		{name: "SC-28 a set with an invalid spec has no steps, and its pods keep running", world: seen(set("d.b"), a().nodeGone(), b(), c())},
		{name: "a foreign pod causes no steps", world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) { w.Foreign = []string{"stray"} }))},
		{name: "SC-4 a set with replicas 0 has no steps", world: seen(set("db").replicas(0))},
	})
}

func TestRevisionAndBudget(t *testing.T) {
	unrecorded := with(func(w *facts.World) { w.Revisions = nil })
	name := func(w *facts.World) string { return children.BuildRevision(w.Settings, w.Revisions).Name }
	hash := name(seen(set("db"), unrecorded))
	taken := seen(set("db"), unrecorded)
	taken.Revisions = []*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: hash, UID: "other", Labels: children.ClusterLabels(taken.Settings)}, Revision: 1}}
	check(t, []row{
		{name: "the revision of the spec is recorded before anything else",
			world: seen(set("db"), unrecorded),
			want:  slices.Concat([]string{"create controllerrevision " + hash + ": Revision"}, creates("f1", "f2", "f3"))},
		{name: "a revision gets another name if its name is in use",
			world: taken,
			want:  slices.Concat([]string{"create controllerrevision " + otherName(t, taken, hash) + ": Revision"}, creates("f1", "f2", "f3"))},
		{name: "SC-24 the revision of an old template becomes the newest",
			world: seen(set("db"), a(), b(), c(), revisionOfImage("later", "two").numbered(101)),
			want:  []string{"patch controllerrevision now: Revision, the template matches an older revision"}},
		{name: "a disruption budget is created when all members exist",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) { w.Budget = nil })), want: []string{"create poddisruptionbudget db: Budget"}},
		{name: "a budget with another maxUnavailable is corrected",
			world: seen(set("db").maxConcurrent("2"), a(), b(), c(), with(func(w *facts.World) { w.Budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1)) })),
			want:  []string{"patch poddisruptionbudget db: Budget"}},
		{name: "W3 a field of the budget that a policy sets is not changed",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) {
				w.Budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
				w.Budget.Annotations = map[string]string{"policy": "was here"}
			}))},
		{name: "W3 a label that the cache needs is restored on the budget",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) { delete(w.Budget.Labels, v1alpha1.LabelCluster) })),
			want:  []string{"patch poddisruptionbudget db: Budget"}},
		{name: "W3 a budget that a policy reverts does not block other steps",
			world: seen(set("db"), a(), b(), undoneBudget()), want: creates("f1")},
		{name: "W3 a budget that a policy reverts waits for its retry",
			world: seen(set("db"), a(), b(), c(), undoneBudget()), wait: 10 * time.Second},
		{name: "a budget of another owner is not changed",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) {
				w.Budget.OwnerReferences, w.Budget.Spec = nil, policyv1.PodDisruptionBudgetSpec{}
			}))},
		{name: "a budget that is being deleted is not changed",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) {
				w.Budget.Spec, w.Budget.DeletionTimestamp = policyv1.PodDisruptionBudgetSpec{}, ptr.To(ago(0))
			}))},
		{name: "a refused create of the budget does not block other steps",
			world: seen(set("db"), a(), b(), with(func(w *facts.World) { w.Budget = nil }), refused(facts.ReasonBudget, "no", time.Minute)),
			want:  creates("f1")},
		{name: "a refused create of the budget waits for its retry",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) { w.Budget = nil }), refused(facts.ReasonBudget, "no", time.Minute)), wait: time.Minute},
		{name: "a refused create of the budget is retried when its retry time has come",
			world: seen(set("db"), a(), b(), c(), with(func(w *facts.World) { w.Budget = nil }), refused(facts.ReasonBudget, "no", 0)),
			want:  []string{"create poddisruptionbudget db: Budget"}},
		{name: "a revision is marked as ready when one of its members is Ready",
			world: seen(set("db"), nowNeverReady, a(), b(), c()), want: []string{"patch controllerrevision now: RevisionReady"}},
		{name: "V9 a revision is marked as proven when one of its members has been Ready for 10 minutes",
			world: seen(set("db"), nowUnproven, a(), b(), pod("c").on("n3").readyFor(spec.SettlingTime)), want: []string{"patch controllerrevision now: RevisionReady"}},
		{name: "V9 a requeue is planned for the time when a revision is proven",
			world: seen(set("db").replicas(1), nowUnproven, pod("c").on("n3").readyFor(spec.SettlingTime-time.Minute)), wait: time.Minute},
		{name: "a revision is not marked as ready while its member is being patched, which may be Ready with its old image",
			world: seen(set("db").replicas(1), nowNeverReady, a().patching(`{"containers":{"main":{"restarts":0,"imageID":"id-of-one"}}}`))},
	})
}

// otherName returns the name that the plan gives a new revision, which must not be taken.
func otherName(t *testing.T, w *facts.World, taken string) string {
	t.Helper()
	got := firstWritten(w).GetName()
	if got == taken {
		t.Errorf("the name %s of the new revision is in use", got)
	}
	return got
}

func TestHistory(t *testing.T) {
	none := func(s *v1alpha1.StatefulClusterSpec) { s.RevisionHistoryLimit = ptr.To(int32(0)) }
	one := func(s *v1alpha1.StatefulClusterSpec) { s.RevisionHistoryLimit = ptr.To(int32(1)) }
	v1, v2 := revisionOfImage("v1", "1").numbered(1), revisionOfImage("v2", "2").numbered(2)
	gone := func(name string) string { return "delete controllerrevision " + name + ": History" }
	inUse := set("db").change(none)
	inUse.Status.CurrentRevision = "v1"
	check(t, []row{
		{name: "SC-24 old revisions are kept up to revisionHistoryLimit", world: seen(set("db").change(one), a(), b(), c(), v1)},
		{name: "SC-24 the oldest revision above revisionHistoryLimit is deleted", world: seen(set("db").change(one), a(), b(), c(), v1, v2), want: []string{gone("v1")}},
		{name: "all old revisions are deleted with revisionHistoryLimit 0, except that of the spec", world: seen(set("db").change(none), a(), b(), c(), v1, v2),
			want: []string{gone("v1"), gone("v2")}},
		{name: "a revision that a member has is kept",
			world: seen(set("db").onDelete().change(none), a().of("v1"), b(), c(), v1, v2), want: []string{gone("v2")}},
		{name: "a revision of a returning member is kept",
			world: seen(set("db").change(none), pod("a").on("n1").going(), updating("a", "uid-of-a", "v1"), b(), c(), v1, v2), want: []string{gone("v2")}},
		{name: "large revisions are deleted before revisionHistoryLimit is reached",
			world: seen(set("db"), a(), b(), c(), revisionOfImage("v1", strings.Repeat("x", rules.MaxHistory/2)).numbered(1), v2, revisionOfImage("v3", "3").numbered(3)), want: []string{gone("v1"), gone("v2")}},
		{name: "the current revision is kept", world: seen(inUse, a(), b(), c(), v1, v2), want: []string{gone("v2")}},
	})
}

func TestLabelsComeBack(t *testing.T) {
	world := seen(set("db"), a().labelled(v1alpha1.LabelMember, ""), b(), c())
	check(t, []row{{name: "a member whose labels were removed remains a member and its labels are restored",
		world: world, want: []string{"patch pod db-a: Relabel, membership depends on the owner, not on labels"}}})
	patched := firstWritten(world).GetLabels()
	if patched[v1alpha1.LabelMember] != "a" || patched["app"] != "db" || patched[spec.LabelRevision] != "now" {
		t.Errorf("the patched labels are %v", patched)
	}
}

// The first rule that has something to do acts alone.
func TestRulesComeInOrder(t *testing.T) {
	everything := func() *facts.World {
		return seen(set("db").keepsEvicted().replacesInOutage().image("two").maxConcurrent("3"),
			with(func(w *facts.World) { w.Budget = nil }),
			pod("a").aged(time.Minute).labelled(v1alpha1.LabelMember, "").on("n1").starting().of("v1"),
			pod("b").on("n1").ready().of("v1").evicted(),
			pod("c").withoutClaims().of("v1"),
			pod("d").on("n4").ready().nodeGone().of("v1"),
			updating("e", "uid-of-e", "v1"), looseClaimOf("e"), looseClaimOf("x"), deletedByUser("x"),
			revisionOfImage("v1", "one"))
	}
	// Each remedy removes the cause on which the previous rule acted.
	remedies := []struct {
		rule   string
		remedy func(*facts.World)
	}{
		{"restore the operator's labels", func(w *facts.World) { w.Members[0].Pod.Labels[v1alpha1.LabelMember] = "a" }},
		{"keep evicted members", func(w *facts.World) { updating("b", "uid-of-b", "v1").into(w) }},
		{"create missing claims", func(w *facts.World) { w.Members[2].Claims = claimsOf(w, "c") }},
		{"retire surplus members", func(w *facts.World) { w.Set.Spec.Replicas = ptr.To(int32(5)) }},
		{"recreate updated members", func(w *facts.World) {
			w.Set.Status.Updating, w.Loose = w.Set.Status.Updating[1:], w.Loose[1:]
		}},
		{"replace lost members", func(w *facts.World) { w.Members[3].Node = facts.Node{} }},
		{"create missing members", func(w *facts.World) { w.Set.Spec.Replicas = ptr.To(int32(4)) }},
		{"reconcile the disruption budget", func(w *facts.World) { w.Budget = children.BuildBudget(w.Settings, w.Replicas()) }},
		{"retain or delete claims of former members", func(w *facts.World) { w.Loose = nil }},
		{"update members", func(w *facts.World) {
			for _, m := range w.Members {
				m.Pod.Labels[spec.LabelRevision] = "now"
			}
		}},
		{"", func(*facts.World) {}},
	}
	w := everything()
	for _, r := range remedies {
		if got := planOf(w).Rule; got != r.rule {
			t.Fatalf("rule %q acts, want %q", got, r.rule)
		}
		r.remedy(w)
	}
}

func TestWhatANewMemberIs(t *testing.T) {
	s := set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
		s.ServiceName = "peers"
		s.Template.Annotations = map[string]string{"note": "kept"}
		s.Template.Labels["tier"] = "gold"
		s.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch"}}
		s.VolumeClaimTemplates[0].Labels = map[string]string{"backup": "daily"}
		s.VolumeClaimTemplates[0].Annotations = map[string]string{"why": "kept"}
	}).retention(v1alpha1.DeleteClaims, v1alpha1.RetainClaims, v1alpha1.RetainClaims).replicas(1)
	chain := planOf(seen(s)).Steps[0][0]
	p, claim := chain[0].Object.(*corev1.Pod), chain[1].Object.(*corev1.PersistentVolumeClaim)
	volumes := make([]string, 0, 2)
	for _, v := range p.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for what, ok := range map[string]bool{
		"SC-2 pod and claim have the same id":            p.Name == "db-f1" && claim.Name == "db-data-f1" && p.Namespace == "ns" && claim.Namespace == "ns",
		"SC-2 the pod mounts the claim":                  p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName == claim.Name,
		"SC-3 both have the labels of the selector":      p.Labels["app"] == "db" && claim.Labels["app"] == "db",
		"SC-3 the pod is controlled by the set":          metav1.IsControlledBy(p, s),
		"SC-15 labels and annotations are kept":          p.Labels["tier"] == "gold" && p.Annotations["note"] == "kept",
		"SC-15 volumes are kept":                         slices.Equal(volumes, []string{"data", "scratch"}),
		"claims keep their labels and annotations":       claim.Labels["backup"] == "daily" && claim.Annotations["why"] == "kept",
		"SC-26 hostname and subdomain are set":           p.Spec.Hostname == "db-f1" && p.Spec.Subdomain == "peers",
		"the pod has its revision":                       facts.RevisionOf(p) == "now",
		"both have the labels that the cache selects":    p.Labels[v1alpha1.LabelClusterUID] == "uid-of-set" && claim.Labels[v1alpha1.LabelMember] == "f1",
		"SC-27 claims are owned with whenDeleted Delete": len(claim.OwnerReferences) == 1 && claim.OwnerReferences[0].UID == s.UID && claim.OwnerReferences[0].Controller == nil,
		"the pod replaces no member":                     p.Annotations[v1alpha1.AnnotationReplaces] == "",
	} {
		if !ok {
			t.Errorf("not true: %s", what)
		}
	}
	bare := set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.Template.Labels = nil }).replicas(1)
	chain = planOf(seen(bare)).Steps[0][0]
	if got := chain[0].Object.GetLabels()["app"]; got != "db" {
		t.Errorf("SC-1 label app from a template without labels is %q, want that of the selector", got)
	}
	if refs := chain[1].Object.GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("SC-27 owner references with whenDeleted Retain: %v", refs)
	}
}

func TestWhatMayBeDecidedOnTheCache(t *testing.T) {
	noBudget := with(func(w *facts.World) { w.Budget = nil })
	neverReady := with(func(w *facts.World) { w.Revisions[0].Annotations = nil })
	for name, c := range map[string]struct {
		world *facts.World
		live  bool
	}{
		"no steps are decided from the cache":                                               {seen(set("db"), a(), b(), c()), false},
		"the disruption budget is decided from the cache":                                   {seen(set("db"), a(), b(), c(), noBudget), false},
		"the mark of a ready revision is decided from the cache":                            {seen(set("db"), a(), b(), c(), neverReady), false},
		"the disruption budget and the mark of a ready revision are decided from the cache": {seen(set("db"), a(), b(), c(), noBudget, neverReady), false},
		"a missing member requires a live read":                                             {seen(set("db"), a(), b()), true},
		"a missing member and budget require a live read":                                   {seen(set("db"), a(), b(), noBudget), true},
		"a returning member that the cache shows as alive requires a live read":             {seen(set("db"), oldA(), starting("b"), oldC(), oldCommand(), cached, updating("a", "uid-of-a", "now")), true},
		"a surplus member requires a live read":                                             {seen(set("db").replicas(2), a(), b(), c(), neverReady), true},
	} {
		if p := planOf(c.world); p.WantsLive() != c.live {
			t.Errorf("%s: wantsLive is %v, want %v; steps are\n  %s", name, p.WantsLive(), c.live, strings.Join(p.Steps.Strings(), "\n  "))
		}
	}
}
