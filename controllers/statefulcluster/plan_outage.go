package statefulcluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// An outage is the time in which no member of a set is Ready. A power cut ends all members
// but not their data, and a new member has no peer to fetch data from.
// So no member with data is replaced then, unless spec.replacement.whenNoneReady is Replace.
// Members whose pods ended come back under their names on their claims.

// findUp returns since when the member is Ready that has been so for the longest time; zero
// in an outage. Members of Nodes that are lost, however short, do not count.
func findUp(w *world) time.Time {
	var up time.Time
	for _, m := range w.members {
		if !m.ready() || m.terminating() || m.nodeLost() {
			continue
		}
		if since := m.since(corev1.PodReady); up.IsZero() || since.Before(up) {
			up = since
		}
	}
	return up
}

// holdsInOutage reports whether members are kept in an outage.
func (s settings) holdsInOutage() bool {
	return s.set.Spec.Replacement.WhenNoneReady != v1alpha1.NoneReadyReplaces
}

// inOutage reports whether no member is Ready, or the first one became Ready so shortly
// ago that the others may still be on their way.
func inOutage(f *facts) bool {
	return f.holdsInOutage() && (f.up.IsZero() || f.now.Before(f.up.Add(outageGrace)))
}

// keptInOutage reports whether a member that counts as lost is kept because no member is
// Ready, and until when; zero is until one is Ready. One that went down before the first
// member became Ready again has some time more: nodes do not start all at once. A Node that
// is out of service was tainted on purpose.
func keptInOutage(f *facts, m *member) (kept bool, until time.Time) {
	switch {
	case !inOutage(f), m.node.outOfService, !mayHaveData(m):
		return false, time.Time{}
	case f.up.IsZero():
		return true, time.Time{}
	case !downSince(m).Before(f.up):
		return false, time.Time{}
	}
	return true, f.up.Add(outageGrace)
}

// mayHaveData reports whether there may be something on the member's claims. The kubelet
// that ended a pod, or does not answer, may not have reported that its containers ran.
func mayHaveData(m *member) bool {
	unknown := m.scheduled() && (m.ended() || m.nodeLost())
	return len(m.claims) > 0 && (m.hasRun() || unknown)
}

// downSince returns since when something is wrong with a member.
func downSince(m *member) time.Time {
	var since time.Time
	note := func(at time.Time) {
		if !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	if !m.ready() {
		note(m.since(corev1.PodReady))
	}
	note(m.node.notReadySince)
	if m.node.gone {
		note(m.node.goneSince)
	}
	note(podstate.DeletedAt(m.pod))
	return since
}

// noneReady: members are lost, and kept because no member is Ready.
func noneReady(f *facts, _ *plan, _ results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonNoMemberReady}
	switch {
	case len(f.kept) == 0:
	case f.up.IsZero():
		found.Message = fmt.Sprintf("no member is Ready, so none is replaced and no claim is set aside; these would be replaced: %s; bring back their nodes, and they come back on their claims. "+
			"If their data is not needed: `kubectl -n %s patch stc %s --type=merge -p '{\"spec\":{\"replacement\":{\"whenNoneReady\":\"Replace\"}}}'`",
			someOf(f.kept), f.set.Namespace, f.set.Name)
	default:
		found.Message = fmt.Sprintf("no member was Ready before; these are still down, and are replaced if they are not back %d minutes after the first one became Ready: %s",
			int(outageGrace.Minutes()), someOf(f.kept))
	}
	return found
}
