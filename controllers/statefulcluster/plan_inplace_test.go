package statefulcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func changedOld(change func(*corev1.PodTemplateSpec)) thing {
	return revisionWith("old", func(d *revisionData) { change(&d.Template) })
}

func TestWhatARunningPodCanTake(t *testing.T) {
	patches := updatesInPlace("a")
	for _, r := range []struct {
		name string
		old  func(*corev1.PodTemplateSpec)
		want []string
	}{
		{"SC-22 SC-40 an image", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "zero" }, patches},
		{"a label", func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }, patches},
		{"an annotation", func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"note": "old"} }, patches},
		{"not a request taken away", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = cpu("1") }, recreates("a")},
		{"not an image and a request taken away", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].Resources = "zero", cpu("1")
		}, recreates("a")},
		{"not a command", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Command = []string{"x"} }, recreates("a")},
		{"not an environment, though the image changes too", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].Env = "zero", []corev1.EnvVar{{Name: "x"}}
		}, recreates("a")},
		{"not another container", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "s"})
		}, recreates("a")},
		{"not the image of an init container", func(p *corev1.PodTemplateSpec) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}}
		}, recreates("a")},
		{"not a volume", func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{{Name: "v"}} }, recreates("a")},
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
	w.members[0].pod.Spec.Containers[0].Image = "zero"
	act := planOf(w).Steps[0][0][0]
	pod := act.Object.(*corev1.Pod)
	for what, ok := range map[string]bool{
		"the image is the spec's":                   pod.Spec.Containers[0].Image == "one",
		"the revision is the spec's":                revisionOf(pod) == "now",
		"the note says what was before":             pod.Annotations[v1alpha1.AnnotationInPlace] == `{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"zero"}}}`,
		"annotations of the old template go":        pod.Annotations["gone"] == "",
		"annotations of the new one come":           pod.Annotations["now"] == "1",
		"annotations of others stay":                pod.Annotations["users"] == "own",
		"labels of the old template go":             pod.Labels["tier"] == "",
		"labels of the new one come":                pod.Labels["new"] == "1",
		"the operator's labels stay":                pod.Labels[v1alpha1.LabelMember] == "a" && pod.Labels[v1alpha1.LabelClusterUID] == "uid-of-set",
		"the pod that was read is not changed":      w.members[0].pod.Spec.Containers[0].Image == "zero" && act.From == w.members[0].pod,
		"a patch of labels alone waits for nothing": labelsOnly().Annotations[v1alpha1.AnnotationInPlace] == "",
	} {
		if !ok {
			t.Errorf("not so: %s", what)
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
	with := func(p *podFixture) *world { return seen(set("db").maxUnavailable(1), p, oldB(), oldC(), oldImage()) }
	running := func() *podFixture { return a().patching(imageNote) }
	status := func(change func(*corev1.Pod)) *world {
		p := running()
		change(&p.pod)
		return with(p)
	}
	condition := func(kind corev1.PodConditionType, reason string) *podFixture {
		return running().condition(kind, corev1.ConditionTrue, reason, ago(0))
	}
	check(t, []row{
		{name: "SC-40 the container runs another image than before", world: with(running()), want: done},
		{name: "SC-40 not while it runs the image from before: Ready says nothing",
			world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "id-of-zero" })},
		{name: "SC-40 unless it was restarted: two tags may be one image",
			world: status(func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].ImageID, p.Status.ContainerStatuses[0].RestartCount = "id-of-zero", 1
			}), want: done},
		{name: "W4 an image that a policy changes back is not waited for", world: with(imageIs(a().patching(imageNote), "zero")), want: done},
		{name: "W4 the cache has the images of a pod that is patched", world: seen(set("db").maxUnavailable(1), imageIs(a().patching(imageNote), "zero"), oldB(), oldC(), oldImage(), cached), want: done},
		{name: "W4 an image that a policy changes to a third one is waited for", world: with(imageIs(a().patching(imageNote), "third"))},
		{name: "W4 a container that was stopped is waited for, whatever its image is",
			world: with(imageIs(a().patching(imageNote), "zero").waiting("ContainerCreating"))},
		{name: "not while the container waits", world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = nil })},
		{name: "not while the container has no status", world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses = nil })},
		{name: "not while the kubelet has not seen the patch",
			world: status(func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 2 })},
		{name: "a kubelet that does not say what it saw is believed",
			world: status(func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 0 }), want: done},
		{name: "not while the pod is not Ready", world: with(pod("a").patching(imageNote).on("n1").unreadyFor(0)), wait: 5 * time.Minute},
		{name: "not while a resize is deferred", world: with(condition(corev1.PodResizePending, corev1.PodReasonDeferred))},
		{name: "not while a resize is under way", world: with(condition(corev1.PodResizeInProgress, ""))},
		{name: "a note that cannot be read is taken off", world: with(a().patching(`{`)), want: done},
		{name: "a pod being patched does not count as available: no other is updated",
			world: status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "id-of-zero" })},
		{name: "SC-41 a corrected image replaces the bad one at once, though its pod is not Ready",
			world: with(pod("a").aged(time.Minute).patching(imageNote).on("n1").starting().of("old")), want: updatesInPlace("a"), wait: 9 * time.Minute},
		{name: "an update that was begun for a revision now kept by OnDelete is finished",
			world: seen(set("db").onDelete(), running().of("old"), oldB(), oldC(), oldImage()), want: done},
	})
}

