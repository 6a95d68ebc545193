package replicatedstatefulset

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func asking(cpu string) corev1.ResourceRequirements {
	if cpu == "" {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

// inPlace allows changes of members in place.
func inPlace(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{InPlace: v1alpha1.InPlaceResources}
	return set
}

// sizedSet returns a set of two that requests that much cpu and allows changes in place.
func sizedSet(cpu string) *v1alpha1.ReplicatedStatefulSet {
	set := inPlace(setOf(2, 1))
	set.Spec.Pod.Containers[0].Resources = asking(cpu)
	return set
}

// history adds revision old, which requests 1 cpu, and the current one, new.
func history(change ...func(old *v1alpha1.ReplicatedStatefulSet)) thing {
	return with(func(w *facts.World) {
		w.Stateful.Status.UpdateRevision = "new"
		w.Revisions = map[string]*corev1.PodTemplateSpec{"new": &w.Stateful.Spec.Template}
		for name, cpu := range map[string]string{"old": "1", "between": "3"} {
			was := w.Set.DeepCopy()
			was.Spec.Pod.Containers[0].Resources = asking(cpu)
			if name == "old" {
				for _, c := range change {
					c(was)
				}
			}
			template := children.BuildTemplate(was, children.Hashes{})
			w.Revisions[name] = &template
		}
		more := w.Revisions["between"].DeepCopy()
		more.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		w.Revisions["memory"] = more
	})
}

// of sets the revision of the pod, and the requested and actual cpu of its container.
func (f *podFixture) of(revision, asked, has string) *podFixture {
	f.Pod.Generation, f.Pod.Status.ObservedGeneration = 2, 2
	f.Pod.Spec.Containers[0].Resources = asking(asked)
	f.Pod.Status.ContainerStatuses[0].Resources = new(asking(has))
	f.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	return f.but(func(w *facts.World) {
		if t := w.Revisions[revision]; t != nil {
			f.Pod.Annotations[v1alpha1.AnnotationTemplate] = t.Annotations[v1alpha1.AnnotationTemplate]
		}
	})
}

// noted adds the note that the pod has been changing to that revision for that long.
func (f *podFixture) noted(revision string, age time.Duration, earlier ...string) *podFixture {
	return f.but(func(*facts.World) {
		text, _ := json.Marshal(facts.InPlaceNote{Revision: revision, Since: metaTime(age), Earlier: earlier})
		f.Pod.Annotations[v1alpha1.AnnotationInPlace] = string(text)
	})
}

// says adds a condition in which the kubelet reports on the resize.
func (f *podFixture) says(kind corev1.PodConditionType, reason string) *podFixture {
	f.Pod.Status.Conditions = append(f.Pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "1 cpu is free"})
	return f
}

func (f *podFixture) withPolicy(name corev1.ResourceName, policy corev1.ResourceResizeRestartPolicy) *podFixture {
	f.Pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: policy}}
	return f
}

