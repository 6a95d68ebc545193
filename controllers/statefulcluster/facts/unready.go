package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// unreadiness is why and since when a member is not Ready, and after how many seconds
// spec.replacement counts it as lost; 0 is never.
type unreadiness struct {
	reason  v1alpha1.LossReason
	since   time.Time
	seconds int32
}

// unreadinessOf returns the unreadiness of a member. It returns false if the member is Ready, or if
// the cause is its Node or the end of its pod.
func unreadinessOf(w *World, m *Member) (unreadiness, bool) {
	if m.Ready() || m.OnBadNode() || m.Ended() {
		return unreadiness{}, false
	}
	after := w.Set.Spec.Replacement
	if since, yes := podstate.UnschedulableSince(m.Pod); yes {
		if waitsForClaims(w, m) {
			return unreadiness{}, false
		}
		return unreadiness{v1alpha1.LossPending, latest(since, m.claimsSince()), *after.PendingSeconds}, true
	}
	if m.wasReady() {
		return unreadiness{v1alpha1.LossUnready, m.since(corev1.PodReady), *after.UnreadySeconds}, true
	}
	if m.Scheduled() {
		return unreadiness{v1alpha1.LossStartup, m.since(corev1.PodScheduled), *after.StartupSeconds}, true
	}
	return unreadiness{}, false
}

// unreadyLoss returns a loss by unreadiness, which a bad template can cause too.
func unreadyLoss(w *World, m *Member) (Loss, bool) {
	u, unready := unreadinessOf(w, m)
	if !unready || u.seconds <= 0 {
		return Loss{}, false
	}
	after := time.Duration(u.seconds)*time.Second + Backoff(w, m)
	return Loss{Member: m, Reason: u.reason, Due: w.Watch.Deadline(u.since, after), wall: u.since.Add(after)}, true
}
