package replicatedstatefulset

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
)

// A member whose template differs from the present one in cpu and memory alone is changed in
// place, in three writes, each bound to the pod as it was read:
//
//  1. an annotation of the pod says to which revision it is brought, and since when. From
//     then on the pod is out of date, whatever its template says;
//  2. the resize subresource of the pod gets the resources;
//  3. when the kubelet says that the containers have them, the pod gets the name and the hash
//     of the revision, and the annotation goes.
//
// Each write is decided on what the pod is, so that another process goes on where one died.

// changesInPlace reports whether members may be changed in place.
func (w *world) changesInPlace() bool {
	strategy := w.set.Spec.UpdateStrategy
	return strategy != nil && strategy.InPlace == v1alpha1.InPlaceResources
}

// inPlaceNote is what annotation AnnotationInPlace says.
type inPlaceNote struct {
	// Revision is the one that the pod is brought to, and Since when that began.
	Revision string      `json:"revision"`
	Since    metav1.Time `json:"since"`
	// Earlier are those that it was being brought to before, the oldest first: it may have
	// resources of any of them.
	Earlier []string `json:"earlier,omitempty"`
}

// mostEarlier is how many revisions a note may have beside the present one. A member whose
// template changes more often while it is changed in place is recreated.
const mostEarlier = 4

// revisions are all that a note names.
func (n *inPlaceNote) revisions() []string {
	if n.Revision == "" {
		return nil
	}
	return append(slices.Clone(n.Earlier), n.Revision)
}

// isChangedInPlace reports whether somebody began to change a pod in place.
func isChangedInPlace(pod *corev1.Pod) bool {
	_, noted := pod.Annotations[v1alpha1.AnnotationInPlace]
	return noted
}

// noteOf reads the annotation; false if there is none, or it cannot be read.
func noteOf(pod *corev1.Pod) (note inPlaceNote, readable bool) {
	err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationInPlace]), &note)
	if err != nil || note.Revision == "" || len(note.Earlier) > mostEarlier {
		return inPlaceNote{}, false
	}
	return note, true
}

// sizing is how a member comes to the present template in place.
type sizing struct {
	*facts
	m *member
	// target is the name of the present revision, to its template, and from those that the
	// pod may have the resources of.
	target string
	to     *corev1.PodTemplateSpec
	from   []*corev1.PodTemplateSpec
	// note is what the annotation of the pod says; empty if there is none.
	note inPlaceNote
	// wanted is the pod with the resources of the present template.
	wanted *corev1.Pod
}

// sizingOf is false if the member cannot come to the present template in place.
func sizingOf(f *facts, m *member) (sizing, bool) {
	s := sizing{
		facts:  f,
		m:      m,
		target: f.stateful.Status.UpdateRevision,
	}
	s.to = f.revisions[s.target]
	was := f.revisions[m.pod.Labels[appsv1.ControllerRevisionHashLabelKey]]
	if s.to == nil || was == nil {
		return s, false
	}
	const hash = v1alpha1.AnnotationTemplate
	if s.to.Annotations[hash] != f.stateful.Spec.Template.Annotations[hash] || was.Annotations[hash] != m.pod.Annotations[hash] {
		return s, false
	}
	s.from = append(s.from, was)
	if isChangedInPlace(m.pod) && !s.readNote() {
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
	s.wanted = podresize.Resized(m.pod, s.changed())
	return s, true
}

// readNote adds the templates that the pod was being brought to when the present one came. It
// is false if the note cannot be read, or has no room for another one.
func (s *sizing) readNote() (readable bool) {
	s.note, readable = noteOf(s.m.pod)
	for _, name := range s.note.revisions() {
		s.from = append(s.from, s.revisions[name])
	}
	return readable && len(s.next().Earlier) <= mostEarlier
}

// next is the note that speaks of the present template.
func (s *sizing) next() inPlaceNote {
	earlier := slices.DeleteFunc(s.note.revisions(), func(name string) bool { return name == s.target })
	return inPlaceNote{
		Revision: s.target,
		Since:    metav1.NewTime(s.now),
		Earlier:  earlier,
	}
}

// differsInResourcesOnly reports whether the present template differs from another one in
// nothing but what can be changed in a pod that runs. A resize takes no request and no limit
// away.
func (s *sizing) differsInResourcesOnly(from *corev1.PodTemplateSpec) bool {
	if !apiequality.Semantic.DeepEqual(withoutResources(&from.Spec), withoutResources(&s.to.Spec)) {
		return false
	}
	pod := s.podPolicy()
	return podresize.KeepsResources(from.Spec.Containers, s.to.Spec.Containers) &&
		reachesPods(from.Labels, s.to.Labels, pod.Labels) &&
		reachesPods(from.Annotations, s.to.Annotations, pod.Annotations)
}

// podPolicy is what spec.pod says, with its template.
func (s *sizing) podPolicy() *v1alpha1.PodPolicy {
	whole, _, _ := withTemplate(s.set)
	return &whole.Spec.Pod
}

// withoutResources is a copy of a spec without the cpu and the memory of its containers.
func withoutResources(spec *corev1.PodSpec) *corev1.PodSpec {
	spec = spec.DeepCopy()
	for i := range spec.Containers {
		for _, name := range podresize.Resizable {
			delete(spec.Containers[i].Resources.Requests, name)
			delete(spec.Containers[i].Resources.Limits, name)
		}
	}
	return spec
}

// reachesPods reports whether labels or annotations of a template differ only in some of the
// object, which restart no pod and can be put on one that runs. One that is in spec.pod, or
// that is gone and may have been there, is what a pod is recreated for.
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
		if hasKey(ofPods, key) || strings.HasPrefix(key, v1alpha1.Prefix) {
			return false
		}
	}
	return true
}

