package statefulcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

func changedOld(change func(*corev1.PodTemplateSpec)) thing {
	return revisionWith("old", func(d *children.RevisionData) { change(&d.Template) })
}

func TestWhatARunningPodCanTake(t *testing.T) {
	patches := updatesInPlace("a")
	for _, r := range []struct {
		name string
		old  func(*corev1.PodTemplateSpec)
		want []string
	}{
		{"SC-22 SC-40 a changed image", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "zero" }, patches},
		{"a changed label", func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }, patches},
		{"a changed annotation", func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"note": "old"} }, patches},
		{"a removed resource request", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = cpu("1") }, recreates("a")},
		{"a changed image and a removed resource request", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].Resources = "zero", cpu("1")
		}, recreates("a")},
		{"a changed command", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Command = []string{"x"} }, recreates("a")},
		{"a changed environment and image", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].Env = "zero", []corev1.EnvVar{{Name: "x"}}
		}, recreates("a")},
		{"a removed container", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "s"})
		}, recreates("a")},
		{"a removed init container", func(p *corev1.PodTemplateSpec) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}}
		}, recreates("a")},
		{"a removed volume", func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{{Name: "v"}} }, recreates("a")},
	} {
		check(t, []row{{name: r.name, world: seen(set("db"), oldA(), oldB(), oldC(), changedOld(r.old)), want: r.want}})
	}
}

func TestWhatAnInPlacePatchSays(t *testing.T) {
	s := set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Template.Annotations = map[string]string{"now": "1"}
		s.Template.Labels["new"] = "1"
	})
	member := oldA().annotated("gone", "1").annotated("users", "own").labelled("tier", "old")
	w := seen(s, member, oldB(), oldC(), changedOld(func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Image = "zero"
		p.Annotations = map[string]string{"gone": "1"}
		p.Labels = map[string]string{"app": "db", "tier": "old"}
	}))
	w.Members[0].Pod.Spec.Containers[0].Image = "zero"
	act := planOf(w).Steps[0][0][0]
	pod := act.Object.(*corev1.Pod)
	for what, ok := range map[string]bool{
		"the pod has the image of the spec":                  pod.Spec.Containers[0].Image == "one",
		"the pod has the revision of the spec":               facts.RevisionOf(pod) == "now",
		"the note has the previous image and restart count":  pod.Annotations[v1alpha1.AnnotationInPlace] == `{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"zero"}}}`,
		"annotations of the old template are removed":        pod.Annotations["gone"] == "",
		"annotations of the new template are added":          pod.Annotations["now"] == "1",
		"annotations of other clients are kept":              pod.Annotations["users"] == "own",
		"labels of the old template are removed":             pod.Labels["tier"] == "",
		"labels of the new template are added":               pod.Labels["new"] == "1",
		"the operator's labels are kept":                     pod.Labels[v1alpha1.LabelMember] == "a" && pod.Labels[v1alpha1.LabelClusterUID] == "uid-of-set",
		"the observed pod is not modified":                   w.Members[0].Pod.Spec.Containers[0].Image == "zero" && act.From == w.Members[0].Pod,
		"a patch of labels only does not wait for a restart": labelsOnly().Annotations[v1alpha1.AnnotationInPlace] == "",
	} {
		if !ok {
			t.Errorf("not true: %s", what)
		}
	}
}

func labelsOnly() *corev1.Pod {
	w := seen(set("db"), oldA(), oldB(), oldC(), changedOld(func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }))
	return firstWritten(w).(*corev1.Pod)
}

// imageIs sets the image of the pod, with a container that still runs the previous one.
func imageIs(p *podFixture, image string) *podFixture {
	p.pod.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	p.pod.Status.ContainerStatuses[0].ImageID = "id-of-zero"
	return p
}

const imageNote = `{"containers":{"main":{"restarts":0,"imageID":"id-of-zero","image":"zero"}}}`

