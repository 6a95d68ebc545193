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
)

var isCordoned = nodestate.Facts{Ready: true, Cordoned: true}

// replacing returns an object with onEviction ReplaceFirst and holder a.
func replacing() *singletonFixture {
	return held().with(func(s *v1.StatefulSingleton) { s.Spec.OnEviction = v1.EvictionReplacesFirst })
}

// annotatedBudget adds the object's budget to a world, with an annotation by a policy.
func annotatedBudget(w *world) *world {
	w = budgeted(w)
	w.budget.Annotations = map[string]string{"policy": "was here"}
	return w
}

// budgeted adds the object's budget to a world.
func budgeted(w *world) *world {
	w.budget = buildBudget(w.object)
	return w
}

// serving returns a Ready holder of Deployment web.
func serving() *memberFixture { return granted("a", 1).of("web").ready() }

func (m *memberFixture) ready() *memberFixture {
	m.pod.Status.Conditions = append(m.pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	return m
}

func (m *memberFixture) kin(change func(*family)) *memberFixture {
	change(&m.family)
	return m
}

// apart makes the pod one that is detached from its ReplicaSet.
func (m *memberFixture) apart() *memberFixture {
	m.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: ptr.To(true)}}
	m.pod.Annotations[v1.AnnotationDetached] = string(m.pod.UID) + " web-1"
	return m
}

const (
	detachA   = "patch pod a: Detach, its Node n1 is cordoned, and ReplicaSet web-1 makes another pod"
	returnA   = "patch pod a: Return, to ReplicaSet web-1"
	leavesA   = "delete pod a: Superseded, its Node n1 is cordoned, and another pod waits elsewhere"
	unwantedA = "delete pod a: Unwanted, its Deployment wants no pod any more"
	dropsB    = "delete pod b: Cordoned, its Node is cordoned too, and the next one is made elsewhere"
)

