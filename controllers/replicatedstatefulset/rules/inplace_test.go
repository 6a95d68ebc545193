package rules_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestResourcesInPlace(t *testing.T) {
	const note, resize, mark, stop = "patch pod %: InPlace, to new", "resize pod %: Resize, to new", "patch pod %: Resized, it has revision new", "%: Stop, with 0"
	of := func(line, pod string) []string { return []string{strings.Replace(line, "%", pod, 1)} }
	first, second := func() *fixture.PodFixture { return fixture.Pod(0).Primary().Of("old", "1", "1") }, func() *fixture.PodFixture { return fixture.Pod(1).Secondary() }
	updated := func() *fixture.PodFixture { return second().Of("new", "2", "2") }
	sent := func(age time.Duration) *fixture.PodFixture { return second().Of("old", "2", "1").Noted("new", age) }
	two := func(things ...fixture.Thing) *facts.World {
		return fixture.WorldOf(fixture.SizedSet("2"), append([]fixture.Thing{fixture.History()}, things...)...)
	}
	changed := func(change func(*v1alpha1.ReplicatedStatefulSet), things ...fixture.Thing) *facts.World {
		return fixture.WorldOf(fixture.SizedSet("2"), append([]fixture.Thing{fixture.History(change)}, things...)...)
	}
	never := fixture.SizedSet("2")
	never.Spec.UpdateStrategy = nil
	same := fixture.SizedSet("1")
	fixture.Check(t, []fixture.Row{
		{"RS-99 annotate a secondary with the new revision first", two(first(), second().Of("old", "1", "1")), of(note, "1")},
		{"RS-99 resize an annotated secondary", two(first(), second().Of("old", "1", "1").Noted("new", time.Second)), of(resize, "1")},
		{"RS-99 wait until the kubelet has resized the pod", two(first(), sent(time.Second)), nil},
		{"RS-99 wait until the kubelet has observed the resize", two(first(), unseen(second().Of("old", "2", "2").Noted("new", time.Second))), nil},
		{"RS-99 wait while the resize is in progress", two(first(), second().Of("old", "2", "2").Noted("new", time.Second).Says(corev1.PodResizeInProgress, "")), nil},
		{"RS-99 wait while the resized pod is not Ready", two(first(), second().Of("old", "2", "2").Noted("new", time.Second).Unready(0)), nil},
		{"RS-99 label a resized pod with the new revision", two(first(), second().Of("old", "2", "2").Noted("new", time.Second)), of(mark, "1")},
		{"RS-99 annotate the primary last, without a handover", two(first(), updated()), of(note, "0")},
		{"RS-99 resize the primary without a handover", two(first().Noted("new", time.Second), updated()), of(resize, "0")},
		{"RS-99 label the resized primary with the new revision", two(fixture.Pod(0).Primary().Of("old", "2", "2").Noted("new", time.Second), updated()), of(mark, "0")},
		{"RS-99 continue a begun resize before another one", fixture.WorldOf(three("2"), fixture.History(), first(), second().Of("old", "1", "1").Noted("new", time.Second), fixture.Pod(2).Secondary().Of("old", "1", "1")), of(resize, "1")},
		{"RS-99 no resize while a member is missing", two(first(), fixture.Pod(1).Pending()), nil},
		{"RS-99 label a resized pod while a member is missing", fixture.WorldOf(three("2"), fixture.History(), first(), second().Of("old", "2", "2").Noted("new", time.Second), fixture.Pod(2).Pending()), of(mark, "1")},
		{"recreate the member by default", fixture.WorldOf(never, fixture.History(), first(), second().Of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member after a change of the image", changed(func(old *v1alpha1.ReplicatedStatefulSet) { old.Spec.Pod.Containers[0].Image = "zero" }, first(), second().Of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member after a change of its labels", changed(func(old *v1alpha1.ReplicatedStatefulSet) { old.Spec.Pod.Labels = map[string]string{"tier": "data"} }, first(), second().Of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member when a request is removed", changed(func(old *v1alpha1.ReplicatedStatefulSet) {
			old.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		}, first(), second().Of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member after a change that a resize does not support", changed(func(old *v1alpha1.ReplicatedStatefulSet) {
			old.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
		}, first(), second().Of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member when the resize would restart its container", two(first(), second().Of("old", "1", "1").WithPolicy(corev1.ResourceCPU, corev1.RestartContainer)), of(stop, "1")},
		{"RS-99 resize although another resource has the policy RestartContainer", two(first(), second().Of("old", "1", "1").WithPolicy(corev1.ResourceMemory, corev1.RestartContainer)), of(note, "1")},
		{"RS-110 recreate the member when its environment contains the resources", fixture.WorldOf(reading(fixture.SizedSet("2")), fixture.History(), first(), second().Of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member when its revision is missing", two(first(), second().Of("gone", "1", "1").Outdated()), of(stop, "1")},
		{"RS-110 recreate the member when its template does not match its revision", two(first(), second().Of("old", "1", "1").Outdated()), of(stop, "1")},
		{"RS-110 recreate the member after a refused resize", two(first(), refusedOf(second().Of("old", "1", "1").Noted("new", time.Second), "new")), of(stop, "1")},
		{"RS-110 resize after a refused resize to another revision", two(first(), refusedOf(second().Of("old", "1", "1").Noted("new", time.Second), "between")), of(resize, "1")},
		{"RS-110 recreate the member when the resize is infeasible", two(first(), sent(time.Second).Says(corev1.PodResizePending, corev1.PodReasonInfeasible)), of(stop, "1")},
		{"RS-110 wait when Infeasible was reported before the resize", two(first(), unseen(sent(time.Second).Says(corev1.PodResizePending, corev1.PodReasonInfeasible))), nil},
		{"RS-110 wait while the resize is deferred", two(first(), sent(spec.ResizeWithin-time.Second).Says(corev1.PodResizePending, corev1.PodReasonDeferred)), nil},
		{"RS-110 recreate the member when the resize is deferred for too long", two(first(), sent(spec.ResizeWithin).Says(corev1.PodResizePending, corev1.PodReasonDeferred)), of(stop, "1")},
		{"RS-110 time without an operator does not count for the resize", two(first(), sent(spec.ResizeWithin), fixture.With(func(w *facts.World) { w.Watch.Since = fixture.Ago(time.Minute) })), nil},
		{"RS-110 annotate again when the resize was not sent in time", two(first(), second().Of("old", "1", "1").Noted("new", spec.ResizeWithin)), of(note, "1")},
		{"RS-110 label a pod that was resized late", two(first(), second().Of("old", "2", "2").Noted("new", spec.ResizeWithin)), of(mark, "1")},
		{"RS-111 annotate the pod again after another change", two(first(), second().Of("old", "3", "1").Noted("between", time.Second)), of(note, "1")},
		{"RS-111 resize the pod again after another change", two(first(), second().Of("old", "3", "3").Noted("new", time.Second, "between")), of(resize, "1")},
		{"RS-111 recreate the member when the other change removes a request", two(first(), second().Of("old", "3", "3").Noted("memory", time.Second)), of(stop, "1")},
		{"RS-111 recreate the member when an earlier change is removing a request", two(first(), second().Of("old", "3", "3").Noted("between", time.Second, "memory")), of(stop, "1")},
		{"RS-111 recreate the member when an earlier revision is missing", two(first(), second().Of("old", "3", "3").Noted("between", time.Second, "gone")), of(stop, "1")},
		{"RS-111 recreate the member when there are too many earlier revisions", two(first(), second().Of("old", "3", "3").Noted("between", time.Second, "old", "old", "old", "old")), of(stop, "1")},
		{"RS-111 annotate the pod when the change is reverted", fixture.WorldOf(same, fixture.History(), fixture.With(func(w *facts.World) { w.Stateful.Status.UpdateRevision = "old" }), first(), second().Of("old", "3", "1").Noted("between", time.Second)),
			of(strings.Replace(note, "new", "old", 1), "1")},
		{"RS-111 resize the pod when the change is reverted", fixture.WorldOf(same, fixture.History(), fixture.With(func(w *facts.World) { w.Stateful.Status.UpdateRevision = "old" }), first(), second().Of("old", "3", "1").Noted("old", time.Second, "between")),
			[]string{"resize pod 1: Resize, to old"}},
		{"RS-111 recreate the member when its annotation cannot be decoded", two(first(), second().Of("old", "1", "1").But(func(w *facts.World) {
			w.Members[1].Pod.Annotations[v1alpha1.AnnotationInPlace] = "?"
		})), of(stop, "1")},
		{"RS-111 recreate the member when in-place changes are disabled", fixture.WorldOf(never.DeepCopy(), fixture.History(), fixture.Pod(0).Primary().Of("new", "2", "2"), updated().Noted("new", time.Second)), of(stop, "1")},
	})
}

func three(cpu string) *v1alpha1.ReplicatedStatefulSet {
	set := fixture.SizedSet(cpu)
	set.Spec.Replicas = new(int32(3))
	return set
}

func reading(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Pod.Containers[0].Env = []corev1.EnvVar{{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"}}}}
	return set
}

func unseen(f *fixture.PodFixture) *fixture.PodFixture {
	f.Pod.Generation++
	return f
}

func refusedOf(f *fixture.PodFixture, revision string) *fixture.PodFixture {
	f.ResizeRefused = facts.RefusedResize{Revision: revision, Text: "no"}
	return f
}

func TestWritesInPlaceAreBoundToThePodThatWasRead(t *testing.T) {
	for _, f := range []*fixture.PodFixture{
		fixture.Pod(1).Secondary().Of("old", "1", "1"),
		fixture.Pod(1).Secondary().Of("old", "1", "1").Noted("new", time.Second),
		fixture.Pod(1).Secondary().Of("old", "2", "2").Noted("new", time.Second),
	} {
		p := rules.Decide(fixture.InPlaceWorld(f))
		if len(p.Steps) != 1 || len(p.Steps[0]) != 1 || len(p.Steps[0][0]) != 1 {
			t.Fatalf("the plan is %q, want one write", p.Steps.Strings())
		}
		if a := p.Steps[0][0][0]; !a.Unchanged || a.From.GetUID() != "u1" {
			t.Errorf("%s: the write is not bound to the version of the pod that was read", a)
		}
	}
}

func TestAPodThatWasResizedIsLikeANewOne(t *testing.T) {
	set := fixture.SizedSet("2")
	set.Labels = map[string]string{"chart": "2"}
	w := fixture.WorldOf(set, fixture.History(func(old *v1alpha1.ReplicatedStatefulSet) { old.Labels = map[string]string{"chart": "1"} }),
		fixture.Pod(0).Primary().Of("new", "2", "2"), fixture.Pod(1).Secondary().Of("old", "2", "2").Noted("new", time.Second))
	w.Members[1].Pod.Labels["chart"], w.Members[1].Pod.Labels["of a webhook"] = "1", "stays"
	p := rules.Decide(w)
	if got := fixture.Gist(&p); len(got) != 1 || !strings.Contains(got[0], "Resized") {
		t.Fatalf("the plan is %q", got)
	}
	pod := p.Steps[0][0][0].Object.(*corev1.Pod)
	if pod.Labels["chart"] != "2" || pod.Labels["of a webhook"] != "stays" || pod.Labels[appsv1.ControllerRevisionHashLabelKey] != "new" {
		t.Errorf("the labels are %v", pod.Labels)
	}
	if facts.IsChangedInPlace(pod) || !w.IsUpToDate(&facts.Member{Pod: pod}) {
		t.Errorf("the annotations are %v", pod.Annotations)
	}
}

func TestACachedWorldDoesNotSayHowAMemberIsUpdated(t *testing.T) {
	w := fixture.InPlaceWorld(fixture.Pod(1).Secondary().Of("old", "1", "1"))
	w.Live, w.Revisions = false, nil
	if p := rules.Decide(w); !p.AsksOnly() || !p.LooksLive {
		t.Errorf("the plan is %q, and looksLive is %t", fixture.Gist(&p), p.LooksLive)
	}
	w = fixture.InPlaceWorld(fixture.Pod(1).Secondary().Of("old", "2", "2").Noted("new", time.Second))
	w.Live, w.Revisions = false, nil
	if p := rules.Decide(w); !p.LooksLive {
		t.Error("a resize that may be complete is not verified with live objects")
	}
}

func TestWhatIsSaidOfAResize(t *testing.T) {
	w := fixture.InPlaceWorld(fixture.Pod(1).Secondary().Of("old", "2", "1").Noted("new", time.Minute).Says(corev1.PodResizePending, corev1.PodReasonDeferred))
	p := rules.Decide(w)
	for _, text := range []string{"the resources of rss-db-1 in place", "has not finished by 12:04:00", "Deferred, 1 cpu is free"} {
		if p.Waiting.Reason != v1alpha1.ReasonUpdating || !strings.Contains(p.Waiting.Message, text) {
			t.Errorf("the status is %+v, want it to contain %q", p.Waiting, text)
		}
	}
	if want := 4 * time.Minute; p.Wait <= 0 || p.Wait > want {
		t.Errorf("requeued after %s, want at most %s", p.Wait, want)
	}
	p = rules.Decide(fixture.InPlaceWorld(fixture.Pod(1).Secondary().Of("old", "2", "1").Noted("new", time.Minute).Says(corev1.PodResizePending, corev1.PodReasonInfeasible)))
	if !strings.Contains(p.NotInPlace, "recreating rss-db-1") || !strings.Contains(p.NotInPlace, "Infeasible, 1 cpu is free") {
		t.Errorf("the event is %q", p.NotInPlace)
	}
	if p = rules.Decide(fixture.WorldOf(fixture.SizedSet("2"), fixture.History(func(old *v1alpha1.ReplicatedStatefulSet) { old.Spec.Pod.Containers[0].Image = "zero" }),
		fixture.Pod(0).Primary().Of("old", "1", "1"), fixture.Pod(1).Secondary().Of("old", "1", "1"))); p.NotInPlace != "" {
		t.Errorf("the event for a change of the image is %q, want none", p.NotInPlace)
	}
}

func TestARefusedResizeIsRemembered(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	w := fixture.InPlaceWorld(fixture.Pod(1).Secondary().Of("old", "1", "1").Noted("new", time.Second))
	p := rules.Decide(w)
	for _, r := range []struct {
		err     error
		refused bool
	}{
		{apierrors.NewForbidden(pods, "rss-db-1", errors.New("exceeded quota")), true},
		{apierrors.NewNotFound(pods, "rss-db-1"), true},
		{apierrors.NewBadRequest("no"), true},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "rss-db-1", nil), true},
		{apierrors.NewConflict(pods, "rss-db-1", errors.New("old")), false},
		{apierrors.NewInternalError(errors.New("down")), false},
		{errors.New("timeout"), false},
		{nil, false},
	} {
		known := &observe.Remembered{Pods: map[types.UID]*observe.Seen{"u1": {Said: map[string]podexec.Result{}}}}
		o := action.Outcome{Action: p.Steps[0][0][0], Err: r.err}
		if r.err == nil {
			o.Answer = o.Object
		}
		if got := known.LearnResize(&o); got != r.refused || (known.Pods["u1"].Resize.Revision == "new") != r.refused {
			t.Errorf("%v: refused is %t, and the remembered resize is %+v", r.err, got, known.Pods["u1"].Resize)
		}
	}
}

// TestAResizeThatIsTakenBackIsNotSentAgain tests that a write that a policy reverts is not repeated
// forever.
func TestAResizeThatIsTakenBackIsNotSentAgain(t *testing.T) {
	for name, f := range map[string]*fixture.PodFixture{
		"the annotation": fixture.Pod(1).Secondary().Of("old", "1", "1"), "the resources": fixture.Pod(1).Secondary().Of("old", "1", "1").Noted("new", time.Second),
	} {
		p := rules.Decide(fixture.InPlaceWorld(f))
		known := &observe.Remembered{Pods: map[types.UID]*observe.Seen{"u1": {}}}
		a := p.Steps[0][0][0]
		if known.LearnResize(&action.Outcome{Action: a, Answer: a.From}) || known.Pods["u1"].Resize.Revision != "new" {
			t.Errorf("%s: the remembered resize is %+v", name, known.Pods["u1"].Resize)
		}
	}
}
