package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podresize"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// A member whose template differs from the current one only in cpu and memory is resized in place,
// in three writes. Each write is bound to the version of the pod that was read:
//
//  1. An annotation of the pod records the target revision and the start time. From then on the pod
//     counts as outdated.
//  2. The resize subresource of the pod gets the resources.
//  3. When the kubelet reports that the containers have them, the pod gets the name and the hash of
//     the revision, and the annotation is removed.
//
// Each write is decided from the current pod, so that another process can continue after a crash.

// sizing is the change of a member to the current template in place.
type sizing struct {
	*facts.Facts
	m *facts.Member
	// target is the name of the current revision, to its template, and from the templates whose
	// resources the pod may have.
	target string
	to     *corev1.PodTemplateSpec
	from   []*corev1.PodTemplateSpec
	// note is the annotation of the pod. It is empty if there is none.
	note facts.InPlaceNote
	// wanted is the pod with the resources of the current template.
	wanted *corev1.Pod
}

// sizingOf returns the change in place of a member. It returns false if the member cannot be
// changed in place.
func sizingOf(f *facts.Facts, m *facts.Member) (sizing, bool) {
	s := sizing{
		Facts:  f,
		m:      m,
		target: f.Stateful.Status.UpdateRevision,
	}
	s.to = f.Revisions[s.target]
	was := f.Revisions[m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey]]
	if s.to == nil || was == nil {
		return s, false
	}
	const hash = v1alpha1.AnnotationTemplate
	if s.to.Annotations[hash] != f.Stateful.Spec.Template.Annotations[hash] || was.Annotations[hash] != m.Pod.Annotations[hash] {
		return s, false
	}
	s.from = append(s.from, was)
	if facts.IsChangedInPlace(m.Pod) && !s.readNote() {
		return s, false
	}
	for _, from := range s.from {
		if from == nil || !s.differsInResourcesOnly(from) {
			return s, false
		}
	}
	if s.restarts() {
		return s, false
	}
	s.wanted = podresize.Resized(m.Pod, s.changed())
	return s, true
}

// readNote adds the templates of earlier changes in place that were not finished. It returns false
// if the note is invalid, or has no room for another revision.
func (s *sizing) readNote() (readable bool) {
	s.note, readable = facts.InPlaceNoteOf(s.m.Pod)
	for _, name := range s.note.Revisions() {
		s.from = append(s.from, s.Revisions[name])
	}
	return readable && len(s.next().Earlier) <= facts.MaxEarlier
}

// next returns the note for the current template.
func (s *sizing) next() facts.InPlaceNote {
	earlier := slices.DeleteFunc(s.note.Revisions(), func(name string) bool { return name == s.target })
	return facts.InPlaceNote{
		Revision: s.target,
		Since:    metav1.NewTime(s.Now),
		Earlier:  earlier,
	}
}

// differsInResourcesOnly reports whether the current template differs from another one only in what
// a running pod can change. A resize cannot remove a request or a limit.
func (s *sizing) differsInResourcesOnly(from *corev1.PodTemplateSpec) bool {
	if !apiequality.Semantic.DeepEqual(podresize.Without(&from.Spec), podresize.Without(&s.to.Spec)) {
		return false
	}
	pod := s.podPolicy()
	return podresize.KeepsResources(from.Spec.Containers, s.to.Spec.Containers) &&
		reachesPods(from.Labels, s.to.Labels, pod.Labels) &&
		reachesPods(from.Annotations, s.to.Annotations, pod.Annotations)
}

// podPolicy returns spec.pod merged with its template.
func (s *sizing) podPolicy() *v1alpha1.PodPolicy {
	whole, _, _ := spec.WithTemplate(s.Set)
	return &whole.Spec.Pod
}

// reachesPods reports whether labels or annotations of two templates differ only in those of the
// object, which do not restart a pod and can be set on a running one. A pod is recreated for a
// changed key of spec.pod, and for a removed key, which may have been in spec.pod.
func reachesPods(from, to, ofPods map[string]string) bool {
	for key := range from {
		if _, stays := to[key]; !stays {
			return false
		}
	}
	for key, value := range to {
		old, had := from[key]
		if key == v1alpha1.AnnotationTemplate || (had && old == value) {
			continue
		}
		if spec.HasKey(ofPods, key) || strings.HasPrefix(key, v1alpha1.Prefix) {
			return false
		}
	}
	return true
}

