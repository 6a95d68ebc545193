package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestRestartsAreCountedFromTheUpdateInPlace(t *testing.T) {
	patched := fixture.FirstWritten(fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().Restarted(3).Of("old"), fixture.B(), fixture.C(), fixture.OldImage()))
	if got := patched.GetAnnotations()[v1alpha1.AnnotationRestarts]; got != "3" {
		t.Errorf("V9 the patch notes %q restarts, want 3", got)
	}
	done := fixture.FirstWritten(fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().Restarted(4).Annotated(v1alpha1.AnnotationRestarts, "3").
		Patching(`{"containers":{"main":{"restarts":3,"imageID":"id-of-zero"}}}`), fixture.B(), fixture.C()))
	if got := done.GetAnnotations()[v1alpha1.AnnotationRestarts]; got != "4" {
		t.Errorf("V9 the completed update notes %q restarts, want 4", got)
	}
	fresh := fixture.FirstWritten(fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.OldImage()))
	if got, noted := fresh.GetAnnotations()[v1alpha1.AnnotationRestarts]; noted {
		t.Errorf("V9 %q restarts are noted on a pod that never restarted", got)
	}
}

func TestWhatAnInPlacePatchSays(t *testing.T) {
	s := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Template.Annotations = map[string]string{"now": "1"}
		s.Template.Labels["new"] = "1"
	})
	member := fixture.OldA().Annotated("gone", "1").Annotated("users", "own").Labelled("tier", "old")
	w := fixture.Seen(s, member, fixture.OldB(), fixture.OldC(), fixture.ChangedOld(func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Image = "zero"
		p.Annotations = map[string]string{"gone": "1"}
		p.Labels = map[string]string{"app": "db", "tier": "old"}
	}))
	w.Members[0].Pod.Spec.Containers[0].Image = "zero"
	act := fixture.PlanOf(w).Steps[0][0][0]
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
	w := fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.ChangedOld(func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }))
	return fixture.FirstWritten(w).(*corev1.Pod)
}

// imageIs sets the image of the pod, with a container that still runs the previous one.
func imageIs(p *fixture.PodFixture, image string) *fixture.PodFixture {
	p.Pod.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	p.Pod.Status.ContainerStatuses[0].ImageID = "id-of-zero"
	return p
}

const imageNote = `{"containers":{"main":{"restarts":0,"imageID":"id-of-zero","image":"zero"}}}`

// The image is reverted before the kubelet acted, so no restart follows.
func TestAnUpdateThatIsTakenBack(t *testing.T) {
	back := func(change func(*fixture.PodFixture)) (note string) {
		p := fixture.A().Patching(`{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"one"}}}`).Of("bad")
		change(p)
		w := fixture.Seen(fixture.Set("db"), p, fixture.B(), fixture.C(), fixture.RevisionOfImage("bad", "bad"))
		w.Members[0].Pod.Spec.Containers[0].Image = "bad"
		return fixture.FirstWritten(w).GetAnnotations()[v1alpha1.AnnotationInPlace]
	}
	if got := back(func(*fixture.PodFixture) {}); got != "{}" {
		t.Errorf("the note is %s, want {}: wait only until the pod is Ready", got)
	}
	if got := back(func(p *fixture.PodFixture) { p.Pod.Status.ContainerStatuses[0].State.Running = nil }); got != `{"containers":{"main":{"restarts":0,"imageID":"id-of-one","image":"one"}}}` {
		t.Errorf("the container was already stopped, and the note is %s", got)
	}
	if got := back(func(p *fixture.PodFixture) { p.Pod.Status.ContainerStatuses[0].RestartCount = 1 }); got != `{"containers":{"main":{"restarts":1,"imageID":"id-of-one","image":"bad"}}}` {
		t.Errorf("the container was already restarted, and the note is %s", got)
	}
}

func TestAnUpdateOnTopOfAnother(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A().Patching(imageNote).Of("old"), fixture.B(), fixture.C(), fixture.ChangedOld(func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }))
	if got := fixture.FirstWritten(w).GetAnnotations()[v1alpha1.AnnotationInPlace]; got != imageNote {
		t.Errorf("the note after a change of labels is %s, want the note about the image", got)
	}
}

