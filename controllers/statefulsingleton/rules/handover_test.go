package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

func TestSurge(t *testing.T) {
	const deletesA = "delete pod a: Superseded, a pod of the newest revision waits for it"
	ofDeployment := func(m *fixture.MemberFixture) *fixture.MemberFixture { return m.Of("d") }
	fixture.Check(t, []fixture.Row{
		{"S8 the old pod is deleted when the new one waits at its gate", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), ofDeployment(fixture.Waiting("b"))), []string{deletesA}},
		{"a single pod without the gate is deleted when the new one waits at its gate", fixture.WorldOf(fixture.Singleton("db").Held("x", 1), ofDeployment(fixture.Ungated("a")).Protect().Old(), ofDeployment(fixture.Waiting("b"))), []string{deletesA}},
		{"of several pods without the gate none is deleted", fixture.WorldOf(fixture.Singleton("db").Held("x", 1), ofDeployment(fixture.Ungated("a")).Protect().Old(), ofDeployment(fixture.Ungated("c")).Protect().Old(), ofDeployment(fixture.Waiting("b"))), nil},
		{"the old pod is not deleted before the new one has reached its gate", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), ofDeployment(fixture.Waiting("b")).Silent()), nil},
		{"the old pod is not deleted when the new one has just reached its gate", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), ofDeployment(fixture.Waiting("b")).HeldFor(time.Second)), nil},
		{"the old pod is deleted when the new one has been at its gate long enough", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), ofDeployment(fixture.Waiting("b")).HeldFor(spec.GateSteadyAfter)), []string{deletesA}},
		{"a pod without an old pod starts immediately", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Waiting("b")).HeldFor(0)), []string{fixture.GrantB}},
		{"the old pod is not deleted for a pod whose image cannot be pulled", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), ofDeployment(fixture.Waiting("b")).Stuck("ErrImagePull")), nil},
		{"a standby of the same revision deletes no pod", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)), ofDeployment(fixture.Waiting("b"))), nil},
		{"the old pod keeps its volume if the new one is starting on the same Node", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Granted("a", 1)).Old().Mounts(corev1.ReadWriteOnce), ofDeployment(fixture.Waiting("b")).Stuck("ContainerCreating").Mounts(corev1.ReadWriteOnce)), nil},
		{"L11 the old pod is deleted if it uses the volume that the new one needs on another Node", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Granted("a", 1)).Old().Mounts(corev1.ReadWriteOnce), ofDeployment(fixture.Waiting("b")).Stuck("ContainerCreating").On("n2").Mounts(corev1.ReadWriteOnce)), []string{deletesA}},
		{"the old pod keeps its volume if the new one is on the same Node", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Granted("a", 1)).Old().Mounts(corev1.ReadWriteOnce), ofDeployment(fixture.Waiting("b")).Silent().Mounts(corev1.ReadWriteOnce)), nil},
		{"a shared volume blocks no pod", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Granted("a", 1)).Old().Mounts(""), ofDeployment(fixture.Waiting("b")).Silent().On("n2").Mounts("")), nil},
		{"the old pod is deleted if its ReadWriteOncePod claim makes the new one unschedulable", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Granted("a", 1)).Old().Mounts(corev1.ReadWriteOncePod), ofDeployment(fixture.Waiting("b")).Unscheduled().Mounts(corev1.ReadWriteOncePod)), []string{deletesA}},
		{"the old pod is not deleted if the new one is unschedulable for another reason", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Granted("a", 1)).Old().Mounts(corev1.ReadWriteOnce), ofDeployment(fixture.Waiting("b")).Unscheduled().Mounts(corev1.ReadWriteOnce)), nil},
		{"a waiting pod of the old ReplicaSet is deleted if it uses the volume of the new one", fixture.WorldOf(fixture.Held(),
			ofDeployment(fixture.Waiting("b")).Stuck("ContainerCreating").On("n2").Mounts(corev1.ReadWriteOnce), ofDeployment(fixture.Waiting("c")).Old().Mounts(corev1.ReadWriteOnce)),
			[]string{"delete pod c: Superseded, it uses the volume that a pod of the newest revision needs"}},
		{"a pod of an older revision deletes no pod", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)), ofDeployment(fixture.Waiting("b")).Old()), nil},
		{"a pod of another owner deletes no pod", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), fixture.Waiting("b").Of("other")), nil},
		{"a pod of a StatefulSet or of strategy Recreate deletes no pod, because its owner does", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old().Still(), ofDeployment(fixture.Waiting("b")).Still()), nil},
		{"a terminating old pod is not deleted again", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old().Deleted(), ofDeployment(fixture.Waiting("b"))), nil},
		{"the old pod is not deleted while another pod blocks", fixture.WorldOf(fixture.Held(), ofDeployment(fixture.Granted("a", 1)).Old(), fixture.Ungated("c").Protect(), ofDeployment(fixture.Waiting("b"))), nil},
		{"a pod that was created before the object is superseded", fixture.WorldOf(fixture.Singleton("db"), ofDeployment(fixture.Ungated("a")).Old().Protect(), ofDeployment(fixture.Waiting("b"))), []string{deletesA}},
	})
}

