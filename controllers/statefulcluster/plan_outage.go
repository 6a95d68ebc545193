package statefulcluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// An outage is the time in which no member of a set is Ready. A power cut ends all members but not
// their data, and a new member has no peer to fetch data from. So no member with data is replaced
// in an outage, unless spec.replacement.whenNoneReady is Replace. Members whose pods ended are
// recreated with their names and claims.

// findUp returns when the member that has been Ready longest became Ready; zero in an outage.
// Members of Nodes that have a problem do not count, no matter for how long.
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

// inOutage reports whether no member is Ready, or the first one became Ready so recently that the
// others may still be starting.
func inOutage(f *facts) bool {
	return f.holdsInOutage() && (f.up.IsZero() || f.now.Before(f.up.Add(outageGrace)))
}

// keptInOutage reports whether a member that counts as lost is kept because of an outage, and until
// when. A zero time means until a member is Ready. A member that went down before the first member
// became Ready again is kept until outageGrace after that, because nodes do not start all at once.
// Members of a Node that is out of service are not kept: it was tainted on purpose.
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

// mayHaveData reports whether the member's claims may contain data. The kubelet may not have
// reported that containers ran if it ended the pod or is unreachable.
func mayHaveData(m *member) bool {
	unknown := m.scheduled() && (m.ended() || m.nodeLost())
	return len(m.claims) > 0 && (m.hasRun() || unknown)
}

// downSince returns since when the member has a problem.
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

// noneReady returns a notice about members that count as lost and are kept because of an outage.
func noneReady(f *facts, _ *plan, _ results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonNoMemberReady}
	switch {
	case len(f.kept) == 0:
	case f.up.IsZero():
		found.Message = fmt.Sprintf("no member is Ready, so no member is replaced and no claim is set aside; members that would be replaced: %s; restore their nodes, and they are recreated on their claims. "+
			"If their data is not needed: `kubectl -n %s patch stc %s --type=merge -p '{\"spec\":{\"replacement\":{\"whenNoneReady\":\"Replace\"}}}'`",
			someOf(f.kept), f.set.Namespace, f.set.Name)
	default:
		found.Message = fmt.Sprintf("no member was Ready until recently; members that are not Ready %d minutes after the first one became Ready will be replaced: %s",
			int(outageGrace.Minutes()), someOf(f.kept))
	}
	return found
}