func TestDrainThatReplacesFirst(t *testing.T) {
	leaving := func() *memberFixture { return serving().onNode(isCordoned) }
	successor := func() *memberFixture { return waiting("b").of("web").on("n2") }
	check(t, []row{
		{"S42 a holder on a cordoned node is taken from its ReplicaSet, which makes another pod", budgeted(worldOf(replacing(), leaving())), []string{detachA}},
		{"W3 what a policy adds to the budget stays", annotatedBudget(worldOf(replacing(), leaving().apart())), nil},
		{"S42 once", budgeted(worldOf(replacing(), leaving().apart())), nil},
		{"S42 it runs on until that one rests at its gate", budgeted(worldOf(replacing(), leaving().apart(), successor().heldFor(restsAfter/2))), nil},
		{"S42 and while that one comes", budgeted(worldOf(replacing(), leaving().apart(), successor().coming())), nil},
		{"S42 and while that one finds no node", budgeted(worldOf(replacing(), leaving().apart(), successor().unscheduled())), nil},
		{"S42 then it is deleted", budgeted(worldOf(replacing(), leaving().apart(), successor())), []string{leavesA}},
		{"S42 and the next one starts when it has stopped, and not before", budgeted(worldOf(replacing(), leaving().apart().deleted(), successor())), nil},
		{"S42 a standby elsewhere takes its place, and nothing is taken from the ReplicaSet", budgeted(worldOf(replacing(), leaving(), successor())), []string{leavesA}},
		{"S42 a standby of another Deployment does not", budgeted(worldOf(replacing(), leaving(), waiting("b").of("other").on("n2"))), []string{detachA}},
		{"S42 nor one on a cordoned node, which is made elsewhere first", budgeted(worldOf(replacing(), leaving(), successor().onNode(isCordoned))), []string{dropsB}},
		{"S42 unless it would come back there", budgeted(worldOf(replacing(), leaving().apart(), successor().onNode(isCordoned).kin(func(f *family) { f.pinned = true }))), nil},
		{"S42 a rollout that cannot start its pods keeps nobody from it", budgeted(worldOf(replacing(), leaving().old(), successor().kin(func(f *family) { f.replicaSet = "web-2" }).stuck("ErrImagePull"))), []string{detachA}},
		{"S42 a pod of the older revision takes over then", budgeted(worldOf(replacing(), leaving().old().apart(),
			successor().kin(func(f *family) { f.replicaSet = "web-2" }).stuck("ErrImagePull"), waiting("c").of("web").old().on("n2"))), []string{leavesA}},
		{"S42 one that is not Ready is left to the drain", budgeted(worldOf(replacing(), granted("a", 1).of("web").onNode(isCordoned))), nil},
		{"S42 a new object, before it starts pods, takes none from its ReplicaSet", budgeted(worldOf(replacing().with(func(s *v1.StatefulSingleton) { s.Status.Holder = nil }), leaving())),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 1"}},
		{"S42 beside a pod without the gate nothing is taken from the ReplicaSet", budgeted(worldOf(replacing(), leaving(), ungated("u").protect())), nil},
		{"S42 with Replace a cordon means nothing", worldOf(held(), leaving(), successor()), nil},

		{"S43 after an uncordon it is given back", budgeted(worldOf(replacing(), serving().apart(), successor())), []string{returnA}},
		{"S43 when it is Ready, so that the ReplicaSet deletes the one that waits", budgeted(worldOf(replacing(), granted("a", 1).of("web").apart(), successor())), nil},
		{"S43 not to a ReplicaSet that is gone", budgeted(worldOf(replacing(), serving().apart().kin(func(f *family) { f.adopts = false }))), nil},
		{"S43 nor to one that the Deployment does not want any more", budgeted(worldOf(replacing(), serving().old().apart(), waiting("b").of("web").on("n2").coming())), nil},
		{"S43 also when the field is set back", worldOf(held(), leaving().apart(), successor()), []string{returnA}},
		{"S43 and when the object goes, Ready or not", worldOf(held().goes(), granted("a", 1).of("web").apart(), successor()), []string{returnA}},

		{"S44 a detached pod ends when its Deployment wants none", budgeted(worldOf(replacing(), leaving().apart().kin(func(f *family) { f.unwanted = true }))), []string{unwantedA}},
		{"S44 one that is not detached is its ReplicaSet's affair", budgeted(worldOf(replacing(), leaving().kin(func(f *family) { f.unwanted = true }))), nil},
		{"S44 nor does the text of another pod make it one", budgeted(worldOf(replacing(), leaving().apart().kin(func(f *family) { f.unwanted = true }).with(func(p *corev1.Pod) {
			p.Annotations[v1.AnnotationDetached] = "uid-of-b web-1"
		}))), nil},
		{"S44 what is left of its family is unknown, and it stays", budgeted(worldOf(replacing(), leaving().apart().kin(func(f *family) { *f = family{} }))), []string{dropsBudget}},
	})
}

const (
	makesBudget = "create poddisruptionbudget db.singleton: Budget"
	dropsBudget = "delete poddisruptionbudget db.singleton: Budget"
)

func TestBudgetOfASingleton(t *testing.T) {
	foreign := func(w *world) {
		w.budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns"}}
	}
	check(t, []row{
		{"S42 the holder gets a budget", worldOf(replacing(), serving()), []string{makesBudget}},
		{"S42 which stays", budgeted(worldOf(replacing(), serving())), nil},
		{"S42 also while nobody has its turn", budgeted(worldOf(replacing(), serving().deleted())), nil},
		{"S42 and while a pod comes back to its ReplicaSet", budgeted(worldOf(replacing(), serving().kin(func(f *family) { *f = family{} }).with(func(p *corev1.Pod) { p.OwnerReferences = nil }))), nil},
		{"S42 it is repaired", budgeted(worldOf(replacing(), serving())).with(func(w *world) { w.budget.Spec.MinAvailable = nil }), []string{"patch poddisruptionbudget db.singleton: Budget"}},
		{"S42 another client's is left alone", worldOf(replacing(), serving()).with(foreign), nil},
		{"S42 with Replace there is none", worldOf(held(), serving()), nil},
		{"S42 nor when the field is set back", budgeted(worldOf(held(), serving())), []string{dropsBudget}},
		{"S42 nor when the object goes", budgeted(worldOf(held().goes(), serving(), waiting("b").of("web"))), []string{dropsBudget}},
		{"S45 nor where no pod could be made first: Recreate", budgeted(worldOf(replacing(), serving().kin(func(f *family) { f.rolls = false }))), []string{dropsBudget}},
	})
}

func TestWhyNothingIsReplacedFirst(t *testing.T) {
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
	}
	evicts := "spec.onEviction is ReplaceFirst, and a drain evicts pod a as with Replace: "
	for _, r := range []struct {
		name string
		w    *world
		want string
	}{
		{"all is well", budgeted(worldOf(replacing(), serving())), "no problems detected"},
		{"Recreate", worldOf(replacing(), serving().kin(func(f *family) { f.rolls = false })),
			evicts + "Deployment web has strategy Recreate, which is to have one pod at a time; RollingUpdate lets the next one wait at its gate"},
		{"no surge", worldOf(replacing(), serving().kin(func(f *family) { f.surges = false })), evicts + "maxSurge of Deployment web is 0; with 1 the next pod may wait at its gate"},
		{"a StatefulSet", worldOf(replacing(), serving().kin(func(f *family) { *f = family{owner: "set"} })),
			evicts + "it is not of a Deployment, and what made it makes the next one when it is gone"},
		{"a template with a node", worldOf(replacing(), serving().kin(func(f *family) { f.pinned = true })),
			evicts + "the template of Deployment web names a node, and the next pod would start there; use nodeSelector or affinity"},
		{"a template that tolerates cordons", worldOf(replacing(), serving().with(tolerates)),
			evicts + "the template of Deployment web tolerates taint node.kubernetes.io/unschedulable, and the next pod could start on a cordoned node"},
		{"a pod from before the object", worldOf(replacing(), serving().with(func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationSingletonUID) })),
			evicts + "it was not created under this StatefulSingleton; delete it, and the next one is"},
		{"a budget of another client", worldOf(replacing(), serving()).with(func(w *world) {
			w.budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns"}}
		}), "spec.onEviction is ReplaceFirst, and evictions of pod a are not refused: PodDisruptionBudget db.singleton is not the operator's; delete it, and the operator makes its own: kubectl -n ns delete pdb db.singleton"},
	} {
		if got := degraded(derive(r.w)).Message; got != r.want {
			t.Errorf("S45 %s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestWhatIsSaidOfADrain(t *testing.T) {
	leaving := func() *memberFixture { return serving().onNode(isCordoned).apart() }
	for _, r := range []struct {
		name string
		w    *world
		want string
	}{
		{"no pod is there", worldOf(replacing(), leaving()),
			"pod a is to leave Node n1, which is cordoned, and runs on until a pod that its ReplicaSet makes waits on another; see: kubectl -n ns describe replicaset web-1; to keep it there: kubectl uncordon n1"},
		{"one comes", worldOf(replacing(), leaving(), waiting("b").of("web").on("n2").coming()),
			"pod a is to leave Node n1, which is cordoned, and runs on until pod b, which is to take its place, waits at its gate; to keep it there: kubectl uncordon n1"},
		{"one finds no node", worldOf(replacing(), leaving(), waiting("b").of("web").unscheduled()),
			"pod a is to leave Node n1, which is cordoned, and runs on; pod b is to take its place, and has no Node yet; see: kubectl -n ns describe pod b; to keep it there: kubectl uncordon n1"},
	} {
		s := summarize(derive(r.w))
		c := meta.FindStatusCondition(s.Conditions, v1.ConditionProgressing)
		if c.Reason != v1.ReasonWaitingForPod || c.Message != r.want || s.Phase != v1.PhaseTransitioning {
			t.Errorf("S42 %s: %s, %s\n  %s\nwant\n  %s", r.name, s.Phase, c.Reason, c.Message, r.want)
		}
	}
}