// changed are the containers of the present template whose resources are other ones.
func (s *sizing) changed() (containers []corev1.Container) {
	for i := range s.to.Spec.Containers {
		if len(s.changedIn(i)) > 0 {
			containers = append(containers, s.to.Spec.Containers[i])
		}
	}
	return containers
}

// changedIn are the resources of a container of the template that change.
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

// restarts reports whether a container would have to be started again to notice what changes:
// its resizePolicy says so, or its environment has resources in it. Where the program ends
// anyway, its member is updated as for any other change.
func (s *sizing) restarts() bool {
	for i := range s.to.Spec.Containers {
		names := s.changedIn(i)
		if len(names) == 0 {
			continue
		}
		forces := func(p corev1.ContainerResizePolicy) bool {
			return p.RestartPolicy == corev1.RestartContainer && slices.Contains(names, p.ResourceName)
		}
		runs := podresize.Container(s.m.pod, s.to.Spec.Containers[i].Name)
		if runs == nil || slices.ContainsFunc(runs.ResizePolicy, forces) {
			return true
		}
	}
	return slices.ContainsFunc(s.to.Spec.Containers, readsResources)
}

// readsResources reports whether the environment of a container has resources in it.
func readsResources(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil
	})
}

// isSent reports whether the pod was told to have the resources.
func (s *sizing) isSent() bool { return apiequality.Semantic.DeepEqual(s.wanted.Spec, s.m.pod.Spec) }

// isNoted reports whether the note speaks of the present template. It begins anew where what
// it speaks of was never sent, and the time for it is over.
func (s *sizing) isNoted() bool {
	return s.note.Revision == s.target && (s.isSent() || !s.isOverdue())
}

// isOverdue reports whether the kubelet had resizeWithin to change the pod.
func (s *sizing) isOverdue() bool { return s.watch.Elapsed(s.note.Since.Time, s.now) >= resizeWithin }

// isActual reports whether the containers have the resources, by the kubelet's word.
func (s *sizing) isActual() bool {
	pod := s.m.pod
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

// whyNot says why the pod cannot have the resources after all; "" while it may.
func (s *sizing) whyNot() string {
	refused := s.m.resizeRefused
	switch {
	case refused.revision == s.target:
		return "the API server refused it: " + refused.text
	case s.note.Revision != s.target, !s.isSent():
		return ""
	case podresize.Infeasible(s.m.pod) && !podresize.Unseen(s.m.pod):
		return "its Node can never have room for it" + s.saidByKubelet()
	case s.isOverdue():
		return fmt.Sprintf("it was not done within %s", resizeWithin) + s.saidByKubelet()
	}
	return ""
}

// saidByKubelet is what the kubelet says of the resize, with a colon before it.
func (s *sizing) saidByKubelet() string {
	for _, c := range s.m.pod.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			return ": " + strings.TrimSuffix(cmp.Or(c.Reason, string(c.Type))+", "+excerpt.Message(c.Message), ", ")
		}
	}
	if !podstate.Ready(s.m.pod) {
		return ": it is not Ready"
	}
	return ""
}

