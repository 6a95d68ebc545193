package rules

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podresize"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// inPlace returns the chain that updates a member without recreating its pod: expand the claims,
// patch the pod, resize it. It returns false if the pod must be recreated.
func inPlace(f *facts.Facts, m *facts.Member) (action.Chain, bool) {
	from, known := children.DataOf(f.Named(m.Revision()))
	to, _ := children.DataOf(f.Target)
	if !known || !mayPatch(f.World, from, to) {
		return nil, false
	}
	var chain action.Chain
	if !f.RefusedNow(facts.ReasonExpand) {
		chain = expandClaims(f.World, m, to)
	}
	pod := m.Pod.DeepCopy()
	todo := ChangeImages(pod, from, to)
	todo.Resize = todo.Resize || children.ChangesResources(from, to)
	setMetadata(f.World, pod, from, to, f.Target.Name, m.ID)
	if len(todo.Containers) > 0 || todo.Resize || m.Patching() {
		note, err := json.Marshal(todo)
		if err != nil {
			return nil, false
		}
		pod.Annotations[v1alpha1.AnnotationInPlace] = string(note)
	}
	noteRestarts(pod)
	chain = append(chain, action.Action{Verb: action.Patch, Object: pod, From: m.Pod, Reason: facts.ReasonUpdated, Detail: "in place"})
	if todo.Resize {
		chain = append(chain, resize(pod, to))
	}
	return chain, true
}

// noteRestarts records the current number of restarts on the pod, so that Member.Restarts counts from
// there.
func noteRestarts(pod *corev1.Pod) {
	if n := facts.TotalRestarts(pod); n > 0 || pod.Annotations[v1alpha1.AnnotationRestarts] != "" {
		pod.Annotations[v1alpha1.AnnotationRestarts] = strconv.Itoa(int(n))
	}
}

// mayPatch reports whether a member can be updated from one revision to another without recreating
// its pod, and updateStrategy.inPlace allows it.
func mayPatch(w *facts.World, from, to children.RevisionData) bool {
	if w.Set.Spec.UpdateStrategy.InPlace == v1alpha1.InPlaceNever && children.NeedsPodChange(from, to) {
		return false
	}
	return children.OnlyInPlaceFields(from, to)
}

// ChangeImages sets the images of the pod, and returns the progress to record: the state of the changed
// containers before that. Changes of an earlier update that are pending stay in it. It compares with
// the images of the pod instead of its revision, because a pass that was interrupted may have patched
// the pod already.
func ChangeImages(pod *corev1.Pod, from, to children.RevisionData) progress {
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

// resize returns the action that sets the resources of the pod's containers through the resize
// subresource (KEP-1287).
func resize(pod *corev1.Pod, to children.RevisionData) action.Action {
	sized := podresize.Resized(pod, to.Template.Spec.Containers)
	return action.Action{Verb: action.Resize, Object: sized, From: pod, Reason: facts.ReasonResize, Detail: "in place"}
}

// setMetadata replaces the labels and annotations of one template with those of another. Labels and
// annotations set by others are kept.
func setMetadata(w *facts.World, pod *corev1.Pod, from, to children.RevisionData, revision, id string) {
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
	pod.Labels = replace(pod.Labels, children.TemplateLabels(w.Settings, from), children.TemplateLabels(w.Settings, to))
	maps.Copy(pod.Labels, children.MemberLabels(w.Settings, id))
	pod.Labels[spec.LabelRevision] = revision
	pod.Annotations = replace(pod.Annotations, from.Template.Annotations, to.Template.Annotations)
}

// expandClaims returns the patches that adjust the claims of a member to the claim templates of a
// revision; nil if none is needed.
func expandClaims(w *facts.World, m *facts.Member, to children.RevisionData) action.Chain {
	var chain action.Chain
	for i := range to.VolumeClaimTemplates {
		t := &to.VolumeClaimTemplates[i]
		if c := m.Claims[claim.Name(w.Set.Name, t.Name, m.ID)]; c != nil {
			if adjusted, changes := claim.Adjust(c, t); changes != "" {
				chain = append(chain, action.Action{Verb: action.Patch, Object: adjusted, From: c, Reason: facts.ReasonExpand})
			}
		}
	}
	return chain
}

// growClaims expands claims that an update could not expand because the API server refused it. Only
// a live read has the sizes.
func growClaims(f *facts.Facts, p *Plan) {
	if !f.Live {
		_, refusedBefore := f.Refused[facts.ReasonExpand]
		p.tryLater(f, facts.ReasonExpand)
		p.Look = p.Look || (refusedBefore && !f.RefusedNow(facts.ReasonExpand))
		return
	}
	var chains []action.Chain
	to, _ := children.DataOf(f.Target)
	for _, m := range f.Alive {
		if m.Revision() != f.Target.Name {
			continue
		}
		if chain := expandClaims(f.World, m, to); len(chain) > 0 {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return
	}
	if f.RefusedNow(facts.ReasonExpand) {
		p.tryLater(f, facts.ReasonExpand)
		return
	}
	p.Then(chains...)
}

// finishInPlace completes in-place updates that are done, sends the resize that an interrupted pass
// did not send, and recreates pods that cannot be resized.
func finishInPlace(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	var fail, next []*facts.Member
	if f.Rolling() {
		next = f.Outdated() // rule rollOut will patch these again
	}
	for _, m := range f.Alive {
		if !m.Patching() || slices.Contains(next, m) {
			continue
		}
		acts, fails := finishing(f, m)
		if fails {
			fail = append(fail, m)
		}
		if len(acts) > 0 {
			chains = append(chains, acts)
		}
	}
	p.Then(chains...)
	if len(fail) > 0 {
		p.tryLater(f, facts.ReasonResize)
	}
	if len(chains) == 0 {
		renew(f, p, fail, "")
	}
}

// finishing returns the next action of a member's in-place update; nil while the kubelet is working
// on it. fails is true if the pod can never be resized as required.
func finishing(f *facts.Facts, m *facts.Member) (acts action.Chain, fails bool) {
	to, known := children.DataOf(f.Named(m.Revision()))
	if !known {
		return nil, false
	}
	todo, readable := progressOf(m.Pod)
	unsent := resizeUnsent(f.World, m, todo, to)
	switch {
	case podresize.Infeasible(m.Pod), unsent && f.RefusedNow(facts.ReasonResize):
		return nil, true
	case unsent:
		return action.Chain{resize(m.Pod, to)}, false
	case !readable, todo.done(m.Pod):
		return action.Chain{finished(m.Pod)}, false
	}
	return nil, false
}

// resizeUnsent reports whether the resize that an update needs was not sent. The cache does not
// hold resources, so only a live read shows whether they are set.
func resizeUnsent(w *facts.World, m *facts.Member, todo progress, to children.RevisionData) bool {
	if !todo.Resize || podresize.Resizing(m.Pod) {
		return false
	}
	if w.Live {
		return !sized(m.Pod, to)
	}
	return !todo.done(m.Pod)
}

// finished returns the action that removes the in-place update annotation from a pod.
func finished(pod *corev1.Pod) action.Action {
	done := pod.DeepCopy()
	delete(done.Annotations, v1alpha1.AnnotationInPlace)
	noteRestarts(done)
	return action.Action{Verb: action.Patch, Object: done, From: pod, Reason: facts.ReasonUpdated, Detail: "complete"}
}

// sized reports whether the pod has the resources of the revision.
func sized(pod *corev1.Pod, to children.RevisionData) bool {
	return apiequality.Semantic.DeepEqual(resize(pod, to).Object.(*corev1.Pod).Spec, pod.Spec)
}
