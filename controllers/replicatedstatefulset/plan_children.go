package replicatedstatefulset

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// keepChildren makes what is missing and repairs what others changed. The number
// of pods is scale's.
func keepChildren(w *world, p *plan) {
	if w.invalid != "" || w.deleting() || w.namespaceGoes {
		return
	}
	for _, want := range buildServices(w.set) {
		if have := w.services[want.Name]; have == nil {
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		} else if w.ours(have) {
			next := have.DeepCopy()
			next.Labels = merged(have.Labels, want.Labels)
			next.Spec.Selector, next.Spec.PublishNotReadyAddresses = want.Spec.Selector, want.Spec.PublishNotReadyAddresses
			next.Spec.Ports = want.Spec.Ports
			mend(w, p, false, action.Action{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonChild})
		}
	}
	want := buildBudget(w.set)
	switch have := w.budget; {
	case have == nil:
		p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
	case w.ours(have):
		next := have.DeepCopy()
		next.Labels = merged(have.Labels, want.Labels)
		next.Spec.MaxUnavailable, next.Spec.MinAvailable, next.Spec.Selector = want.Spec.MaxUnavailable, nil, want.Spec.Selector
		mend(w, p, false, action.Action{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonChild})
	}
	keepStatefulSet(w, p)
}

// ours tells whether a child is controlled by the object.
func (w *world) ours(child metav1.Object) bool { return metav1.IsControlledBy(child, w.set) }

// mend patches a child that is not what it shall be: not what was in vain a while
// ago, and not again at once, unless the spec has changed. Somebody may take it back.
func mend(w *world, p *plan, changed bool, a action.Action) {
	if apiequality.Semantic.DeepEqual(a.Object, a.From) {
		return
	}
	last, pause := w.mended[childKey(a.From)], time.Duration(0)
	switch {
	case last.vain && last.attempt == attemptOf(a.From, a.Object):
		pause = vainPause
	case !changed:
		pause = mendPause
	}
	if left := last.at.Add(pause).Sub(w.now); left > 0 {
		p.LookAgain(left)
		return
	}
	p.Do(action.Chain{a})
}

// mended is the last patch of a child: in vain if it was taken and changed nothing.
type mended struct {
	attempt attempt
	vain    bool
	at      time.Time
}

// attempt is a fingerprint of what a child was, and of what it should become.
type attempt string

// attemptOf leaves out what changes by itself.
func attemptOf(have, next any) attempt {
	hash := sha256.New()
	for _, object := range []any{have, next} {
		fields := fieldsOf(object)
		for _, key := range []string{"status", "kind", "apiVersion"} { // a cache fills the last two in
			delete(fields, key)
		}
		for _, key := range []string{"resourceVersion", "generation", "managedFields"} {
			unstructured.RemoveNestedField(fields, "metadata", key)
		}
		fmt.Fprintln(hash, fields) // keys are in order
	}
	return attempt(hash.Sum(nil))
}

func childKey(child metav1.Object) string { return fmt.Sprintf("%T %s", child, child.GetName()) }

// fieldsOf are the fields of an object by their names in JSON, without those that
// are not set.
func fieldsOf(object any) (fields map[string]any) {
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // what was read from JSON can be written as JSON
		panic(fmt.Sprintf("the fields of %T: %v", object, err))
	}
	return fields
}

