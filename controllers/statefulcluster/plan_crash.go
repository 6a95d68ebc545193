package statefulcluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// A template may be bad although its pods become Ready, because they crash repeatedly later. This
// looks the same as a member with bad data. The difference is another member of the same revision
// that stays Ready: it shows that the template works.

// totalRestarts returns the number of container restarts of a pod.
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

// restarts returns the number of container restarts since the member got its revision. An in-place
// update records the number before it on the pod.
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

// provenAt returns when a revision counts as proven: when one of its members has been Ready for
// settlingTime. It returns zero if no member of the revision is Ready.
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

// proven reports whether a revision is known to work, now or at any time before.
func (w *world) proven(revision string) bool {
	if w.marked(revision, v1alpha1.AnnotationRevisionProven) {
		return true
	}
	at := w.provenAt(revision)
	return !at.IsZero() && w.reached(at)
}

// crashedWithRevision reports whether a container of the member restarted since the member got its
// revision, while nothing shows that the revision works. A new member may crash too, and would cost
// the data of this one.
func crashedWithRevision(w *world, m *member) bool {
	return m.restarts() > 0 && !w.proven(m.revision())
}

// findCrashes finds the members whose containers crash repeatedly, and the members that block the
// update because they restarted after it.
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
