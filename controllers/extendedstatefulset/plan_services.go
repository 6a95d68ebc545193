package extendedstatefulset

import (
	"fmt"
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// keepServices makes the two Services. One of that name that somebody else made is
// left alone; of ours the selector is kept, and nothing else, so that users may
// give them other ports and another type.
func keepServices(w *world, p *plan) {
	for _, want := range buildServices(w.set, w.serves()) {
		have := w.services[want.Name]
		switch {
		case have == nil:
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		case !metav1.IsControlledBy(have, w.set) || have.DeletionTimestamp != nil:
		case !maps.Equal(have.Spec.Selector, want.Spec.Selector):
			next := have.DeepCopy()
			next.Spec.Selector = want.Spec.Selector
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonChild,
				Detail: fmt.Sprintf("selects %s", selected(want.Spec.Selector))}})
		}
	}
}

// foreignService is the active Service if it is not ours: it may select pods of
// another application, and nobody switches it. The headless one may be anybody's,
// as that of a StatefulSet. "" where all is well.
func (w *world) foreignService() string {
	have := w.services[activeService(w.set)]
	if have == nil || metav1.IsControlledBy(have, w.set) {
		return ""
	}
	return have.Name
}

func selected(selector map[string]string) string {
	if v := selector[v1alpha1.LabelVersion]; v != "" {
		return "version " + v
	}
	return "every version"
}

// serves selects the pods that serve: those of the current version, or while
// ordinals move of any: then no ordinal is there twice.
func (w *world) serves() map[string]string {
	selector := map[string]string{v1alpha1.LabelSet: w.set.Name}
	if !w.moving() {
		selector[v1alpha1.LabelVersion] = strconv.FormatInt(w.books.CurrentVersion, 10)
	}
	return selector
}

// moving tells whether another version has ordinals that the current one lacks, or
// is about to.
func (w *world) moving() bool {
	if u := w.books.Update; u != nil && u.Handover == v1alpha1.HandoverPerOrdinal && w.books.Phase != v1alpha1.PhasePreJob &&
		w.books.Phase != v1alpha1.PhaseAborted && (w.books.Phase != v1alpha1.PhaseStale || w.unreturned(w.books.CurrentVersion) != "") {
		return true
	}
	for _, c := range w.children {
		current := w.child(c.zone, w.books.CurrentVersion)
		if c.version == w.books.CurrentVersion || current == nil {
			continue
		}
		for o := c.span().start; o < min(c.span().end(), w.replicas); o++ {
			if !current.span().has(o) {
				return true
			}
		}
	}
	return false
}

// switched tells whether clients are sent to what serves now.
func (w *world) switched() bool {
	have := w.services[activeService(w.set)]
	if w.set.Spec.Template.Spec.ServiceName == "" || have == nil || !metav1.IsControlledBy(have, w.set) {
		return true
	}
	return maps.Equal(have.Spec.Selector, w.serves())
}
