package statefulsingleton

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

var isCordoned = nodestate.Facts{Ready: true, Cordoned: true}

// replacing returns an object with onEviction ReplaceFirst and holder a.
func replacing() *singletonFixture {
	return held().with(func(s *v1.StatefulSingleton) { s.Spec.OnEviction = v1.EvictionReplacesFirst })
}

// annotatedBudget adds the object's budget to a world, with an annotation by a policy.
func annotatedBudget(w *facts.World) *facts.World {
	w = budgeted(w)
	w.Budget.Annotations = map[string]string{"policy": "was here"}
	return w
}

// budgeted adds the object's budget to a world.
func budgeted(w *facts.World) *facts.World {
	w.Budget = children.BuildBudget(w.Object)
	return w
}

// serving returns a Ready holder of Deployment web.
func serving() *memberFixture { return granted("a", 1).of("web").ready() }

func (m *memberFixture) ready() *memberFixture {
	m.Pod.Status.Conditions = append(m.Pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	return m
}

func (m *memberFixture) kin(change func(*facts.Family)) *memberFixture {
	change(&m.Family)
	return m
}

// apart makes the pod one that is detached from its ReplicaSet.
func (m *memberFixture) apart() *memberFixture {
	m.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: ptr.To(true)}}
	m.Pod.Annotations[v1.AnnotationDetached] = string(m.Pod.UID) + " web-1"
	return m
}

const (
	detachA   = "patch pod a: Detach, its Node n1 is cordoned, and ReplicaSet web-1 creates another pod"
	returnA   = "patch pod a: Return, to ReplicaSet web-1"
	leavesA   = "delete pod a: Superseded, its Node n1 is cordoned, and its replacement waits on another Node"
	unwantedA = "delete pod a: Unwanted, its Deployment no longer needs a pod"
	dropsB    = "delete pod b: Cordoned, its Node is cordoned as well, and the next pod is created on another Node"
)