func TestInPlaceIsDone(t *testing.T) {
	done := []string{"patch pod db-a: Updated, complete"}
	with := func(p *podFixture) *facts.World {
		return seen(set("db").maxUnavailable(1), p, oldB(), oldC(), oldImage())
	}
	running := func() *podFixture { return a().patching(imageNote) }
	status := func(change func(*corev1.Pod)) *facts.World {
		p := running()
		change(&p.pod)
		return with(p)
	}
	condition := func(kind corev1.PodConditionType, reason string) *podFixture {
		return running().condition(kind, corev1.ConditionTrue, reason, ago(0))
	}
	check(t, []row{
		{name: "SC-40 the update is complete when the container runs another image", world: with(running()), want: done},
		{name: "SC-40 the update is not complete while the container of a Ready pod runs the previous image",
			world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "id-of-zero" })},
		{name: "SC-40 the update is complete when the container restarted with the previous image ID, because two tags may have the same image",
			world: status(func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].ImageID, p.Status.ContainerStatuses[0].RestartCount = "id-of-zero", 1
			}), want: done},
		{name: "W4 the update is complete when a policy reverted the image", world: with(imageIs(a().patching(imageNote), "zero")), want: done},
		{name: "W4 the update is complete when the cache shows that a policy reverted the image", world: seen(set("db").maxUnavailable(1), imageIs(a().patching(imageNote), "zero"), oldB(), oldC(), oldImage(), cached), want: done},
		{name: "W4 the update is not complete when a policy changed the image to a third one", world: with(imageIs(a().patching(imageNote), "third"))},
		{name: "W4 the update is not complete while the container is stopped, even if a policy reverted the image",
			world: with(imageIs(a().patching(imageNote), "zero").waiting("ContainerCreating"))},
		{name: "the update is not complete while the container waits", world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = nil })},
		{name: "the update is not complete while the container has no status", world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses = nil })},
		{name: "the update is not complete while the kubelet has not observed the patch",
			world: status(func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 2 })},
		{name: "the update is complete if the kubelet reports no observed generation",
			world: status(func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 0 }), want: done},
		{name: "the update is not complete while the pod is not Ready", world: with(pod("a").patching(imageNote).on("n1").unreadyFor(0)), wait: 5 * time.Minute},
		{name: "the update is not complete while a resize is deferred", world: with(condition(corev1.PodResizePending, corev1.PodReasonDeferred))},
		{name: "the update is not complete while a resize is in progress", world: with(condition(corev1.PodResizeInProgress, ""))},
		{name: "an invalid note about an in-place update is removed", world: with(a().patching(`{`)), want: done},
		{name: "a pod being patched does not count as available, so no other pod is updated",
			world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "id-of-zero" })},
		{name: "SC-41 a corrected image replaces a bad image at once while the pod is not Ready",
			world: with(pod("a").aged(time.Minute).patching(imageNote).on("n1").starting().of("old")), want: updatesInPlace("a"), wait: 9 * time.Minute},
		{name: "an in-place update that started before the change to OnDelete is completed",
			world: seen(set("db").onDelete(), running().of("old"), oldB(), oldC(), oldImage()), want: done},
	})
}

// The image is reverted before the kubelet acted, so no restart follows.
func TestAnUpdateThatIsTakenBack(t *testing.T) {
	back := func(change func(*podFixture)) (note string) {
		p := a().patching(`{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"one"}}}`).of("bad")
		change(p)
		w := seen(set("db"), p, b(), c(), revisionOfImage("bad", "bad"))
		w.Members[0].Pod.Spec.Containers[0].Image = "bad"
		return firstWritten(w).GetAnnotations()[v1alpha1.AnnotationInPlace]
	}
	if got := back(func(*podFixture) {}); got != "{}" {
		t.Errorf("the note is %s, want {}: wait only until the pod is Ready", got)
	}
	if got := back(func(p *podFixture) { p.pod.Status.ContainerStatuses[0].State.Running = nil }); got != `{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"one"}}}` {
		t.Errorf("the container was already stopped, and the note is %s", got)
	}
	if got := back(func(p *podFixture) { p.pod.Status.ContainerStatuses[0].RestartCount = 1 }); got != `{"containers":{"main":{"restarts":1,"imageID":"id-of-one","image":"bad"}}}` {
		t.Errorf("the container was already restarted, and the note is %s", got)
	}
}

func TestAnUpdateOnTopOfAnother(t *testing.T) {
	w := seen(set("db"), a().patching(imageNote).of("old"), b(), c(), changedOld(func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }))
	if got := firstWritten(w).GetAnnotations()[v1alpha1.AnnotationInPlace]; got != imageNote {
		t.Errorf("the note after a change of labels is %s, want the note about the image", got)
	}
}