// changed returns the containers of the current template whose resources change.
func (s *sizing) changed() (containers []corev1.Container) {
	for i := range s.to.Spec.Containers {
		if len(s.changedIn(i)) > 0 {
			containers = append(containers, s.to.Spec.Containers[i])
		}
	}
	return containers
}

// changedIn returns the resources of a container of the template that change.
func (s *sizing) changedIn(container int) (names []corev1.ResourceName) {
	now := &s.to.Spec.Containers[container].Resources
	for _, name := range podresize.Resizable {
		differs := func(from *corev1.PodTemplateSpec) bool {
			was := &from.Spec.Containers[container].Resources
			return !podresize.Same(was.Requests, now.Requests, name) || !podresize.Same(was.Limits, now.Limits, name)
		}
		if slices.ContainsFunc(s.from, differs) {
			names = append(names, name)
		}
	}
	return names
}

// restarts reports whether a container would have to restart for the change: its resizePolicy
// requires it, or its environment contains resources. Since the program would end anyway, such a
// member is updated as for any other change.
func (s *sizing) restarts() bool {
	for i := range s.to.Spec.Containers {
		names := s.changedIn(i)
		if len(names) == 0 {
			continue
		}
		forces := func(p corev1.ContainerResizePolicy) bool {
			return p.RestartPolicy == corev1.RestartContainer && slices.Contains(names, p.ResourceName)
		}
		runs := podresize.Container(s.m.Pod, s.to.Spec.Containers[i].Name)
		if runs == nil || slices.ContainsFunc(runs.ResizePolicy, forces) {
			return true
		}
	}
	return slices.ContainsFunc(s.to.Spec.Containers, readsResources)
}

// readsResources reports whether the environment of a container contains resources.
func readsResources(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil
	})
}

// isSent reports whether the pod spec has the wanted resources.
func (s *sizing) isSent() bool { return apiequality.Semantic.DeepEqual(s.wanted.Spec, s.m.Pod.Spec) }

// isNoted reports whether the note is for the current template. A note whose resize was never sent
// is written again when its time is over.
func (s *sizing) isNoted() bool {
	return s.note.Revision == s.target && (s.isSent() || !s.isOverdue())
}

// isOverdue reports whether ResizeWithin has expired.
func (s *sizing) isOverdue() bool {
	return s.Watch.Elapsed(s.note.Since.Time, s.Now) >= spec.ResizeWithin
}

// isActual reports whether the kubelet reports that the containers have the resources.
func (s *sizing) isActual() bool {
	pod := s.m.Pod
	if podresize.Unseen(pod) || podresize.Resizing(pod) || !podstate.Ready(pod) {
		return false
	}
	for _, c := range s.changed() {
		if !podresize.Actual(pod, c.Name) {
			return false
		}
	}
	return true
}

// whyNot states why the change in place failed. It is "" while it may succeed.
func (s *sizing) whyNot() string {
	refused := s.m.ResizeRefused
	switch {
	case refused.Revision == s.target:
		return "the API server refused the resize: " + refused.Text
	case s.note.Revision != s.target, !s.isSent():
		return ""
	case podresize.Infeasible(s.m.Pod) && !podresize.Unseen(s.m.Pod):
		return "its Node can never provide them" + s.kubeletMessage()
	case s.isOverdue():
		return fmt.Sprintf("the resize did not finish within %s", spec.ResizeWithin) + s.kubeletMessage()
	}
	return ""
}

// kubeletMessage returns the kubelet's message about the resize, prefixed by a colon.
func (s *sizing) kubeletMessage() string {
	for _, c := range s.m.Pod.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			return ": " + strings.TrimSuffix(cmp.Or(c.Reason, string(c.Type))+", "+excerpt.Message(c.Message), ", ")
		}
	}
	if !podstate.Ready(s.m.Pod) {
		return ": its pod is not Ready"
	}
	return ""
}

// step is the next step of a change in place.
type step struct {
	// instead is true if the member must not be recreated now.
	instead bool
	// looksLive is true if the decision needs a live read of the cluster.
	looksLive bool
	acts      action.Chain
	// text describes the step or the wait. until is the end of the wait.
	text  string
	until time.Time
	// failed states why the member is recreated instead of being resized in place.
	failed string
}