// The image is reverted before the kubelet acted, so no restart follows.
func TestAnUpdateThatIsTakenBack(t *testing.T) {
	back := func(change func(*podFixture)) (note string) {
		p := a().patching(`{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"one"}}}`).of("bad")
		change(p)
		w := seen(set("db"), p, b(), c(), revisionOfImage("bad", "bad"))
		w.members[0].pod.Spec.Containers[0].Image = "bad"
		return firstWritten(w).GetAnnotations()[v1alpha1.AnnotationInPlace]
	}
	if got := back(func(*podFixture) {}); got != "{}" {
		t.Errorf("it waits for %s, want nothing but to be Ready", got)
	}
	if got := back(func(p *podFixture) { p.pod.Status.ContainerStatuses[0].State.Running = nil }); got != `{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"one"}}}` {
		t.Errorf("the container was stopped already, and it waits for %s", got)
	}
	if got := back(func(p *podFixture) { p.pod.Status.ContainerStatuses[0].RestartCount = 1 }); got != `{"containers":{"main":{"restarts":1,"imageID":"id-of-one","image":"bad"}}}` {
		t.Errorf("the container was swapped already, and it waits for %s", got)
	}
}

func TestAnUpdateOnTopOfAnother(t *testing.T) {
	w := seen(set("db"), a().patching(imageNote).of("old"), b(), c(), changedOld(func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }))
	if got := firstWritten(w).GetAnnotations()[v1alpha1.AnnotationInPlace]; got != imageNote {
		t.Errorf("a new label makes it wait for %s, want for the image as before", got)
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
		{name: "a resize that was not sent is sent", world: seen(bigger, unsent(), b(), c()), want: []string{"resize pod db-a: Resize, in place"}},
		{name: "the cache does not know sizes", world: seen(bigger, unsent(), b(), c(), cached), want: []string{"patch pod db-a: Updated, complete"}},
		{name: "a resize that is done is finished", world: seen(bigger, patched(), b(), c()), want: []string{"patch pod db-a: Updated, complete"}},
		{name: "a resize that no node can do is done by recreating", world: seen(bigger, infeasible, b(), c()), want: recreates("a")},
		{name: "a resize that was refused too", world: seen(bigger, unsent(), b(), c(), refused(reasonResize, "no", time.Minute)), want: recreates("a"), wait: time.Minute},
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
		return revisionWith("old", func(d *revisionData) { d.VolumeClaimTemplates[0].Spec.Resources = storage("1Gi") })
	}
	both := revisionWith("old", func(d *revisionData) {
		d.VolumeClaimTemplates[0].Spec.Resources = storage("1Gi")
		d.Template.Spec.Containers[0].Command = []string{"old"}
	})
	grows := "patch persistentvolumeclaim db-data-a: Expand"
	check(t, []row{
		{name: "a claim grows with its template, and its pod gets the revision",
			world: seen(big, oldA().claimsAre(small), b(), c(), smallOld()), want: []string{grows + " > patch pod db-a: Updated, in place"}},
		{name: "inPlace Never is about pods: a claim grows all the same",
			world: seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
				s.VolumeClaimTemplates[0].Spec.Resources = storage("2Gi")
				s.UpdateStrategy.InPlace = v1alpha1.InPlaceNever
			}), oldA().claimsAre(small), b(), c(), smallOld()), want: []string{grows + " > patch pod db-a: Updated, in place"}},
		{name: "a claim that has grown already is left alone", world: seen(big, oldA(), b(), c(), smallOld()), want: updatesInPlace("a")},
		{name: "a claim that cannot grow does not hold up the update", world: seen(big, oldA().claimsAre(small), b(), c(), smallOld(), refused(reasonExpand, "no", time.Minute)), want: updatesInPlace("a")},
		{name: "it is grown when that can be tried again", world: seen(big, a().claimsAre(small), b(), c(), refused(reasonExpand, "no", 0)), want: []string{grows}},
		{name: "and not before", world: seen(big, a().claimsAre(small), b(), c(), refused(reasonExpand, "no", time.Minute)), wait: time.Minute},
		{name: "a claim never shrinks", world: seen(set("db"), oldA(), b(), c(), revisionWith("old", func(d *revisionData) {
			d.VolumeClaimTemplates[0].Spec.Resources = storage("2Gi")
		})), want: updatesInPlace("a")},
		{name: "a claim of a pod that is recreated grows first", world: seen(big, oldA().claimsAre(small), b(), c(), both), want: []string{grows}},
		{name: "then the pod is recreated", world: seen(big, oldA(), b(), c(), both), want: recreates("a")},
		{name: "a pod whose claim cannot grow is recreated all the same",
			world: seen(big, oldA().claimsAre(small), b(), c(), both, refused(reasonExpand, "no", time.Minute)), want: recreates("a")},
	})
}

func TestRefusedUpdates(t *testing.T) {
	check(t, []row{
		{name: "an update in place that was refused waits", world: seen(set("db"), oldA(), oldB(), oldC(), oldImage(), refused(reasonUpdated, "policy", time.Minute)), wait: time.Minute},
		{name: "and is tried again then", world: seen(set("db"), oldA(), oldB(), oldC(), oldImage(), refused(reasonUpdated, "policy", 0)), want: updatesInPlace("a")},
	})
}
