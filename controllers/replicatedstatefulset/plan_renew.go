package replicatedstatefulset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// fresher tells whether the member was made from the present template.
func (w *world) fresher(m *member) bool {
	return w.stateful == nil || m.pod.Annotations[v1alpha1.AnnotationTemplate] == w.stateful.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]
}

// current tells whether the StatefulSet's controller has seen the template.
func (w *world) current() bool {
	return w.stateful != nil && w.stateful.Status.ObservedGeneration == w.stateful.Generation
}

// renewIdle makes pods anew, one at a time, in which nothing runs and that are out
// of date: nobody misses them, and a template that cannot run is left like this.
func renewIdle(w *world, p *plan) {
	if !w.starts() || !w.current() || w.renewing() {
		return
	}
	for i := len(w.members) - 1; i >= 0; i-- {
		m := w.members[i]
		s := w.state(m)
		if r, _ := m.result(v1alpha1.CommandStop); s == idle && len(w.books.grants) == 0 && r.Outcome != podexec.Succeeded {
			continue // nobody stopped it for this: it may be the first to start, and the new template may be bad
		}
		if len(w.books.grants) == 0 && len(w.set.Spec.Pod.VolumeClaimTemplates) == 0 && m.endedAfter(w.now.Add(-returnsWithin)) {
			continue // its copy goes with its pod, and may be the newest when its container runs again
		}
		if w.fresher(m) || w.stranger(m) != "" || m.terminating() || m.lost() || w.granted(m) || w.commandIn(m) != nil || s != idle && s != pending && s != failed && !w.silent(m) {
			continue
		}
		p.Do(remove(m, reasonRenew, "its template is out of date, and nothing runs in it"))
		return
	}
}

// renewing tells whether a member is on its way already: it goes, or it came with
// the present template and has not said yet what it is.
func (w *world) renewing() bool {
	for _, m := range w.members {
		if s := w.state(m); m.terminating() || w.fresher(m) && (s == pending || s == unknown) {
			return true
		}
	}
	return len(w.members) < w.wanted()
}

// renew stops members that are out of date, one at a time while nothing is
// missing: secondaries first, then each primary when another has its place. What
// is stopped is made anew by renewIdle.
func renew(w *world, p *plan) {
	if !w.starts() || !w.current() || len(w.among(func(m *member) bool { return !w.fresher(m) })) == 0 {
		return
	}
	p.WaitFor(v1alpha1.ReasonUpdating, "members are made anew from the present template, one at a time")
	fresh := func(m *member) bool { return w.fresher(m) && w.shown(m) == primary && w.unserved(m) != "" }
	if !w.wellStaffed() || w.renewing() || trouble(w).Status == metav1.ConditionTrue || len(w.among(fresh)) > 0 {
		return
	}
	for _, s := range []state{secondary, primary} {
		for i := len(w.members) - 1; i >= 0; i-- {
			m := w.members[i]
			if w.fresher(m) || w.state(m) != s {
				continue
			}
			if s == primary {
				w.relieve(p, m, "its template is out of date")
			} else {
				w.stop(p, m, fmt.Sprintf("its template is out of date, and nobody misses a %s", s))
			}
			return
		}
	}
}
