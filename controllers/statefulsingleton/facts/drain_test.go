package facts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestWhyNothingIsReplacedFirst(t *testing.T) {
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
	}
	evicts := "spec.onEviction is ReplaceFirst, but a drain evicts pod a as with Replace: "
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"nothing prevents a replacement", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving())), "no problems detected"},
		{"Recreate", fixture.WorldOf(fixture.Replacing(), fixture.Serving().Kin(func(f *facts.Family) { f.Rolls = false })),
			evicts + "Deployment web has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate"},
		{"maxSurge 0", fixture.WorldOf(fixture.Replacing(), fixture.Serving().Kin(func(f *facts.Family) { f.Surges = false })), evicts + "maxSurge of Deployment web is 0; with 1, the next pod can wait at its gate"},
		{"a pod of a StatefulSet", fixture.WorldOf(fixture.Replacing(), fixture.Serving().Kin(func(f *facts.Family) { *f = facts.Family{Owner: "set"} })),
			evicts + "it is not owned by a Deployment, and its owner recreates it only after it is gone"},
		{"a template with nodeName", fixture.WorldOf(fixture.Replacing(), fixture.Serving().Kin(func(f *facts.Family) { f.Pinned = true })),
			evicts + "the template of Deployment web sets nodeName, and the next pod would start on the same Node; use nodeSelector or affinity"},
		{"a template that tolerates cordons", fixture.WorldOf(fixture.Replacing(), fixture.Serving().With(tolerates)),
			evicts + "the template of Deployment web tolerates taint node.kubernetes.io/unschedulable, and the next pod could start on a cordoned Node"},
		{"a pod that is older than the object", fixture.WorldOf(fixture.Replacing(), fixture.Serving().With(func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationSingletonUID) })),
			evicts + "it was not created under this StatefulSingleton; delete it once, and its replacement is"},
		{"a budget of another client", fixture.WorldWith(fixture.WorldOf(fixture.Replacing(), fixture.Serving()), func(w *facts.World) {
			w.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns"}}
		}), "spec.onEviction is ReplaceFirst, but evictions of pod a are not refused: PodDisruptionBudget db.singleton was not created by the operator; delete it, and the operator creates its own: kubectl -n ns delete pdb db.singleton"},
	} {
		if got := status.Degraded(facts.Derive(r.w)).Message; got != r.want {
			t.Errorf("S45 %s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}