func TestTimeout(t *testing.T) {
	since := func(ago time.Duration, policy v1.TimeoutPolicy) *fixture.SingletonFixture {
		return fixture.Singleton("db").Held("a", 1).With(fixture.HandingOver(ago, policy))
	}
	blocked := func() []*fixture.MemberFixture {
		return []*fixture.MemberFixture{fixture.Granted("a", 1).Coming(), fixture.Waiting("b")}
	}
	under := func(uid string) *fixture.MemberFixture {
		return fixture.Granted("a", 1).Coming().With(func(p *corev1.Pod) { p.Annotations[v1.AnnotationSingletonUID] = uid })
	}
	fixture.Check(t, []fixture.Row{
		{"S13 Wait deletes no pod", fixture.WorldOf(since(301*time.Second, v1.TimeoutWaits), blocked()...), nil},
		{"S13 DeleteOld deletes the old pod after maxTransitionTime", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld), blocked()...),
			[]string{"delete pod a: Timeout, the handover takes longer than maxTransitionTime"}},
		{"S13 a slow start is not a handover while no other pod could start", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld).Held("a", 1), fixture.Granted("a", 1).Coming(), fixture.Waiting("b").Coming()), nil},
		{"S13 DeleteOld deletes no pod before maxTransitionTime", fixture.WorldOf(since(299*time.Second, v1.TimeoutDeletesOld), blocked()...), nil},
		{"DeleteOld does not delete a pod without the gate", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld).Held("x", 1), fixture.Ungated("a").Protect(), fixture.Waiting("b")), nil},
		{"DeleteOld does not delete a pod that has the annotation of the object but no gate", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld).Held("x", 1), fixture.Waiting("a").Bare().Protect(), fixture.Waiting("b")), nil},
		{"DeleteOld does not delete a pod of an earlier object with the same name", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld), under("uid-of-the-one-before"), fixture.Waiting("b")), nil},
		{"DeleteOld does not delete a pod without annotation singleton-uid", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld), under(""), fixture.Waiting("b")), nil},
		{"DeleteOld does not delete a pod whose successor cannot reach its gate", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld), fixture.Granted("a", 1).Of("d").Old(), fixture.Waiting("b").Of("d").Stuck("ErrImagePull"), fixture.Waiting("c").Of("d").Old()), nil},
		{"S13 DeleteOld does not delete a terminating pod again", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld), fixture.Granted("a", 1).Coming().Deleted(), fixture.Waiting("b")), nil},
		{"a standby is not a handover", fixture.WorldOf(since(301*time.Second, v1.TimeoutDeletesOld).Held("a", 1), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
	})
}
