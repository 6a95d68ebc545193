package statefulcluster

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// progress is what an in-place update waits for. It stands in an annotation of
// the pod while the update runs.
type progress struct {
	// Containers whose image changed, as they were before.
	Containers map[string]before `json:"containers,omitempty"`
	// Resize is true when resources changed.
	Resize bool `json:"resize,omitempty"`
}

type before struct {
	Restarts int32  `json:"restarts"`
	ImageID  string `json:"imageID,omitempty"`
	Image    string `json:"image,omitempty"` // as the template said it
}

// inPlace builds the chain that updates a member without recreating its pod:
// expand the claims, patch the pod, resize it. It is false when only a new pod
// will do.
func inPlace(w *world, m *member) (action.Chain, bool) {
	want := w.target()
	from, ok := dataOf(w.named(revisionOf(m.pod)))
	to, _ := dataOf(want)
	if !ok || w.set.Spec.UpdateStrategy.InPlace == v1alpha1.InPlaceNever && needsPodChange(from, to) || !onlyInPlaceFields(from, to) {
		return nil, false
	}
	var chain action.Chain
	if !w.refusedQuietly(reasonExpand) {
		chain = expandClaims(w, m, to)
	}
	pod := m.pod.DeepCopy()
	todo := changeImages(pod, from, to)
	pending := pod.Annotations[v1alpha1.AnnotationInPlace] != ""
	todo.Resize = todo.Resize || changesResources(from, to)
	setMetadata(w, pod, from, to, want.Name, m.id)
	if len(todo.Containers) > 0 || todo.Resize || pending {
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

// needsPodChange tells whether the pod itself changes, not only its claims.
func needsPodChange(from, to revisionData) bool {
	return from.ServiceName != to.ServiceName || !apiequality.Semantic.DeepEqual(from.Template, to.Template)
}

// onlyInPlaceFields tells whether two revisions differ in nothing but what a
// running pod can take: images and resources of its containers, labels and
// annotations. Its hostname and subdomain are for life.
func onlyInPlaceFields(from, to revisionData) bool {
	return from.ServiceName == to.ServiceName && apiequality.Semantic.DeepEqual(withoutInPlaceFields(from.Template), withoutInPlaceFields(to.Template)) &&
		keepsResources(from, to)
}

// keepsResources tells whether no request and no limit goes: a resize can
// change them, but not take them away.
func keepsResources(from, to revisionData) bool {
	for i, c := range from.Template.Spec.Containers {
		now := to.Template.Spec.Containers[i].Resources
		for k := range c.Resources.Requests {
			if _, stays := now.Requests[k]; !stays {
				return false
			}
		}
		for k := range c.Resources.Limits {
			if _, stays := now.Limits[k]; !stays {
				return false
			}
		}
	}
	return true
}

func withoutInPlaceFields(t corev1.PodTemplateSpec) corev1.PodSpec {
	spec := *t.Spec.DeepCopy()
	for i := range spec.Containers {
		spec.Containers[i].Image = ""
		spec.Containers[i].Resources = corev1.ResourceRequirements{}
	}
	return spec
}

// changeImages sets the images of the pod and notes what its containers were;
// what an earlier update still waits for is waited for on. It compares with
// the pod, not with its revision: a pod that was patched by a pass that died
// has its images already.
func changeImages(pod *corev1.Pod, from, to revisionData) progress {
	todo := progress{}
	_ = json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationInPlace]), &todo) // no note, nothing pending
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

