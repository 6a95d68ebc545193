package statefulcluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// A template may be bad although its pods become Ready: they crash some time
// later, again and again. That cannot be told from a member whose data is bad,
// but by another member: one of the same revision that stays Ready shows that
// the template works.

// totalRestarts is how often the containers of a pod were restarted.
func totalRestarts(pod *corev1.Pod) int32 {
	total := int32(0)
	for _, s := range pod.Status.InitContainerStatuses {
		total += s.RestartCount
	}
	for _, s := range pod.Status.ContainerStatuses {
		total += s.RestartCount
	}
	return total
}

// restarts is how often the member's containers were restarted since it got its
// revision. An update in place notes on the pod how often it was before.
func (m *member) restarts() int32 {
	before, err := strconv.ParseInt(m.pod.Annotations[v1alpha1.AnnotationRestarts], 10, 32)
	if err != nil {
		before = 0
	}
	return max(0, totalRestarts(m.pod)-int32(max(before, 0)))
}

// noteRestarts makes restarts count from now.
func noteRestarts(pod *corev1.Pod) {
	if n := totalRestarts(pod); n > 0 || pod.Annotations[v1alpha1.AnnotationRestarts] != "" {
		pod.Annotations[v1alpha1.AnnotationRestarts] = strconv.Itoa(int(n))
	}
}

// provenAt is when a revision has shown that it works: a member of it has been
// Ready for settlingTime. It is zero when none of its members is Ready.
func (w *world) provenAt(revision string) (at time.Time) {
	for _, m := range w.members {
		if m.revision() != revision || !m.works() {
			continue
		}
		if due := m.since(corev1.PodReady).Add(settlingTime); at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

// proven reports whether a revision has shown that it works, now or at any time before.
func (w *world) proven(revision string) bool {
	if w.marked(revision, v1alpha1.AnnotationRevisionProven) {
		return true
	}
	at := w.provenAt(revision)
	return !at.IsZero() && w.reached(at)
}

// crashedWithRevision reports whether a container of the member was restarted
// since it got its revision, and nothing shows that the revision works: a new
// member may do no better, and would cost the data of this one.
func crashedWithRevision(w *world, m *member) bool {
	return m.restarts() > 0 && !w.proven(m.revision())
}

// findCrashes names the members whose containers crash again and again, and those
// that hold the update back since it makes members restart.
func (f *facts) findCrashes() {
	for _, m := range f.alive {
		if m.nodeLost() || m.patching() || !crashedWithRevision(f.world, m) {
			continue
		}
		again := m.restarts() > 1
		if again {
			f.crashing = append(f.crashing, m.name())
		}
		steadyAt := m.since(corev1.PodReady).Add(steadyTime)
		if steady := m.ready() && f.reached(steadyAt); steady && !again {
			continue
		}
		f.changes = append(f.changes, f.provenAt(m.revision()))
		if m.revision() == f.target.Name {
			f.unsettled = append(f.unsettled, m.name())
			f.changes = append(f.changes, steadyAt)
		}
	}
}