func TestResize(t *testing.T) {
	bigger := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.Containers[0].Resources = fixture.Cpu("2") })
	patched := func() *fixture.PodFixture { return fixture.A().Patching(`{"resize":true}`) }
	unsent := func() *fixture.PodFixture {
		p := patched()
		p.Pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "one", Resources: fixture.Cpu("1")}}
		return p
	}
	infeasible := patched().Condition(corev1.PodResizePending, corev1.ConditionTrue, corev1.PodReasonInfeasible, fixture.Ago(0))
	fixture.Check(t, []fixture.Row{
		{Name: "a resize that was not sent before is sent", World: fixture.Seen(bigger, unsent(), fixture.B(), fixture.C()), Want: []string{"resize pod db-a: Resize, in place"}},
		{Name: "a resize is complete according to the cache, which does not hold resources", World: fixture.Seen(bigger, unsent(), fixture.B(), fixture.C(), cached), Want: []string{"patch pod db-a: Updated, complete"}},
		{Name: "a completed resize completes the update", World: fixture.Seen(bigger, patched(), fixture.B(), fixture.C()), Want: []string{"patch pod db-a: Updated, complete"}},
		{Name: "an infeasible resize recreates the pod", World: fixture.Seen(bigger, infeasible, fixture.B(), fixture.C()), Want: fixture.Recreates("a")},
		{Name: "a refused resize recreates the pod", World: fixture.Seen(bigger, unsent(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonResize, "no", time.Minute)), Want: fixture.Recreates("a"), Wait: time.Minute},
	})
}

func TestClaimsGrow(t *testing.T) {
	big := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
		s.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("2Gi")
	})
	small := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
	}
	smallOld := func() fixture.Thing {
		return fixture.RevisionWith("old", func(d *children.RevisionData) { d.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("1Gi") })
	}
	both := fixture.RevisionWith("old", func(d *children.RevisionData) {
		d.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("1Gi")
		d.Template.Spec.Containers[0].Command = []string{"old"}
	})
	grows := "patch persistentvolumeclaim db-data-a: Expand"
	fixture.Check(t, []fixture.Row{
		{Name: "a claim is expanded and its pod gets the new revision",
			World: fixture.Seen(big, fixture.OldA().ClaimsAre(small), fixture.B(), fixture.C(), smallOld()), Want: []string{grows + " > patch pod db-a: Updated, in place"}},
		{Name: "a claim is expanded with inPlace Never, which applies to pods only",
			World: fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
				s.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("2Gi")
				s.UpdateStrategy.InPlace = v1alpha1.InPlaceNever
			}), fixture.OldA().ClaimsAre(small), fixture.B(), fixture.C(), smallOld()), Want: []string{grows + " > patch pod db-a: Updated, in place"}},
		{Name: "a claim that was already expanded is not changed", World: fixture.Seen(big, fixture.OldA(), fixture.B(), fixture.C(), smallOld()), Want: fixture.UpdatesInPlace("a")},
		{Name: "a refused expansion of a claim does not block the update", World: fixture.Seen(big, fixture.OldA().ClaimsAre(small), fixture.B(), fixture.C(), smallOld(), fixture.Refused(facts.ReasonExpand, "no", time.Minute)), Want: fixture.UpdatesInPlace("a")},
		{Name: "a refused expansion is retried when its retry time has come", World: fixture.Seen(big, fixture.A().ClaimsAre(small), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonExpand, "no", 0)), Want: []string{grows}},
		{Name: "a refused expansion is not retried before its retry time", World: fixture.Seen(big, fixture.A().ClaimsAre(small), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonExpand, "no", time.Minute)), Wait: time.Minute},
		{Name: "a claim is not changed if the template requests less storage", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.RevisionWith("old", func(d *children.RevisionData) {
			d.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("2Gi")
		})), Want: fixture.UpdatesInPlace("a")},
		{Name: "a claim is expanded before its pod is recreated", World: fixture.Seen(big, fixture.OldA().ClaimsAre(small), fixture.B(), fixture.C(), both), Want: []string{grows}},
		{Name: "the pod is recreated after its claim was expanded", World: fixture.Seen(big, fixture.OldA(), fixture.B(), fixture.C(), both), Want: fixture.Recreates("a")},
		{Name: "a pod is recreated even if the expansion of its claim is refused",
			World: fixture.Seen(big, fixture.OldA().ClaimsAre(small), fixture.B(), fixture.C(), both, fixture.Refused(facts.ReasonExpand, "no", time.Minute)), Want: fixture.Recreates("a")},
	})
}

func TestRefusedUpdates(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "a refused in-place update is not retried before its retry time", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage(), fixture.Refused(facts.ReasonUpdated, "policy", time.Minute)), Wait: time.Minute},
		{Name: "a refused in-place update is retried when its retry time has come", World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage(), fixture.Refused(facts.ReasonUpdated, "policy", 0)), Want: fixture.UpdatesInPlace("a")},
	})
}

func TestResourcesInPlace(t *testing.T) {
	limit := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	fixture.Check(t, []fixture.Row{
		{Name: "removing a resource request recreates the pod",
			World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.ChangedOld(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = fixture.Cpu("1") })), Want: fixture.Recreates("a")},
		{Name: "removing a resource limit recreates the pod",
			World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.ChangedOld(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = limit("1") })), Want: fixture.Recreates("a")},
	})
}
