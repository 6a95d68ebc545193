package statefulcluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// attentionTime is how long a member that is never replaced for it may be not
// Ready before a person is told.
const attentionTime = 10 * time.Minute

// findOutage names the members of a set none of which is Ready though some were,
// and those that are not Ready for long and never replaced for it.
func findOutage(w *world, r *roster, p *plan) {
	ready, down := 0, []string{}
	for _, m := range r.alive {
		switch {
		case podstate.Ready(m.pod):
			ready++
		case podstate.WasReady(m.pod) && m.pod.Annotations[v1alpha1.AnnotationInPlace] == "":
			down = append(down, m.name())
		}
		if since, never := neverReplaced(w, m); never {
			at := since.Add(attentionTime)
			if p.lookAgain(w, at); !at.After(w.now) {
				p.ignored = append(p.ignored, m.name())
			}
		}
	}
	if ready == 0 && len(r.returning) == 0 {
		p.down = down
	}
}

// neverReplaced reports whether the member is not Ready, and since when, for a
// cause whose deadline is 0.
func neverReplaced(w *world, m *member) (since time.Time, never bool) {
	spec := w.set.Spec.Replacement
	if podstate.Ready(m.pod) || m.node.lostNow() || podstate.Ended(m.pod) {
		return time.Time{}, false
	}
	if since, yes := podstate.UnschedulableSince(m.pod); yes {
		return since, *spec.PendingSeconds == 0
	}
	if podstate.WasReady(m.pod) {
		return m.since(corev1.PodReady), *spec.UnreadySeconds == 0
	}
	return m.since(corev1.PodScheduled), podstate.Scheduled(m.pod) && *spec.StartupSeconds == 0
}
