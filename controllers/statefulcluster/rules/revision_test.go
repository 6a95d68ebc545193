package rules_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func TestRevisionAndBudget(t *testing.T) {
	unrecorded := fixture.With(func(w *facts.World) { w.Revisions = nil })
	name := func(w *facts.World) string { return children.BuildRevision(w.Settings, w.Revisions).Name }
	hash := name(fixture.Seen(fixture.Set("db"), unrecorded))
	taken := fixture.Seen(fixture.Set("db"), unrecorded)
	taken.Revisions = []*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: hash, UID: "other", Labels: children.ClusterLabels(taken.Settings)}, Revision: 1}}
	fixture.Check(t, []fixture.Row{
		{Name: "the revision of the spec is recorded before anything else",
			World: fixture.Seen(fixture.Set("db"), unrecorded),
			Want:  slices.Concat([]string{"create controllerrevision " + hash + ": Revision"}, fixture.Creates("f1", "f2", "f3"))},
		{Name: "a revision gets another name if its name is in use",
			World: taken,
			Want:  slices.Concat([]string{"create controllerrevision " + otherName(t, taken, hash) + ": Revision"}, fixture.Creates("f1", "f2", "f3"))},
		{Name: "SC-24 the revision of an old template becomes the newest",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.RevisionOfImage("later", "two").Numbered(101)),
			Want:  []string{"patch controllerrevision now: Revision, the template matches an older revision"}},
		{Name: "a disruption budget is created when all members exist",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) { w.Budget = nil })), Want: []string{"create poddisruptionbudget db: Budget"}},
		{Name: "a budget with another maxUnavailable is corrected",
			World: fixture.Seen(fixture.Set("db").MaxConcurrent("2"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) { w.Budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1)) })),
			Want:  []string{"patch poddisruptionbudget db: Budget"}},
		{Name: "W3 a field of the budget that a policy sets is not changed",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
				w.Budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
				w.Budget.Annotations = map[string]string{"policy": "was here"}
			}))},
		{Name: "W3 a label that the cache needs is restored on the budget",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) { delete(w.Budget.Labels, v1alpha1.LabelCluster) })),
			Want:  []string{"patch poddisruptionbudget db: Budget"}},
		{Name: "W3 a budget that a policy reverts does not block other steps",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), undoneBudget()), Want: fixture.Creates("f1")},
		{Name: "W3 a budget that a policy reverts waits for its retry",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), undoneBudget()), Wait: 10 * time.Second},
		{Name: "a budget of another owner is not changed",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
				w.Budget.OwnerReferences, w.Budget.Spec = nil, policyv1.PodDisruptionBudgetSpec{}
			}))},
		{Name: "a budget that is being deleted is not changed",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
				w.Budget.Spec, w.Budget.DeletionTimestamp = policyv1.PodDisruptionBudgetSpec{}, ptr.To(fixture.Ago(0))
			}))},
		{Name: "a refused create of the budget does not block other steps",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.With(func(w *facts.World) { w.Budget = nil }), fixture.Refused(facts.ReasonBudget, "no", time.Minute)),
			Want:  fixture.Creates("f1")},
		{Name: "a refused create of the budget waits for its retry",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) { w.Budget = nil }), fixture.Refused(facts.ReasonBudget, "no", time.Minute)), Wait: time.Minute},
		{Name: "a refused create of the budget is retried when its retry time has come",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) { w.Budget = nil }), fixture.Refused(facts.ReasonBudget, "no", 0)),
			Want:  []string{"create poddisruptionbudget db: Budget"}},
		{Name: "a revision is marked as ready when one of its members is Ready",
			World: fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.A(), fixture.B(), fixture.C()), Want: []string{"patch controllerrevision now: RevisionReady"}},
		{Name: "V9 a revision is marked as proven when one of its members has been Ready for 10 minutes",
			World: fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.A(), fixture.B(), fixture.Pod("c").On("n3").ReadyFor(spec.SettlingTime)), Want: []string{"patch controllerrevision now: RevisionReady"}},
		{Name: "V9 a requeue is planned for the time when a revision is proven",
			World: fixture.Seen(fixture.Set("db").Replicas(1), fixture.NowUnproven, fixture.Pod("c").On("n3").ReadyFor(spec.SettlingTime-time.Minute)), Wait: time.Minute},
		{Name: "a revision is not marked as ready while its member is being patched, which may be Ready with its old image",
			World: fixture.Seen(fixture.Set("db").Replicas(1), fixture.NowNeverReady, fixture.A().Patching(`{"containers":{"main":{"restarts":0,"imageID":"id-of-one"}}}`))},
	})
}