func TestResourcesInPlace(t *testing.T) {
	const note, resize, mark, stop = "patch pod %: InPlace, to new", "resize pod %: Resize, to new", "patch pod %: Resized, it has revision new", "%: Stop, with 0"
	of := func(line, pod string) []string { return []string{strings.Replace(line, "%", pod, 1)} }
	first, second := func() *podFixture { return pod(0).primary().of("old", "1", "1") }, func() *podFixture { return pod(1).secondary() }
	updated := func() *podFixture { return second().of("new", "2", "2") }
	sent := func(age time.Duration) *podFixture { return second().of("old", "2", "1").noted("new", age) }
	two := func(things ...thing) *facts.World {
		return worldOf(sizedSet("2"), append([]thing{history()}, things...)...)
	}
	changed := func(change func(*v1alpha1.ReplicatedStatefulSet), things ...thing) *facts.World {
		return worldOf(sizedSet("2"), append([]thing{history(change)}, things...)...)
	}
	never := sizedSet("2")
	never.Spec.UpdateStrategy = nil
	same := sizedSet("1")
	check(t, []row{
		{"RS-99 annotate a secondary with the new revision first", two(first(), second().of("old", "1", "1")), of(note, "1")},
		{"RS-99 resize an annotated secondary", two(first(), second().of("old", "1", "1").noted("new", time.Second)), of(resize, "1")},
		{"RS-99 wait until the kubelet has resized the pod", two(first(), sent(time.Second)), nil},
		{"RS-99 wait until the kubelet has observed the resize", two(first(), unseen(second().of("old", "2", "2").noted("new", time.Second))), nil},
		{"RS-99 wait while the resize is in progress", two(first(), second().of("old", "2", "2").noted("new", time.Second).says(corev1.PodResizeInProgress, "")), nil},
		{"RS-99 wait while the resized pod is not Ready", two(first(), second().of("old", "2", "2").noted("new", time.Second).unready(0)), nil},
		{"RS-99 label a resized pod with the new revision", two(first(), second().of("old", "2", "2").noted("new", time.Second)), of(mark, "1")},
		{"RS-99 annotate the primary last, without a handover", two(first(), updated()), of(note, "0")},
		{"RS-99 resize the primary without a handover", two(first().noted("new", time.Second), updated()), of(resize, "0")},
		{"RS-99 label the resized primary with the new revision", two(pod(0).primary().of("old", "2", "2").noted("new", time.Second), updated()), of(mark, "0")},
		{"RS-99 continue a begun resize before another one", worldOf(three("2"), history(), first(), second().of("old", "1", "1").noted("new", time.Second), pod(2).secondary().of("old", "1", "1")), of(resize, "1")},
		{"RS-99 no resize while a member is missing", two(first(), pod(1).pending()), nil},
		{"RS-99 label a resized pod while a member is missing", worldOf(three("2"), history(), first(), second().of("old", "2", "2").noted("new", time.Second), pod(2).pending()), of(mark, "1")},
		{"recreate the member by default", worldOf(never, history(), first(), second().of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member after a change of the image", changed(func(old *v1alpha1.ReplicatedStatefulSet) { old.Spec.Pod.Containers[0].Image = "zero" }, first(), second().of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member after a change of its labels", changed(func(old *v1alpha1.ReplicatedStatefulSet) { old.Spec.Pod.Labels = map[string]string{"tier": "data"} }, first(), second().of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member when a request is removed", changed(func(old *v1alpha1.ReplicatedStatefulSet) {
			old.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		}, first(), second().of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member after a change that a resize does not support", changed(func(old *v1alpha1.ReplicatedStatefulSet) {
			old.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
		}, first(), second().of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member when the resize would restart its container", two(first(), second().of("old", "1", "1").withPolicy(corev1.ResourceCPU, corev1.RestartContainer)), of(stop, "1")},
		{"RS-99 resize although another resource has the policy RestartContainer", two(first(), second().of("old", "1", "1").withPolicy(corev1.ResourceMemory, corev1.RestartContainer)), of(note, "1")},
		{"RS-110 recreate the member when its environment contains the resources", worldOf(reading(sizedSet("2")), history(), first(), second().of("old", "1", "1")), of(stop, "1")},
		{"RS-110 recreate the member when its revision is missing", two(first(), second().of("gone", "1", "1").outdated()), of(stop, "1")},
		{"RS-110 recreate the member when its template does not match its revision", two(first(), second().of("old", "1", "1").outdated()), of(stop, "1")},
		{"RS-110 recreate the member after a refused resize", two(first(), refusedOf(second().of("old", "1", "1").noted("new", time.Second), "new")), of(stop, "1")},
		{"RS-110 resize after a refused resize to another revision", two(first(), refusedOf(second().of("old", "1", "1").noted("new", time.Second), "between")), of(resize, "1")},
		{"RS-110 recreate the member when the resize is infeasible", two(first(), sent(time.Second).says(corev1.PodResizePending, corev1.PodReasonInfeasible)), of(stop, "1")},
		{"RS-110 wait when Infeasible was reported before the resize", two(first(), unseen(sent(time.Second).says(corev1.PodResizePending, corev1.PodReasonInfeasible))), nil},
		{"RS-110 wait while the resize is deferred", two(first(), sent(spec.ResizeWithin-time.Second).says(corev1.PodResizePending, corev1.PodReasonDeferred)), nil},
		{"RS-110 recreate the member when the resize is deferred for too long", two(first(), sent(spec.ResizeWithin).says(corev1.PodResizePending, corev1.PodReasonDeferred)), of(stop, "1")},
		{"RS-110 time without an operator does not count for the resize", two(first(), sent(spec.ResizeWithin), with(func(w *facts.World) { w.Watch.Since = ago(time.Minute) })), nil},
		{"RS-110 annotate again when the resize was not sent in time", two(first(), second().of("old", "1", "1").noted("new", spec.ResizeWithin)), of(note, "1")},
		{"RS-110 label a pod that was resized late", two(first(), second().of("old", "2", "2").noted("new", spec.ResizeWithin)), of(mark, "1")},
		{"RS-111 annotate the pod again after another change", two(first(), second().of("old", "3", "1").noted("between", time.Second)), of(note, "1")},
		{"RS-111 resize the pod again after another change", two(first(), second().of("old", "3", "3").noted("new", time.Second, "between")), of(resize, "1")},
		{"RS-111 recreate the member when the other change removes a request", two(first(), second().of("old", "3", "3").noted("memory", time.Second)), of(stop, "1")},
		{"RS-111 recreate the member when an earlier change is removing a request", two(first(), second().of("old", "3", "3").noted("between", time.Second, "memory")), of(stop, "1")},
		{"RS-111 recreate the member when an earlier revision is missing", two(first(), second().of("old", "3", "3").noted("between", time.Second, "gone")), of(stop, "1")},
		{"RS-111 recreate the member when there are too many earlier revisions", two(first(), second().of("old", "3", "3").noted("between", time.Second, "old", "old", "old", "old")), of(stop, "1")},
		{"RS-111 annotate the pod when the change is reverted", worldOf(same, history(), with(func(w *facts.World) { w.Stateful.Status.UpdateRevision = "old" }), first(), second().of("old", "3", "1").noted("between", time.Second)),
			of(strings.Replace(note, "new", "old", 1), "1")},
		{"RS-111 resize the pod when the change is reverted", worldOf(same, history(), with(func(w *facts.World) { w.Stateful.Status.UpdateRevision = "old" }), first(), second().of("old", "3", "1").noted("old", time.Second, "between")),
			[]string{"resize pod 1: Resize, to old"}},
		{"RS-111 recreate the member when its annotation cannot be decoded", two(first(), second().of("old", "1", "1").but(func(w *facts.World) {
			w.Members[1].Pod.Annotations[v1alpha1.AnnotationInPlace] = "?"
		})), of(stop, "1")},
		{"RS-111 recreate the member when in-place changes are disabled", worldOf(never.DeepCopy(), history(), pod(0).primary().of("new", "2", "2"), updated().noted("new", time.Second)), of(stop, "1")},
	})
}

func three(cpu string) *v1alpha1.ReplicatedStatefulSet {
	set := sizedSet(cpu)
	set.Spec.Replicas = new(int32(3))
	return set
}

func reading(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Pod.Containers[0].Env = []corev1.EnvVar{{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"}}}}
	return set
}

func unseen(f *podFixture) *podFixture {
	f.Pod.Generation++
	return f
}

func refusedOf(f *podFixture, revision string) *podFixture {
	f.ResizeRefused = facts.RefusedResize{Revision: revision, Text: "no"}
	return f
}

// inPlaceWorld returns a world in which member 1 must be resized.
func inPlaceWorld(f *podFixture) *facts.World {
	return worldOf(sizedSet("2"), history(), pod(0).primary().of("old", "1", "1"), f)
}

func TestWritesInPlaceAreBoundToThePodThatWasRead(t *testing.T) {
	for _, f := range []*podFixture{
		pod(1).secondary().of("old", "1", "1"),
		pod(1).secondary().of("old", "1", "1").noted("new", time.Second),
		pod(1).secondary().of("old", "2", "2").noted("new", time.Second),
	} {
		p := rules.Decide(inPlaceWorld(f))
		if len(p.Steps) != 1 || len(p.Steps[0]) != 1 || len(p.Steps[0][0]) != 1 {
			t.Fatalf("the plan is %q, want one write", p.Steps.Strings())
		}
		if a := p.Steps[0][0][0]; !a.Unchanged || a.From.GetUID() != "u1" {
			t.Errorf("%s: the write is not bound to the version of the pod that was read", a)
		}
	}
}

func TestANoteNamesAllRevisionsThatAPodMayHave(t *testing.T) {
	p := rules.Decide(inPlaceWorld(pod(1).secondary().of("old", "3", "3").noted("between", time.Minute, "new", "old")))
	if got := gist(&p); len(got) != 1 || !strings.Contains(got[0], "InPlace") {
		t.Fatalf("the plan is %q", got)
	}
	note, readable := facts.InPlaceNoteOf(p.Steps[0][0][0].Object.(*corev1.Pod))
	if !readable || note.Revision != "new" || !slices.Equal(note.Earlier, []string{"old", "between"}) || !note.Since.Time.Equal(noon) {
		t.Errorf("the note is %+v", note)
	}
}

func TestAPodThatWasResizedIsLikeANewOne(t *testing.T) {
	set := sizedSet("2")
	set.Labels = map[string]string{"chart": "2"}
	w := worldOf(set, history(func(old *v1alpha1.ReplicatedStatefulSet) { old.Labels = map[string]string{"chart": "1"} }),
		pod(0).primary().of("new", "2", "2"), pod(1).secondary().of("old", "2", "2").noted("new", time.Second))
	w.Members[1].Pod.Labels["chart"], w.Members[1].Pod.Labels["of a webhook"] = "1", "stays"
	p := rules.Decide(w)
	if got := gist(&p); len(got) != 1 || !strings.Contains(got[0], "Resized") {
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
	w := inPlaceWorld(pod(1).secondary().of("old", "1", "1"))
	w.Live, w.Revisions = false, nil
	if p := rules.Decide(w); !p.AsksOnly() || !p.LooksLive {
		t.Errorf("the plan is %q, and looksLive is %t", gist(&p), p.LooksLive)
	}
	w = inPlaceWorld(pod(1).secondary().of("old", "2", "2").noted("new", time.Second))
	w.Live, w.Revisions = false, nil
	if p := rules.Decide(w); !p.LooksLive {
		t.Error("a resize that may be complete is not verified with live objects")
	}
}

func TestWhatIsSaidOfAResize(t *testing.T) {
	w := inPlaceWorld(pod(1).secondary().of("old", "2", "1").noted("new", time.Minute).says(corev1.PodResizePending, corev1.PodReasonDeferred))
	p := rules.Decide(w)
	for _, text := range []string{"the resources of rss-db-1 in place", "has not finished by 12:04:00", "Deferred, 1 cpu is free"} {
		if p.Waiting.Reason != v1alpha1.ReasonUpdating || !strings.Contains(p.Waiting.Message, text) {
			t.Errorf("the status is %+v, want it to contain %q", p.Waiting, text)
		}
	}
	if want := 4 * time.Minute; p.Wait <= 0 || p.Wait > want {
		t.Errorf("requeued after %s, want at most %s", p.Wait, want)
	}
	p = rules.Decide(inPlaceWorld(pod(1).secondary().of("old", "2", "1").noted("new", time.Minute).says(corev1.PodResizePending, corev1.PodReasonInfeasible)))
	if !strings.Contains(p.NotInPlace, "recreating rss-db-1") || !strings.Contains(p.NotInPlace, "Infeasible, 1 cpu is free") {
		t.Errorf("the event is %q", p.NotInPlace)
	}
	if p = rules.Decide(worldOf(sizedSet("2"), history(func(old *v1alpha1.ReplicatedStatefulSet) { old.Spec.Pod.Containers[0].Image = "zero" }),
		pod(0).primary().of("old", "1", "1"), pod(1).secondary().of("old", "1", "1"))); p.NotInPlace != "" {
		t.Errorf("the event for a change of the image is %q, want none", p.NotInPlace)
	}
}

func TestARefusedResizeIsRemembered(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	w := inPlaceWorld(pod(1).secondary().of("old", "1", "1").noted("new", time.Second))
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
	for name, f := range map[string]*podFixture{
		"the annotation": pod(1).secondary().of("old", "1", "1"), "the resources": pod(1).secondary().of("old", "1", "1").noted("new", time.Second),
	} {
		p := rules.Decide(inPlaceWorld(f))
		known := &observe.Remembered{Pods: map[types.UID]*observe.Seen{"u1": {}}}
		a := p.Steps[0][0][0]
		if known.LearnResize(&action.Outcome{Action: a, Answer: a.From}) || known.Pods["u1"].Resize.Revision != "new" {
			t.Errorf("%s: the remembered resize is %+v", name, known.Pods["u1"].Resize)
		}
	}
}

func TestLargeRevisionsAreNotRead(t *testing.T) {
	read := func(spec string) *corev1.PodTemplateSpec {
		return observe.TemplateIn(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":` + spec + `}}}`)}})
	}
	many := func(n int) string { return `{"containers":[` + strings.Repeat("{},", n-1) + "{}]}" }
	if read(many(1)) == nil || read(many(spec.MaxContainers)) == nil {
		t.Error("a template within the limits is not read")
	}
	for name, spec := range map[string]string{
		"too many containers": many(spec.MaxContainers + 1),
		"a huge quantity":     `{"containers":[{"resources":{"limits":{"cpu":"1e99999999"}}}]}`,
		"a long text":         `{"hostname":"` + strings.Repeat("x", 2*bounds.Bytes) + `"}`,
		"invalid JSON":        `{`,
	} {
		if read(spec) != nil {
			t.Errorf("a template beyond the limits is read: %s", name)
		}
	}
}

func TestRevisionsAreReadLive(t *testing.T) {
	s := newStage(t, inPlace(setOf(3, 1)))
	s.settle(time.Minute)
	if w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}); len(w.Revisions) != 0 {
		t.Errorf("%d templates of an updated set are read, want 0", len(w.Revisions))
	}
	cpuOf("2")(s)
	for range 3 { // the StatefulSet gets the template, and its controller observes it
		s.look()
		s.pass()
		for _, move := range s.machines() {
			move()
		}
	}
	w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true})
	if now, was := w.Revisions[w.Stateful.Status.UpdateRevision], w.Revisions[s.pod(1).Labels[appsv1.ControllerRevisionHashLabelKey]]; now == nil || was == nil ||
		now.Spec.Containers[0].Resources.Requests.Cpu().String() != "2" || len(was.Spec.Containers[0].Resources.Requests) > 0 {
		t.Fatalf("the revisions are %v", w.Revisions)
	}
	// A revision of the same name that the StatefulSet does not control is ignored.
	for _, o := range s.All {
		if r, is := o.(*appsv1.ControllerRevision); is {
			next := r.DeepCopy()
			next.OwnerReferences = []metav1.OwnerReference{{UID: "other"}}
			s.Put(next)
		}
	}
	if w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}); len(w.Revisions) != 0 {
		t.Error("revisions of another owner are read")
	}
}