// covers tells whether an object has all that is wanted of it. What the API server
// or a policy added is no matter.
func covers(have, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		have, _ := have.(map[string]any)
		for key, value := range want {
			if !covers(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, _ := have.([]any)
		if len(have) < len(want) {
			return false
		}
		for i := range want {
			if !covers(have[i], want[i]) {
				return false
			}
		}
		return true
	}
	return have == want
}

// keepStatefulSet makes the StatefulSet, and gives it a new template when what
// its pods must be made anew for has changed, which it finds by the hash, or when
// somebody else changed what it says. What the API server added stays.
func keepStatefulSet(w *world, p *plan) {
	have := w.stateful
	if have == nil {
		replicas := w.remade()
		p.Do(action.Chain{{Verb: action.Create, Object: buildStatefulSet(w.set, replicas, w.rules), Reason: reasonChild,
			Detail: fmt.Sprintf("%d pods", replicas)}})
		return
	}
	if !w.ours(have) || have.DeletionTimestamp != nil {
		return
	}
	want := buildStatefulSet(w.set, *have.Spec.Replicas, w.rules)
	next, reason := have.DeepCopy(), reasonChild
	next.Labels = merged(have.Labels, want.Labels)
	next.Spec.UpdateStrategy, next.Spec.PersistentVolumeClaimRetentionPolicy = want.Spec.UpdateStrategy, want.Spec.PersistentVolumeClaimRetentionPolicy
	is, shall := &have.Spec.Template, &want.Spec.Template
	changed := is.Annotations[v1alpha1.AnnotationTemplate] != shall.Annotations[v1alpha1.AnnotationTemplate]
	if changed || !maps.Equal(is.Labels, shall.Labels) || !maps.Equal(is.Annotations, shall.Annotations) ||
		!apiequality.Semantic.DeepEqual(is.Finalizers, shall.Finalizers) || !covers(fieldsOf(is.Spec), fieldsOf(shall.Spec)) {
		next.Spec.Template, reason = *shall, reasonTemplate
	}
	mend(w, p, changed, action.Action{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reason})
}

// remade is with how many pods a StatefulSet is made. One that takes the place of
// one that somebody deleted adopts the pods that run, and has those deleted at once
// that are beyond its number: scale takes them away in order. A paused set gets none
// that it did not have.
func (w *world) remade() int32 {
	n := w.wanted()
	if w.set.Spec.Paused {
		n = min(n, int(w.set.Status.RestoreReplicas))
	}
	for _, m := range w.members {
		n = max(n, m.ordinal+1)
	}
	return int32(n)
}

// keepLabels puts back the labels by which a pod is found: without them its
// StatefulSet lets go of it, and its name is taken still.
func keepLabels(w *world, p *plan) {
	if w.invalid != "" || w.namespaceGoes {
		return
	}
	for _, m := range w.members {
		labels := merged(m.pod.Labels, ownLabels(w.set))
		if maps.Equal(labels, m.pod.Labels) {
			continue
		}
		pod := m.pod.DeepCopy()
		pod.Labels = labels
		mend(w, p, false, action.Action{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonChild, Detail: "its labels"})
	}
}

// showRoles keeps the labels of the pods true. Of a member of whom nothing is
// known they stay, unless it is not the container any more of which they speak.
func showRoles(w *world, p *plan) {
	if w.namespaceGoes {
		return
	}
	for _, m := range w.members {
		active, role := v1alpha1.False, v1alpha1.RoleNone
		switch s := w.state(m); {
		case w.stranger(m) != "":
			// No client is sent there, whatever labels it came with.
		case w.resists(m) && w.state(m) != failed && w.shallStop(m):
			continue // it was shown as one that goes, and is told to again
		case s == primary:
			active, role = v1alpha1.True, v1alpha1.RolePrimary
		case s == secondary:
			active, role = v1alpha1.True, v1alpha1.RoleSecondary
		case s == unknown && (w.commandIn(m) != nil || m.lost()):
			continue // they were set before a stop was sent, and are after a start
		case s == unknown && m.pod.Labels[v1alpha1.LabelActive] != "" && (m.pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary || w.grantedIn(m)):
			continue
		}
		if patch := w.label(m, active, role); len(patch) > 0 {
			p.Do(patch)
		}
	}
}

// label is the patch of a pod's labels; none if they say that already.
func (w *world) label(m *member, active, role string) action.Chain {
	pod := m.pod.DeepCopy()
	pod.Labels = merged(pod.Labels, map[string]string{v1alpha1.LabelActive: active, v1alpha1.LabelRole: role})
	if maps.Equal(pod.Labels, m.pod.Labels) {
		return nil
	}
	return action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonRole, Detail: role}}
}

// protect puts the finalizer on pods that lack it, before anything is started in
// them: a pod that is deleted by force stays visible until it has stopped.
func protect(w *world, p *plan) {
	if w.invalid != "" || w.namespaceGoes || w.deleting() || !exclusive(w.set) {
		return
	}
	for _, m := range w.members {
		if m.protected() || m.terminating() || w.stranger(m) != "" {
			continue
		}
		pod := m.pod.DeepCopy()
		controllerutil.AddFinalizer(pod, v1alpha1.FinalizerMember)
		p.Do(action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: true, Reason: reasonProtect}})
	}
}

// release takes the finalizer off pods that go and have stopped, when the books
// have nothing on them.
func release(w *world, p *plan) {
	for _, m := range w.members {
		if !m.terminating() || !m.protected() || w.written(m) ||
			!podstate.Stopped(m.pod, m.pod.Labels[v1alpha1.LabelActive] == v1alpha1.True) && !w.fenced(m) {
			continue
		}
		p.Do(action.Chain{unprotect(m)})
	}
}

// written tells whether the books as they are stored speak of the pod.
func (w *world) written(m *member) bool {
	return commandOf(w.set.Status.Commands, m.pod.UID) != nil || w.granted(m) ||
		slices.ContainsFunc(w.set.Status.Grants, func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID })
}

func unprotect(m *member) action.Action {
	pod := m.pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1alpha1.FinalizerMember)
	return action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: true, Reason: reasonRelease}
}

// deleteFenced deletes pods whose machine is off, as the control plane does unless
// they tolerate the taint: their kubelet would start them again.
func deleteFenced(w *world, p *plan) {
	for _, m := range w.members {
		if w.powerless(m) && !m.terminating() && w.invalid == "" && w.stranger(m) == "" {
			p.Do(remove(m, reasonFenced, "its Node "+m.pod.Spec.NodeName+" is out of service"))
		}
	}
}