func TestResize(t *testing.T) {
	bigger := set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.Containers[0].Resources = cpu("2") })
	patched := func() *podFixture { return a().patching(`{"resize":true}`) }
	unsent := func() *podFixture {
		p := patched()
		p.pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "one", Resources: cpu("1")}}
		return p
	}
	infeasible := patched().condition(corev1.PodResizePending, corev1.ConditionTrue, corev1.PodReasonInfeasible, ago(0))
	check(t, []row{
		{name: "a resize that was not sent before is sent", world: seen(bigger, unsent(), b(), c()), want: []string{"resize pod db-a: Resize, in place"}},
		{name: "a resize is complete according to the cache, which does not hold resources", world: seen(bigger, unsent(), b(), c(), cached), want: []string{"patch pod db-a: Updated, complete"}},
		{name: "a completed resize completes the update", world: seen(bigger, patched(), b(), c()), want: []string{"patch pod db-a: Updated, complete"}},
		{name: "an infeasible resize recreates the pod", world: seen(bigger, infeasible, b(), c()), want: recreates("a")},
		{name: "a refused resize recreates the pod", world: seen(bigger, unsent(), b(), c(), refused(facts.ReasonResize, "no", time.Minute)), want: recreates("a"), wait: time.Minute},
	})
}

func TestClaimsGrow(t *testing.T) {
	big := set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
		s.VolumeClaimTemplates[0].Spec.Resources = storage("2Gi")
	})
	small := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
	}
	smallOld := func() thing {
		return revisionWith("old", func(d *children.RevisionData) { d.VolumeClaimTemplates[0].Spec.Resources = storage("1Gi") })
	}
	both := revisionWith("old", func(d *children.RevisionData) {
		d.VolumeClaimTemplates[0].Spec.Resources = storage("1Gi")
		d.Template.Spec.Containers[0].Command = []string{"old"}
	})
	grows := "patch persistentvolumeclaim db-data-a: Expand"
	check(t, []row{
		{name: "a claim is expanded and its pod gets the new revision",
			world: seen(big, oldA().claimsAre(small), b(), c(), smallOld()), want: []string{grows + " > patch pod db-a: Updated, in place"}},
		{name: "a claim is expanded with inPlace Never, which applies to pods only",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
				s.VolumeClaimTemplates[0].Spec.Resources = storage("2Gi")
				s.UpdateStrategy.InPlace = v1alpha1.InPlaceNever
			}), oldA().claimsAre(small), b(), c(), smallOld()), want: []string{grows + " > patch pod db-a: Updated, in place"}},
		{name: "a claim that was already expanded is not changed", world: seen(big, oldA(), b(), c(), smallOld()), want: updatesInPlace("a")},
		{name: "a refused expansion of a claim does not block the update", world: seen(big, oldA().claimsAre(small), b(), c(), smallOld(), refused(facts.ReasonExpand, "no", time.Minute)), want: updatesInPlace("a")},
		{name: "a refused expansion is retried when its retry time has come", world: seen(big, a().claimsAre(small), b(), c(), refused(facts.ReasonExpand, "no", 0)), want: []string{grows}},
		{name: "a refused expansion is not retried before its retry time", world: seen(big, a().claimsAre(small), b(), c(), refused(facts.ReasonExpand, "no", time.Minute)), wait: time.Minute},
		{name: "a claim is not changed if the template requests less storage", world: seen(set("db"), oldA(), b(), c(), revisionWith("old", func(d *children.RevisionData) {
			d.VolumeClaimTemplates[0].Spec.Resources = storage("2Gi")
		})), want: updatesInPlace("a")},
		{name: "a claim is expanded before its pod is recreated", world: seen(big, oldA().claimsAre(small), b(), c(), both), want: []string{grows}},
		{name: "the pod is recreated after its claim was expanded", world: seen(big, oldA(), b(), c(), both), want: recreates("a")},
		{name: "a pod is recreated even if the expansion of its claim is refused",
			world: seen(big, oldA().claimsAre(small), b(), c(), both, refused(facts.ReasonExpand, "no", time.Minute)), want: recreates("a")},
	})
}

func TestRefusedUpdates(t *testing.T) {
	check(t, []row{
		{name: "a refused in-place update is not retried before its retry time", world: seen(set("db"), oldA(), oldB(), oldC(), oldImage(), refused(facts.ReasonUpdated, "policy", time.Minute)), wait: time.Minute},
		{name: "a refused in-place update is retried when its retry time has come", world: seen(set("db"), oldA(), oldB(), oldC(), oldImage(), refused(facts.ReasonUpdated, "policy", 0)), want: updatesInPlace("a")},
	})
}
