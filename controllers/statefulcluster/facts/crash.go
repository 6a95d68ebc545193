package facts

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// A template may be bad although its pods become Ready, because they crash repeatedly later. This
// looks the same as a member with bad data. The difference is another member of the same revision
// that stays Ready: it shows that the template works.

// TotalRestarts returns the number of container restarts of a pod.
func TotalRestarts(pod *corev1.Pod) int32 {
	total := int32(0)
	for _, s := range pod.Status.InitContainerStatuses {
		total += s.RestartCount
	}
	for _, s := range pod.Status.ContainerStatuses {
		total += s.RestartCount
	}
	return total
}

// Restarts returns the number of container restarts since the member got its revision. An in-place
// update records the number before it on the pod.
func (m *Member) Restarts() int32 {
	before, err := strconv.ParseInt(m.Pod.Annotations[v1alpha1.AnnotationRestarts], 10, 32)
	if err != nil {
		before = 0
	}
	return max(0, TotalRestarts(m.Pod)-int32(max(before, 0)))
}

// ProvenAt returns when a revision counts as proven: when one of its members has been Ready for
// SettlingTime. It returns zero if no member of the revision is Ready.
func (w *World) ProvenAt(revision string) (at time.Time) {
	for _, m := range w.Members {
		if m.Revision() != revision || !m.Works() {
			continue
		}
		if due := m.since(corev1.PodReady).Add(spec.SettlingTime); at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

// Proven reports whether a revision is proven to work, now or at any time before.
func (w *World) Proven(revision string) bool {
	if w.Marked(revision, v1alpha1.AnnotationRevisionProven) {
		return true
	}
	at := w.ProvenAt(revision)
	return !at.IsZero() && w.Reached(at)
}

// crashedWithRevision reports whether a container of the member restarted since the member got its
// revision, while nothing shows that the revision works. A new member may crash too, and would cost
// the data of this one.
func crashedWithRevision(w *World, m *Member) bool {
	return m.Restarts() > 0 && !w.Proven(m.Revision())
}