func TestDrainThatReplacesFirst(t *testing.T) {
	leaving := func() *memberFixture { return serving().onNode(isCordoned) }
	successor := func() *memberFixture { return waiting("b").of("web").on("n2") }
	check(t, []row{
		{"S42 a holder on a cordoned Node is detached from its ReplicaSet, which creates another pod", budgeted(worldOf(replacing(), leaving())), []string{detachA}},
		{"W3 an annotation that a policy adds to the budget is kept", annotatedBudget(worldOf(replacing(), leaving().apart())), nil},
		{"S42 a detached holder is not detached again", budgeted(worldOf(replacing(), leaving().apart())), nil},
		{"S42 a detached holder keeps running while its successor has just reached its gate", budgeted(worldOf(replacing(), leaving().apart(), successor().heldFor(spec.RestsAfter/2))), nil},
		{"S42 a detached holder keeps running while its successor is starting", budgeted(worldOf(replacing(), leaving().apart(), successor().coming())), nil},
		{"S42 a detached holder keeps running while its successor is unschedulable", budgeted(worldOf(replacing(), leaving().apart(), successor().unscheduled())), nil},
		{"S42 a detached holder is deleted when its successor waits at its gate", budgeted(worldOf(replacing(), leaving().apart(), successor())), []string{leavesA}},
		{"S42 the successor does not start while the holder is terminating", budgeted(worldOf(replacing(), leaving().apart().deleted(), successor())), nil},
		{"S42 a standby on another Node takes over, and no pod is detached", budgeted(worldOf(replacing(), leaving(), successor())), []string{leavesA}},
		{"S42 a standby of another Deployment does not take over", budgeted(worldOf(replacing(), leaving(), waiting("b").of("other").on("n2"))), []string{detachA}},
		{"S42 a standby on a cordoned Node does not take over, and is recreated on another Node first", budgeted(worldOf(replacing(), leaving(), successor().onNode(isCordoned))), []string{dropsB}},
		{"S42 a standby on a cordoned Node is not deleted if its template sets nodeName", budgeted(worldOf(replacing(), leaving().apart(), successor().onNode(isCordoned).kin(func(f *facts.Family) { f.Pinned = true }))), nil},
		{"S42 a rollout with failing pods does not prevent the detachment of the holder", budgeted(worldOf(replacing(), leaving().old(), successor().kin(func(f *facts.Family) { f.ReplicaSet = "web-2" }).stuck("ErrImagePull"))), []string{detachA}},
		{"S42 a pod of the older revision takes over during a rollout with failing pods", budgeted(worldOf(replacing(), leaving().old().apart(),
			successor().kin(func(f *facts.Family) { f.ReplicaSet = "web-2" }).stuck("ErrImagePull"), waiting("c").of("web").old().on("n2"))), []string{leavesA}},
		{"S42 a holder that is not Ready is left to the drain", budgeted(worldOf(replacing(), granted("a", 1).of("web").onNode(isCordoned))), nil},
		{"S42 a new object adopts the running pod before it detaches pods", budgeted(worldOf(replacing().with(func(s *v1.StatefulSingleton) { s.Status.Holder = nil }), leaving())),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 1"}},
		{"S42 the holder is not detached while a pod without the gate may run", budgeted(worldOf(replacing(), leaving(), ungated("u").protect())), nil},
		{"S42 a cordon has no effect with Replace", worldOf(held(), leaving(), successor()), nil},

		{"S43 a detached holder is returned to its ReplicaSet after an uncordon", budgeted(worldOf(replacing(), serving().apart(), successor())), []string{returnA}},
		{"S43 a detached holder that is not Ready is not returned yet, because the ReplicaSet could delete it", budgeted(worldOf(replacing(), granted("a", 1).of("web").apart(), successor())), nil},
		{"S43 a detached holder is not returned to a deleted ReplicaSet", budgeted(worldOf(replacing(), serving().apart().kin(func(f *facts.Family) { f.Adopts = false }))), nil},
		{"S43 a detached holder is not returned to an outdated ReplicaSet", budgeted(worldOf(replacing(), serving().old().apart(), waiting("b").of("web").on("n2").coming())), nil},
		{"S43 a detached holder is returned when onEviction is set to Replace", worldOf(held(), leaving().apart(), successor()), []string{returnA}},
		{"S43 a detached holder is returned when the object is deleted, even if it is not Ready", worldOf(held().goes(), granted("a", 1).of("web").apart(), successor()), []string{returnA}},

		{"S44 a detached pod is deleted when its Deployment is scaled to 0", budgeted(worldOf(replacing(), leaving().apart().kin(func(f *facts.Family) { f.Unwanted = true }))), []string{unwantedA}},
		{"S44 a pod that is not detached is left to its ReplicaSet", budgeted(worldOf(replacing(), leaving().kin(func(f *facts.Family) { f.Unwanted = true }))), nil},
		{"S44 a pod with the detached annotation of another pod is left to its ReplicaSet", budgeted(worldOf(replacing(), leaving().apart().kin(func(f *facts.Family) { f.Unwanted = true }).with(func(p *corev1.Pod) {
			p.Annotations[v1.AnnotationDetached] = "uid-of-b web-1"
		}))), nil},
		{"S44 a detached pod with an unknown owner is kept", budgeted(worldOf(replacing(), leaving().apart().kin(func(f *facts.Family) { *f = facts.Family{} }))), []string{dropsBudget}},
	})
}

const (
	makesBudget = "create poddisruptionbudget db.singleton: Budget"
	dropsBudget = "delete poddisruptionbudget db.singleton: Budget"
)

func TestBudgetOfASingleton(t *testing.T) {
	foreign := func(w *facts.World) {
		w.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns"}}
	}
	check(t, []row{
		{"S42 the holder gets a budget", worldOf(replacing(), serving()), []string{makesBudget}},
		{"S42 the budget of the holder is kept", budgeted(worldOf(replacing(), serving())), nil},
		{"S42 the budget is kept while the holder is terminating", budgeted(worldOf(replacing(), serving().deleted())), nil},
		{"S42 the budget is kept while a pod is returned to its ReplicaSet", budgeted(worldOf(replacing(), serving().kin(func(f *facts.Family) { *f = facts.Family{} }).with(func(p *corev1.Pod) { p.OwnerReferences = nil }))), nil},
		{"S42 a changed budget is repaired", worldWith(budgeted(worldOf(replacing(), serving())), func(w *facts.World) { w.Budget.Spec.MinAvailable = nil }), []string{"patch poddisruptionbudget db.singleton: Budget"}},
		{"S42 a budget of another client is not changed", worldWith(worldOf(replacing(), serving()), foreign), nil},
		{"S42 with Replace no budget is created", worldOf(held(), serving()), nil},
		{"S42 the budget is deleted when onEviction is set to Replace", budgeted(worldOf(held(), serving())), []string{dropsBudget}},
		{"S42 the budget is deleted when the object is deleted", budgeted(worldOf(held().goes(), serving(), waiting("b").of("web"))), []string{dropsBudget}},
		{"S45 the budget is deleted for strategy Recreate", budgeted(worldOf(replacing(), serving().kin(func(f *facts.Family) { f.Rolls = false }))), []string{dropsBudget}},
	})
}

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
		{"nothing prevents a replacement", budgeted(worldOf(replacing(), serving())), "no problems detected"},
		{"Recreate", worldOf(replacing(), serving().kin(func(f *facts.Family) { f.Rolls = false })),
			evicts + "Deployment web has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate"},
		{"maxSurge 0", worldOf(replacing(), serving().kin(func(f *facts.Family) { f.Surges = false })), evicts + "maxSurge of Deployment web is 0; with 1, the next pod can wait at its gate"},
		{"a pod of a StatefulSet", worldOf(replacing(), serving().kin(func(f *facts.Family) { *f = facts.Family{Owner: "set"} })),
			evicts + "it is not owned by a Deployment, and its owner recreates it only after it is gone"},
		{"a template with nodeName", worldOf(replacing(), serving().kin(func(f *facts.Family) { f.Pinned = true })),
			evicts + "the template of Deployment web sets nodeName, and the next pod would start on the same Node; use nodeSelector or affinity"},
		{"a template that tolerates cordons", worldOf(replacing(), serving().with(tolerates)),
			evicts + "the template of Deployment web tolerates taint node.kubernetes.io/unschedulable, and the next pod could start on a cordoned Node"},
		{"a pod that is older than the object", worldOf(replacing(), serving().with(func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationSingletonUID) })),
			evicts + "it was not created under this StatefulSingleton; delete it once, and its replacement is"},
		{"a budget of another client", worldWith(worldOf(replacing(), serving()), func(w *facts.World) {
			w.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns"}}
		}), "spec.onEviction is ReplaceFirst, but evictions of pod a are not refused: PodDisruptionBudget db.singleton was not created by the operator; delete it, and the operator creates its own: kubectl -n ns delete pdb db.singleton"},
	} {
		if got := status.Degraded(facts.Derive(r.w)).Message; got != r.want {
			t.Errorf("S45 %s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestWhatIsSaidOfADrain(t *testing.T) {
	leaving := func() *memberFixture { return serving().onNode(isCordoned).apart() }
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"no successor exists", worldOf(replacing(), leaving()),
			"pod a has to leave cordoned Node n1 and keeps running until its ReplicaSet has created a pod that waits on another Node; see: kubectl -n ns describe replicaset web-1; to keep it there: kubectl uncordon n1"},
		{"the successor is starting", worldOf(replacing(), leaving(), waiting("b").of("web").on("n2").coming()),
			"pod a has to leave cordoned Node n1 and keeps running until its replacement, pod b, waits at its gate; to keep it there: kubectl uncordon n1"},
		{"the successor is unschedulable", worldOf(replacing(), leaving(), waiting("b").of("web").unscheduled()),
			"pod a has to leave cordoned Node n1 and keeps running; pod b will replace it, but has no Node yet; see: kubectl -n ns describe pod b; to keep it there: kubectl uncordon n1"},
	} {
		s := status.Summarize(facts.Derive(r.w))
		c := meta.FindStatusCondition(s.Conditions, v1.ConditionProgressing)
		if c.Reason != v1.ReasonWaitingForPod || c.Message != r.want || s.Phase != v1.PhaseTransitioning {
			t.Errorf("S42 %s: %s, %s\n  %s\nwant\n  %s", r.name, s.Phase, c.Reason, c.Message, r.want)
		}
	}
}
