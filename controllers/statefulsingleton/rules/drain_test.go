package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// annotatedBudget adds the object's budget to a world, with an annotation by a policy.
func annotatedBudget(w *facts.World) *facts.World {
	w = fixture.Budgeted(w)
	w.Budget.Annotations = map[string]string{"policy": "was here"}
	return w
}

const (
	detachA   = "patch pod a: Detach, its Node n1 is cordoned, and ReplicaSet web-1 creates another pod"
	returnA   = "patch pod a: Return, to ReplicaSet web-1"
	leavesA   = "delete pod a: Superseded, its Node n1 is cordoned, and its replacement waits on another Node"
	unwantedA = "delete pod a: Unwanted, its Deployment no longer needs a pod"
	dropsB    = "delete pod b: Cordoned, its Node is cordoned as well, and the next pod is created on another Node"
)

func TestDrainThatReplacesFirst(t *testing.T) {
	leaving := func() *fixture.MemberFixture { return fixture.Serving().OnNode(fixture.IsCordoned) }
	successor := func() *fixture.MemberFixture { return fixture.Waiting("b").Of("web").On("n2") }
	fixture.Check(t, []fixture.Row{
		{"S42 a holder on a cordoned Node is detached from its ReplicaSet, which creates another pod", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving())), []string{detachA}},
		{"W3 an annotation that a policy adds to the budget is kept", annotatedBudget(fixture.WorldOf(fixture.Replacing(), leaving().Apart())), nil},
		{"S42 a detached holder is not detached again", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart())), nil},
		{"S42 a detached holder keeps running while its successor has just reached its gate", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart(), successor().HeldFor(spec.GateSteadyAfter/2))), nil},
		{"S42 a detached holder keeps running while its successor is starting", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart(), successor().Coming())), nil},
		{"S42 a detached holder keeps running while its successor is unschedulable", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart(), successor().Unscheduled())), nil},
		{"S42 a detached holder is deleted when its successor waits at its gate", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart(), successor())), []string{leavesA}},
		{"S42 the successor does not start while the holder is terminating", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart().Deleted(), successor())), nil},
		{"S42 a standby on another Node takes over, and no pod is detached", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving(), successor())), []string{leavesA}},
		{"S42 a standby of another Deployment does not take over", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving(), fixture.Waiting("b").Of("other").On("n2"))), []string{detachA}},
		{"S42 a standby on a cordoned Node does not take over, and is recreated on another Node first", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving(), successor().OnNode(fixture.IsCordoned))), []string{dropsB}},
		{"S42 a standby on a cordoned Node is not deleted if its template sets nodeName", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart(), successor().OnNode(fixture.IsCordoned).Kin(func(f *facts.Family) { f.Pinned = true }))), nil},
		{"S42 a rollout with failing pods does not prevent the detachment of the holder", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Old(), successor().Kin(func(f *facts.Family) { f.ReplicaSet = "web-2" }).Stuck("ErrImagePull"))), []string{detachA}},
		{"S42 a pod of the older revision takes over during a rollout with failing pods", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Old().Apart(),
			successor().Kin(func(f *facts.Family) { f.ReplicaSet = "web-2" }).Stuck("ErrImagePull"), fixture.Waiting("c").Of("web").Old().On("n2"))), []string{leavesA}},
		{"S42 a holder that is not Ready is left to the drain", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Granted("a", 1).Of("web").OnNode(fixture.IsCordoned))), nil},
		{"S42 a new object adopts the running pod before it detaches pods", fixture.Budgeted(fixture.WorldOf(fixture.Replacing().With(func(s *v1.StatefulSingleton) { s.Status.Holder = nil }), leaving())),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 1"}},
		{"S42 the holder is not detached while a pod without the gate may run", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving(), fixture.Ungated("u").Protect())), nil},
		{"S42 a cordon has no effect with Replace", fixture.WorldOf(fixture.Held(), leaving(), successor()), nil},

		{"S43 a detached holder is returned to its ReplicaSet after an uncordon", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving().Apart(), successor())), []string{returnA}},
		{"S43 a detached holder that is not Ready is not returned yet, because the ReplicaSet could delete it", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Granted("a", 1).Of("web").Apart(), successor())), nil},
		{"S43 a detached holder is not returned to a deleted ReplicaSet", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving().Apart().Kin(func(f *facts.Family) { f.Adopts = false }))), nil},
		{"S43 a detached holder is not returned to an outdated ReplicaSet", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving().Old().Apart(), fixture.Waiting("b").Of("web").On("n2").Coming())), nil},
		{"S43 a detached holder is returned when onEviction is set to Replace", fixture.WorldOf(fixture.Held(), leaving().Apart(), successor()), []string{returnA}},
		{"S43 a detached holder is returned when the object is deleted, even if it is not Ready", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1).Of("web").Apart(), successor()), []string{returnA}},

		{"S44 a detached pod is deleted when its Deployment is scaled to 0", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart().Kin(func(f *facts.Family) { f.Unwanted = true }))), []string{unwantedA}},
		{"S44 a pod that is not detached is left to its ReplicaSet", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Kin(func(f *facts.Family) { f.Unwanted = true }))), nil},
		{"S44 a pod with the detached annotation of another pod is left to its ReplicaSet", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart().Kin(func(f *facts.Family) { f.Unwanted = true }).With(func(p *corev1.Pod) {
			p.Annotations[v1.AnnotationDetached] = "uid-of-b web-1"
		}))), nil},
		{"S44 a detached pod with an unknown owner is kept", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), leaving().Apart().Kin(func(f *facts.Family) { *f = facts.Family{} }))), []string{dropsBudget}},
	})
}

const (
	makesBudget = "create poddisruptionbudget db.singleton: Budget"
	dropsBudget = "delete poddisruptionbudget db.singleton: Budget"
)
