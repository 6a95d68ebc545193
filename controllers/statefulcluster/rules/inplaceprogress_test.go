package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestInPlaceIsDone(t *testing.T) {
	done := []string{"patch pod db-a: Updated, complete"}
	with := func(p *fixture.PodFixture) *facts.World {
		return fixture.Seen(fixture.Set("db").MaxUnavailable(1), p, fixture.OldB(), fixture.OldC(), fixture.OldImage())
	}
	running := func() *fixture.PodFixture { return fixture.A().Patching(imageNote) }
	status := func(change func(*corev1.Pod)) *facts.World {
		p := running()
		change(&p.Pod)
		return with(p)
	}
	condition := func(kind corev1.PodConditionType, reason string) *fixture.PodFixture {
		return running().Condition(kind, corev1.ConditionTrue, reason, fixture.Ago(0))
	}
	fixture.Check(t, []fixture.Row{
		{Name: "SC-40 the update is complete when the container runs another image", World: with(running()), Want: done},
		{Name: "SC-40 the update is not complete while the container of a Ready pod runs the previous image",
			World: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "id-of-zero" })},
		{Name: "SC-40 the update is complete when the container restarted with the previous image ID, because two tags may have the same image",
			World: status(func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].ImageID, p.Status.ContainerStatuses[0].RestartCount = "id-of-zero", 1
			}), Want: done},
		{Name: "W4 the update is complete when a policy reverted the image", World: with(imageIs(fixture.A().Patching(imageNote), "zero")), Want: done},
		{Name: "W4 the update is complete when the cache shows that a policy reverted the image", World: fixture.Seen(fixture.Set("db").MaxUnavailable(1), imageIs(fixture.A().Patching(imageNote), "zero"), fixture.OldB(), fixture.OldC(), fixture.OldImage(), cached), Want: done},
		{Name: "W4 the update is not complete when a policy changed the image to a third one", World: with(imageIs(fixture.A().Patching(imageNote), "third"))},
		{Name: "W4 the update is not complete while the container is stopped, even if a policy reverted the image",
			World: with(imageIs(fixture.A().Patching(imageNote), "zero").Waiting("ContainerCreating"))},
		{Name: "the update is not complete while the container waits", World: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = nil })},
		{Name: "the update is not complete while the container has no status", World: status(func(p *corev1.Pod) { p.Status.ContainerStatuses = nil })},
		{Name: "the update is not complete while the kubelet has not observed the patch",
			World: status(func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 2 })},
		{Name: "the update is complete if the kubelet reports no observed generation",
			World: status(func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 0 }), Want: done},
		{Name: "the update is not complete while the pod is not Ready", World: with(fixture.Pod("a").Patching(imageNote).On("n1").UnreadyFor(0)), Wait: 5 * time.Minute},
		{Name: "the update is not complete while a resize is deferred", World: with(condition(corev1.PodResizePending, corev1.PodReasonDeferred))},
		{Name: "the update is not complete while a resize is in progress", World: with(condition(corev1.PodResizeInProgress, ""))},
		{Name: "an invalid note about an in-place update is removed", World: with(fixture.A().Patching(`{`)), Want: done},
		{Name: "a pod being patched does not count as available, so no other pod is updated",
			World: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "id-of-zero" })},
		{Name: "SC-41 a corrected image replaces a bad image at once while the pod is not Ready",
			World: with(fixture.Pod("a").Aged(time.Minute).Patching(imageNote).On("n1").Starting().Of("old")), Want: fixture.UpdatesInPlace("a"), Wait: 9 * time.Minute},
		{Name: "an in-place update that started before the change to OnDelete is completed",
			World: fixture.Seen(fixture.Set("db").OnDelete(), running().Of("old"), fixture.OldB(), fixture.OldC(), fixture.OldImage()), Want: done},
	})
}