// stepInPlace returns the next step. It is empty if the member cannot be changed in place.
func stepInPlace(f *facts.Facts, m *facts.Member) step {
	if !f.ChangesInPlace() {
		return step{}
	}
	if !f.Live { // the cache has neither templates nor resources
		return step{instead: true, looksLive: true}
	}
	s, can := sizingOf(f, m)
	if !can {
		return step{}
	}
	if why := s.whyNot(); why != "" {
		return step{failed: excerpt.Message(fmt.Sprintf(
			"recreating %s, because its resources cannot be changed in place: %s",
			m.Name(), why,
		))}
	}
	next := step{
		instead: true,
		text: fmt.Sprintf(
			"changing the resources of %s in place, one member at a time",
			m.Name(),
		),
	}
	switch {
	case !s.isNoted():
		next.acts = s.noteAction()
	case !s.isSent():
		next.acts = action.Chain{{
			Verb:      action.Resize,
			Object:    s.wanted,
			From:      m.Pod,
			Unchanged: true,
			Reason:    facts.ReasonResize,
			Detail:    "to " + s.target,
		}}
	default:
		next.until = f.Watch.Deadline(s.note.Since.Time, spec.ResizeWithin)
		next.text += fmt.Sprintf(
			"; if the kubelet has not finished by %s, the pod is recreated%s",
			next.until.UTC().Format("15:04:05"), s.kubeletMessage(),
		)
	}
	return next
}

// addStep adds the actions of a step to the plan.
func (p *Plan) addStep(f *facts.Facts, next step) {
	p.LooksLive = p.LooksLive || next.looksLive
	p.NotInPlace = next.failed
	if len(next.acts) > 0 {
		p.Do(next.acts)
	}
	if !next.until.IsZero() {
		p.LookAgain(next.until.Sub(f.Now))
	}
	if next.text != "" {
		p.WaitFor(v1alpha1.ReasonUpdating, next.text)
	}
}

// noteAction writes the note with the target revision to the pod.
func (s *sizing) noteAction() action.Chain {
	text, err := json.Marshal(s.next())
	if err != nil {
		panic(fmt.Sprintf("marshal the in-place annotation of %s: %v", s.m.Name(), err)) // text and a time can always be marshaled
	}
	pod := s.m.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1alpha1.AnnotationInPlace, string(text))
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      s.m.Pod,
		Unchanged: true,
		Reason:    facts.ReasonInPlace,
		Detail:    "to " + s.target,
	}}
}

// finishInPlace sets the name and the hash of the current revision on pods that have its resources.
// The StatefulSet controller and this one count updated pods by them.
func finishInPlace(f *facts.Facts, p *Plan) {
	if !f.MayStartMembers() || !f.TemplateIsSeen() || !f.ChangesInPlace() {
		return
	}
	for _, m := range f.Among(isOnItsWayInPlace) {
		if !f.Live {
			p.LooksLive = p.LooksLive || !podresize.Resizing(m.Pod)
			continue
		}
		if s, can := sizingOf(f, m); can && s.isDone() {
			p.Do(s.finishAction())
		}
	}
}

// isOnItsWayInPlace reports whether the pod of a member is being changed in place and stays.
func isOnItsWayInPlace(m *facts.Member) bool {
	return facts.IsChangedInPlace(m.Pod) && !m.Terminating() && m.WhyForeign == ""
}

// isDone reports whether the pod has everything of the current template, and no policy reverted it.
func (s *sizing) isDone() bool {
	if s.note.Revision != s.target || s.m.ResizeRefused.Revision == s.target {
		return false
	}
	return s.isSent() && s.isActual()
}

// finishAction marks a pod as one of the current revision. It also sets the labels and annotations
// that differ.
func (s *sizing) finishAction() action.Chain {
	pod := s.m.Pod.DeepCopy()
	for _, from := range s.from {
		pod.Labels = withChanges(pod.Labels, from.Labels, s.to.Labels)
		pod.Annotations = withChanges(pod.Annotations, from.Annotations, s.to.Annotations)
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.target
	pod.Annotations[v1alpha1.AnnotationTemplate] = s.to.Annotations[v1alpha1.AnnotationTemplate]
	delete(pod.Annotations, v1alpha1.AnnotationInPlace)
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      s.m.Pod,
		Unchanged: true,
		Reason:    facts.ReasonResized,
		Detail:    "it has revision " + s.target,
	}}
}

// withChanges returns have with the values of to that differ from those of from.
func withChanges(have, from, to map[string]string) map[string]string {
	have = spec.Merged(have)
	for key, value := range to {
		if old, had := from[key]; !had || old != value {
			have[key] = value
		}
	}
	return have
}
