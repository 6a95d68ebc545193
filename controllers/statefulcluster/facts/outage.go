package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// An outage is a time in which no member of a set is Ready. A power cut ends all members but not
// their data, and a new member has no peer to fetch data from. So no member with data is replaced
// in an outage, unless spec.replacement.whenNoneReady is Replace. Members whose pods ended are
// recreated with their names and claims.

// FindReadySince returns when the member that has been Ready longest became Ready; zero in an outage.
// Members of Nodes that have a problem do not count, no matter for how long.
func FindReadySince(w *World) time.Time {
	var first time.Time
	for _, m := range w.Members {
		if !m.Ready() || m.Terminating() || m.OnBadNode() {
			continue
		}
		if since := m.since(corev1.PodReady); first.IsZero() || since.Before(first) {
			first = since
		}
	}
	return first
}

// InOutage reports whether no member is Ready, or the first one became Ready so recently that the
// others may still be starting.
func InOutage(f *Facts) bool {
	return f.HoldsInOutage() && (f.ReadySince.IsZero() || f.Now.Before(f.ReadySince.Add(spec.OutageGrace)))
}

// KeptInOutage reports whether a member that counts as lost is kept because of an outage, and until
// when. A zero time means until a member is Ready. A member that went down before the first member
// became Ready again is kept until OutageGrace after that, because nodes do not start all at once.
// Members of a Node that is out of service are not kept: it was tainted on purpose.
func KeptInOutage(f *Facts, m *Member) (kept bool, until time.Time) {
	switch {
	case !InOutage(f), m.Node.OutOfService, !MayHaveData(m):
		return false, time.Time{}
	case f.ReadySince.IsZero():
		return true, time.Time{}
	case !downSince(m).Before(f.ReadySince):
		return false, time.Time{}
	}
	return true, f.ReadySince.Add(spec.OutageGrace)
}