// step is what is done next to bring a member to the present template in place.
type step struct {
	// instead is true if the member is not to be recreated now.
	instead bool
	// looksLive is true if only a live world says what is to be done.
	looksLive bool
	acts      action.Chain
	// text says what is done, or waited for at most until then.
	text  string
	until time.Time
	// failed says why the member is recreated whose resources were to be changed in place.
	failed string
}

// stepInPlace is empty if a member cannot come to the present template in place.
func stepInPlace(f *facts, m *member) step {
	if !f.changesInPlace() {
		return step{}
	}
	if !f.live { // the cache has neither templates nor resources
		return step{instead: true, looksLive: true}
	}
	s, can := sizingOf(f, m)
	if !can {
		return step{}
	}
	if why := s.whyNot(); why != "" {
		return step{failed: excerpt.Message(fmt.Sprintf(
			"%s is recreated, since its resources cannot be changed in place: %s",
			m.name(), why,
		))}
	}
	next := step{
		instead: true,
		text: fmt.Sprintf(
			"changing the resources of %s in place, one member after the other",
			m.name(),
		),
	}
	switch {
	case !s.isNoted():
		next.acts = s.begin()
	case !s.isSent():
		next.acts = action.Chain{{
			Verb:      action.Resize,
			Object:    s.wanted,
			From:      m.pod,
			Unchanged: true,
			Reason:    reasonResize,
			Detail:    "to " + s.target,
		}}
	default:
		next.until = f.watch.Deadline(s.note.Since.Time, resizeWithin)
		next.text += fmt.Sprintf(
			"; its kubelet has until %s, then the pod is recreated%s",
			next.until.UTC().Format("15:04:05"), s.saidByKubelet(),
		)
	}
	return next
}

// goOn does the next step.
func (p *plan) goOn(f *facts, next step) {
	p.looksLive = p.looksLive || next.looksLive
	p.notInPlace = next.failed
	if len(next.acts) > 0 {
		p.Do(next.acts)
	}
	if !next.until.IsZero() {
		p.LookAgain(next.until.Sub(f.now))
	}
	if next.text != "" {
		p.WaitFor(v1alpha1.ReasonUpdating, next.text)
	}
}

// begin notes on the pod to which revision it is brought.
func (s *sizing) begin() action.Chain {
	text, err := json.Marshal(s.next())
	if err != nil {
		panic(fmt.Sprintf("the note of %s: %v", s.m.name(), err)) // text and a time can be written
	}
	pod := s.m.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1alpha1.AnnotationInPlace, string(text))
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      s.m.pod,
		Unchanged: true,
		Reason:    reasonInPlace,
		Detail:    "to " + s.target,
	}}
}

// finishInPlace gives pods that have the resources of the present template its name and its
// hash, by which the StatefulSet's controller and this one count them.
func finishInPlace(f *facts, p *plan) {
	if !f.starts() || !f.templateIsSeen() || !f.changesInPlace() {
		return
	}
	for _, m := range f.among(isOnItsWayInPlace) {
		if !f.live {
			p.looksLive = p.looksLive || !podresize.Resizing(m.pod)
			continue
		}
		if s, can := sizingOf(f, m); can && s.isDone() {
			p.Do(s.finish())
		}
	}
}

// isOnItsWayInPlace reports whether the pod of a member is changed in place, and stays.
func isOnItsWayInPlace(m *member) bool {
	return isChangedInPlace(m.pod) && !m.terminating() && m.stranger == ""
}

// isDone reports whether the pod has all of the present template, and nobody took that back.
func (s *sizing) isDone() bool {
	if s.note.Revision != s.target || s.m.resizeRefused.revision == s.target {
		return false
	}
	return s.isSent() && s.isActual()
}

// finish makes a pod one of the present revision: all that can differ is on it.
func (s *sizing) finish() action.Chain {
	pod := s.m.pod.DeepCopy()
	for _, from := range s.from {
		pod.Labels = brought(pod.Labels, from.Labels, s.to.Labels)
		pod.Annotations = brought(pod.Annotations, from.Annotations, s.to.Annotations)
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.target
	pod.Annotations[v1alpha1.AnnotationTemplate] = s.to.Annotations[v1alpha1.AnnotationTemplate]
	delete(pod.Annotations, v1alpha1.AnnotationInPlace)
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      s.m.pod,
		Unchanged: true,
		Reason:    reasonResized,
		Detail:    "it is of revision " + s.target,
	}}
}

// brought has what differs between two templates as the second one says.
func brought(have, from, to map[string]string) map[string]string {
	have = merged(have)
	for key, value := range to {
		if old, had := from[key]; !had || old != value {
			have[key] = value
		}
	}
	return have
}