// swap notes that a container gets another image.
func (t *progress) swap(pod *corev1.Pod, container, from, to string) {
	was, runs := statusBefore(pod, container)
	was.Image = from
	if p, pending := t.Containers[container]; pending && p.Restarts == was.Restarts && p.ImageID == was.ImageID {
		was = p // the kubelet has not acted on the patch before this one
	}
	if was.Image == to && runs { // the image that runs is wanted again: no restart will come
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

// resize sets the resources of the pod's containers through its subresource
// (KEP-1287).
func resize(pod *corev1.Pod, to revisionData) action.Action {
	sized := pod.DeepCopy()
	for i := range to.Template.Spec.Containers {
		for j := range sized.Spec.Containers {
			if sized.Spec.Containers[j].Name == to.Template.Spec.Containers[i].Name {
				setResources(&sized.Spec.Containers[j].Resources, to.Template.Spec.Containers[i].Resources)
			}
		}
	}
	return action.Action{Verb: action.Resize, Object: sized, From: pod, Reason: reasonResize, Detail: "in place"}
}

// setResources sets what the template says, and what the API server makes of
// it: a limit without a request is the request too. Other values in the pod are
// somebody else's defaults and stay.
func setResources(have *corev1.ResourceRequirements, want corev1.ResourceRequirements) {
	set := func(in *corev1.ResourceList, k corev1.ResourceName, v resource.Quantity) {
		if *in == nil {
			*in = corev1.ResourceList{}
		}
		if now, there := (*in)[k]; !there || now.Cmp(v) != 0 {
			(*in)[k] = v
		}
	}
	for k, v := range want.Limits {
		set(&have.Limits, k, v)
		if _, said := want.Requests[k]; !said {
			set(&have.Requests, k, v)
		}
	}
	for k, v := range want.Requests {
		set(&have.Requests, k, v)
	}
}

// setMetadata brings labels and annotations from one template to another;
// those that others set stay.
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
	pod.Labels = replace(pod.Labels, templateLabels(w, from), templateLabels(w, to))
	maps.Copy(pod.Labels, memberLabels(w, id))
	pod.Labels[labelRevision] = revision
	pod.Annotations = replace(pod.Annotations, from.Template.Annotations, to.Template.Annotations)
}

func expandClaims(w *world, m *member, to revisionData) action.Chain {
	var chain action.Chain
	for i := range to.VolumeClaimTemplates {
		t := &to.VolumeClaimTemplates[i]
		if c := m.claims[claim.Name(w.set.Name, t.Name, m.id)]; c != nil {
			if grown, grows := claim.Grow(c, t); grows {
				chain = append(chain, action.Action{Verb: action.Patch, Object: grown, From: c, Reason: reasonExpand})
			}
		}
	}
	return chain
}

// growClaims expands what an update could not, because the API server refused
// it then. Only a live world has the sizes.
func growClaims(w *world, r *roster, p *plan) {
	if _, refused := w.refused[reasonExpand]; !w.live {
		p.look = p.look || refused && !w.refusedNow(reasonExpand, p)
		return
	}
	var chains []action.Chain
	to, _ := dataOf(w.target())
	for _, m := range r.alive {
		if chain := expandClaims(w, m, to); len(chain) > 0 && revisionOf(m.pod) == r.target {
			chains = append(chains, chain)
		}
	}
	if len(chains) > 0 && !w.refusedNow(reasonExpand, p) {
		p.Then(chains...)
	}
}

func expands(chain action.Chain) bool {
	return slices.ContainsFunc(chain, func(a action.Action) bool { return a.Reason == reasonExpand })
}

// finishInPlace ends in-place updates that are done, sends a resize again that
// a pass that died did not send, and recreates pods whose resize cannot be.
func finishInPlace(w *world, r *roster, p *plan) {
	var chains []action.Chain
	var again, next []*member
	if w.rolling() {
		next = outdated(w, r) // these are patched again
	}
	for _, m := range r.alive {
		note := m.pod.Annotations[v1alpha1.AnnotationInPlace]
		to, known := dataOf(w.named(revisionOf(m.pod)))
		if note == "" || !known || slices.Contains(next, m) {
			continue
		}
		var todo progress
		unreadable := json.Unmarshal([]byte(note), &todo) != nil
		// The cache does not hold resources; a live look tells whether they are there.
		unsent := todo.Resize && !resizing(m.pod) && (w.live && !sized(m.pod, to) || !w.live && !todo.done(m.pod))
		switch {
		case resizeInfeasible(m.pod) || unsent && w.refusedNow(reasonResize, p):
			again = append(again, m)
		case unsent:
			chains = append(chains, action.Chain{resize(m.pod, to)})
		case unreadable || todo.done(m.pod):
			done := m.pod.DeepCopy()
			delete(done.Annotations, v1alpha1.AnnotationInPlace)
			noteRestarts(done)
			chains = append(chains, action.Chain{{Verb: action.Patch, Object: done, From: m.pod, Reason: reasonUpdated, Detail: "complete"}})
		}
	}
	p.Then(chains...)
	if len(chains) == 0 {
		recreate(w, p, again, "")
	}
}

func sized(pod *corev1.Pod, to revisionData) bool {
	return apiequality.Semantic.DeepEqual(resize(pod, to).Object.(*corev1.Pod).Spec, pod.Spec)
}

func resizing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
}

func resizeInfeasible(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}

// done tells whether the kubelet has carried out the update: it has seen the
// patch, each changed container runs again and not from before, no resize is
// under way, and the pod is Ready. Ready alone stays True over the swap.
func (t progress) done(pod *corev1.Pod) bool {
	if seen := pod.Status.ObservedGeneration; seen > 0 && seen < pod.Generation || !podstate.Ready(pod) {
		return false
	}
	if resizing(pod) {
		return false
	}
	for name, was := range t.Containers {
		i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
		if i < 0 {
			return false
		}
		s := pod.Status.ContainerStatuses[i]
		if s.State.Running == nil || s.RestartCount <= was.Restarts && s.ImageID == was.ImageID {
			return false
		}
	}
	return true
}
