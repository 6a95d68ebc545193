package statefulcluster

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podresize"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// progress describes the pending steps of an in-place update. It is stored in an annotation of the
// pod while the update runs.
type progress struct {
	// Containers are the containers whose image changed, with their state before the change.
	Containers map[string]before `json:"containers,omitempty"`
	// Resize is true if resources changed.
	Resize bool `json:"resize,omitempty"`
}

type before struct {
	Restarts int32  `json:"restarts"`
	ImageID  string `json:"imageID,omitempty"`
	Image    string `json:"image,omitempty"` // the image in the pod's spec
}

// inPlace returns the chain that updates a member without recreating its pod: expand the claims,
// patch the pod, resize it. It returns false if the pod must be recreated.
func inPlace(f *facts, m *member) (action.Chain, bool) {
	from, known := dataOf(f.named(m.revision()))
	to, _ := dataOf(f.target)
	if !known || !f.mayPatch(from, to) {
		return nil, false
	}
	var chain action.Chain
	if !f.refusedNow(reasonExpand) {
		chain = expandClaims(f.world, m, to)
	}
	pod := m.pod.DeepCopy()
	todo := changeImages(pod, from, to)
	todo.Resize = todo.Resize || changesResources(from, to)
	setMetadata(f.world, pod, from, to, f.target.Name, m.id)
	if len(todo.Containers) > 0 || todo.Resize || m.patching() {
		note, err := json.Marshal(todo)
		if err != nil {
			return nil, false
		}
		pod.Annotations[v1alpha1.AnnotationInPlace] = string(note)
	}
	noteRestarts(pod)
	chain = append(chain, action.Action{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonUpdated, Detail: "in place"})
	if todo.Resize {
		chain = append(chain, resize(pod, to))
	}
	return chain, true
}

// mayPatch reports whether a member can be updated from one revision to another without recreating
// its pod, and updateStrategy.inPlace allows it.
func (w *world) mayPatch(from, to revisionData) bool {
	if w.set.Spec.UpdateStrategy.InPlace == v1alpha1.InPlaceNever && needsPodChange(from, to) {
		return false
	}
	return onlyInPlaceFields(from, to)
}

// needsPodChange reports whether the pod itself changes, not only its claims.
func needsPodChange(from, to revisionData) bool {
	return from.ServiceName != to.ServiceName || !apiequality.Semantic.DeepEqual(from.Template, to.Template)
}

// onlyInPlaceFields reports whether two revisions differ only in fields that can be changed in a
// running pod: images and resources of its containers, labels and annotations. Its hostname and
// subdomain cannot be changed.
func onlyInPlaceFields(from, to revisionData) bool {
	return from.ServiceName == to.ServiceName && apiequality.Semantic.DeepEqual(withoutInPlaceFields(from.Template), withoutInPlaceFields(to.Template)) &&
		podresize.KeepsResources(from.Template.Spec.Containers, to.Template.Spec.Containers)
}

func withoutInPlaceFields(t corev1.PodTemplateSpec) corev1.PodSpec {
	s := *t.Spec.DeepCopy()
	for i := range s.Containers {
		s.Containers[i].Image = ""
		s.Containers[i].Resources = corev1.ResourceRequirements{}
	}
	return s
}

// changeImages sets the images of the pod and records the previous state of its containers. Pending
// changes of an earlier update stay pending. It compares with the pod instead of its revision,
// because a pass that was interrupted may have patched the pod already.
func changeImages(pod *corev1.Pod, from, to revisionData) progress {
	todo, _ := progressOf(pod) // without the annotation nothing is pending
	for i := range to.Template.Spec.Containers {
		name, image := to.Template.Spec.Containers[i].Name, to.Template.Spec.Containers[i].Image
		for j := range pod.Spec.Containers {
			c := &pod.Spec.Containers[j]
			if c.Name != name || c.Image == image || from.Template.Spec.Containers[i].Image == image {
				continue
			}
			todo.swap(pod, name, c.Image, image)
			c.Image = image
		}
	}
	return todo
}

// swap records that a container gets another image.
func (t *progress) swap(pod *corev1.Pod, container, from, to string) {
	was, runs := statusBefore(pod, container)
	was.Image = from
	if p, pending := t.Containers[container]; pending && p.Restarts == was.Restarts && p.ImageID == was.ImageID {
		was = p // the kubelet has not yet acted on the previous patch
	}
	if was.Image == to && runs { // the running image is wanted again, so no restart follows
		delete(t.Containers, container)
		return
	}
	if t.Containers == nil {
		t.Containers = map[string]before{}
	}
	t.Containers[container] = was
}

func statusBefore(pod *corev1.Pod, name string) (was before, runs bool) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == name {
			return before{Restarts: s.RestartCount, ImageID: s.ImageID}, s.State.Running != nil
		}
	}
	return before{}, false
}

func changesResources(from, to revisionData) bool {
	for i := range to.Template.Spec.Containers {
		if !apiequality.Semantic.DeepEqual(from.Template.Spec.Containers[i].Resources, to.Template.Spec.Containers[i].Resources) {
			return true
		}
	}
	return false
}

// resize returns the action that sets the resources of the pod's containers through the resize
// subresource (KEP-1287).
func resize(pod *corev1.Pod, to revisionData) action.Action {
	sized := podresize.Resized(pod, to.Template.Spec.Containers)
	return action.Action{Verb: action.Resize, Object: sized, From: pod, Reason: reasonResize, Detail: "in place"}
}

