package statefulcluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// A template may be bad although its pods become Ready: they crash some time
// later, again and again. Nobody can tell that from a member whose data is bad,
// but by another member: one of the same revision that stays Ready shows that
// the template works.

// steadyTime is how long a member that restarted once since it was updated must
// be Ready before the update goes on. After more restarts it is settlingTime: a
// container that ran that long is restarted by the kubelet without a back-off.
const steadyTime = 2 * time.Minute

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
func restarts(m *member) int32 {
	before, err := strconv.ParseInt(m.pod.Annotations[v1alpha1.AnnotationRestarts], 10, 32)
	if err != nil || before < 0 {
		before = 0
	}
	return max(0, totalRestarts(m.pod)-int32(before))
}

// noteRestarts makes restarts count from now.
func noteRestarts(pod *corev1.Pod) {
	if n := totalRestarts(pod); n > 0 || pod.Annotations[v1alpha1.AnnotationRestarts] != "" {
		pod.Annotations[v1alpha1.AnnotationRestarts] = strconv.Itoa(int(n))
	}
}

// provenAt is when a revision has shown that it works: a member of it has been
// Ready for settlingTime. It is false when none of its members is Ready.
func provenAt(w *world, revision string) (at time.Time, ok bool) {
	for _, m := range w.members {
		if revisionOf(m.pod) != revision || !podstate.Ready(m.pod) || m.pod.Annotations[v1alpha1.AnnotationInPlace] != "" {
			continue
		}
		if due := m.since(corev1.PodReady).Add(settlingTime); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// proven reports whether a revision has shown that it works, now or at any time before.
func proven(w *world, name string) bool {
	if w.noted(name, v1alpha1.AnnotationRevisionProven) {
		return true
	}
	at, ok := provenAt(w, name)
	return ok && !at.After(w.now)
}

// crashedWithRevision tells whether a container of the member was restarted
// since it got its revision, and nothing shows that the revision works: a new
// member may do no better, and would cost the data of this one.
func crashedWithRevision(w *world, m *member) bool {
	return restarts(m) > 0 && !proven(w, revisionOf(m.pod))
}

// findCrashes names the members whose containers crash again and again, and
// holds the update back while it makes members restart.
func findCrashes(w *world, r *roster, p *plan) {
	for _, m := range r.alive {
		if !crashedWithRevision(w, m) || m.node.lostNow() || m.pod.Annotations[v1alpha1.AnnotationInPlace] != "" {
			continue
		}
		again := restarts(m) > 1
		if again {
			p.crashing = append(p.crashing, m.name())
		}
		steady := m.since(corev1.PodReady).Add(steadyTime)
		if !again && podstate.Ready(m.pod) && !steady.After(w.now) {
			continue
		}
		if at, ok := provenAt(w, revisionOf(m.pod)); ok {
			p.lookAgain(w, at)
		}
		if revisionOf(m.pod) == r.target {
			p.shaky = append(p.shaky, m.name())
			p.lookAgain(w, steady)
		}
	}
}