// setMetadata replaces the labels and annotations of one template with those of another. Labels and
// annotations set by others are kept.
func setMetadata(w *world, pod *corev1.Pod, from, to revisionData, revision, id string) {
	replace := func(have, old, now map[string]string) map[string]string {
		out := maps.Clone(have)
		if out == nil {
			out = map[string]string{}
		}
		for k := range old {
			delete(out, k)
		}
		maps.Copy(out, now)
		return out
	}
	pod.Labels = replace(pod.Labels, templateLabels(w.settings, from), templateLabels(w.settings, to))
	maps.Copy(pod.Labels, memberLabels(w.settings, id))
	pod.Labels[labelRevision] = revision
	pod.Annotations = replace(pod.Annotations, from.Template.Annotations, to.Template.Annotations)
}

func expandClaims(w *world, m *member, to revisionData) action.Chain {
	var chain action.Chain
	for i := range to.VolumeClaimTemplates {
		t := &to.VolumeClaimTemplates[i]
		if c := m.claims[claim.Name(w.set.Name, t.Name, m.id)]; c != nil {
			if adjusted, changes := claim.Adjust(c, t); changes != "" {
				chain = append(chain, action.Action{Verb: action.Patch, Object: adjusted, From: c, Reason: reasonExpand})
			}
		}
	}
	return chain
}

// growClaims expands claims that an update could not expand because the API server refused it. Only
// a live read has the sizes.
func growClaims(f *facts, p *plan) {
	if !f.live {
		_, refusedBefore := f.refused[reasonExpand]
		p.tryLater(f, reasonExpand)
		p.look = p.look || (refusedBefore && !f.refusedNow(reasonExpand))
		return
	}
	var chains []action.Chain
	to, _ := dataOf(f.target)
	for _, m := range f.alive {
		if m.revision() != f.target.Name {
			continue
		}
		if chain := expandClaims(f.world, m, to); len(chain) > 0 {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return
	}
	if f.refusedNow(reasonExpand) {
		p.tryLater(f, reasonExpand)
		return
	}
	p.Then(chains...)
}

// finishInPlace completes in-place updates that are done, sends the resize that an interrupted pass
// did not send, and recreates pods that cannot be resized.
func finishInPlace(f *facts, p *plan) {
	var chains []action.Chain
	var again, next []*member
	if f.rolling() {
		next = f.outdated() // these will be patched again
	}
	for _, m := range f.alive {
		if !m.patching() || slices.Contains(next, m) {
			continue
		}
		acts, fails := f.finishing(m)
		if fails {
			again = append(again, m)
		}
		if len(acts) > 0 {
			chains = append(chains, acts)
		}
	}
	p.Then(chains...)
	if len(again) > 0 {
		p.tryLater(f, reasonResize)
	}
	if len(chains) == 0 {
		renew(f, p, again, "")
	}
}

// finishing returns the next action of a member's in-place update; nil while the kubelet is working
// on it. fails is true if the pod can never be resized as required.
func (f *facts) finishing(m *member) (acts action.Chain, fails bool) {
	to, known := dataOf(f.named(m.revision()))
	if !known {
		return nil, false
	}
	todo, readable := progressOf(m.pod)
	unsent := f.resizeUnsent(m, todo, to)
	switch {
	case podresize.Infeasible(m.pod), unsent && f.refusedNow(reasonResize):
		return nil, true
	case unsent:
		return action.Chain{resize(m.pod, to)}, false
	case !readable, todo.done(m.pod):
		return action.Chain{finished(m.pod)}, false
	}
	return nil, false
}

// progressOf decodes the in-place update annotation of a pod. It returns false if the annotation
// cannot be decoded.
func progressOf(pod *corev1.Pod) (todo progress, readable bool) {
	err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationInPlace]), &todo)
	return todo, err == nil
}

// resizeUnsent reports whether the resize that an update needs was not sent. The cache does not
// hold resources, so only a live read shows whether they are set.
func (w *world) resizeUnsent(m *member, todo progress, to revisionData) bool {
	if !todo.Resize || podresize.Resizing(m.pod) {
		return false
	}
	if w.live {
		return !sized(m.pod, to)
	}
	return !todo.done(m.pod)
}

// finished returns the action that removes the in-place update annotation from a pod.
func finished(pod *corev1.Pod) action.Action {
	done := pod.DeepCopy()
	delete(done.Annotations, v1alpha1.AnnotationInPlace)
	noteRestarts(done)
	return action.Action{Verb: action.Patch, Object: done, From: pod, Reason: reasonUpdated, Detail: "complete"}
}

func sized(pod *corev1.Pod, to revisionData) bool {
	return apiequality.Semantic.DeepEqual(resize(pod, to).Object.(*corev1.Pod).Spec, pod.Spec)
}

// done reports whether the kubelet has completed the update: it has seen the patch, each changed
// container was restarted after the patch and is running, no resize is in progress, and the pod is
// Ready. Ready alone is not enough, because it stays True during the image change. A container
// whose image an admission policy changed back keeps running, so no restart follows.
func (t progress) done(pod *corev1.Pod) bool {
	if podresize.Unseen(pod) {
		return false
	}
	if !podstate.Ready(pod) || podresize.Resizing(pod) {
		return false
	}
	for name, was := range t.Containers {
		i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
		if i < 0 || pod.Status.ContainerStatuses[i].State.Running == nil {
			return false
		}
		if !was.swapped(pod.Status.ContainerStatuses[i]) && !was.keptImage(pod, name) {
			return false
		}
	}
	return true
}

// swapped reports whether a running container was started after the patch.
func (b before) swapped(s corev1.ContainerStatus) bool {
	return s.RestartCount > b.Restarts || s.ImageID != b.ImageID
}

// keptImage reports whether the container has the image that it had before the update, because an
// admission policy reverted it or because an earlier template is wanted again.
func (b before) keptImage(pod *corev1.Pod, container string) bool {
	c := podresize.Container(pod, container)
	return c != nil && b.Image != "" && c.Image == b.Image
}
