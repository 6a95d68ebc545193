package rules

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// unlistedPrimaries returns the primaries that are not to be parked and have all data.
func unlistedPrimaries(f *facts.Facts) []*facts.Member {
	return f.Among(func(m *facts.Member) bool { return m.IsPrimary() && !m.Listed && !m.ScaledDown && !m.LacksData() })
}

// PrimaryToPark returns the first primary that must hand its role over to be parked. It returns nil
// if there is none.
func PrimaryToPark(f *facts.Facts) *facts.Member {
	for _, m := range f.Members {
		if m.Listed && m.Shown == record.Primary && !m.Terminating() && !m.ScaledDown {
			return m
		}
	}
	return nil
}

// listedSurplus returns the unwanted members that stay because they are in spec.maintenance.
func listedSurplus(f *facts.Facts) []*facts.Member {
	return f.Among(func(m *facts.Member) bool { return m.Listed && m.Ordinal >= f.Wanted() })
}

// parkPrimary hands over the role of a listed primary, which is parked afterwards. Like the
// switchover of a primary on a cordoned Node, it begins only at rest.
func parkPrimary(f *facts.Facts, p *Plan) {
	m := PrimaryToPark(f)
	if m == nil {
		return
	}
	p.LookAgain(triedUntil(m).Sub(f.Now))
	p.askDegraded(f)
	if WhyNotParked(f, m).Reason != "" {
		return
	}
	const why = "it is in spec.maintenance"
	if isSpareToPark(f) {
		p.stop(f, m, why+", and other primaries are running")
		return
	}
	demoteWithSuccessor(f, p, transfer{Facts: f, primary: m, avoidLeaving: true}, why)
}

// isSpareToPark reports whether a primary may stop without a successor because other primaries have
// the same data.
func isSpareToPark(f *facts.Facts) bool { return len(unlistedPrimaries(f)) > 0 && !f.HasFollowers() }

// parkChecks are the conditions under which a primary cannot hand its role over now, the
// longest-lasting first.
var parkChecks = []func(*facts.Facts, *facts.Member) facts.Notice{
	commandsNotAllowed, commandPending, memberMissing, demoteFailed, noFollower, otherOrderFirst, beingUpdated, triedRecently,
}

// WhyNotParked returns the notice of the first of parkChecks that fails.
func WhyNotParked(f *facts.Facts, m *facts.Member) facts.Notice { return firstNotice(f, parkChecks, m) }

// noFollower checks that a member exists that can have the data of the primary. Without one, no
// member can take its role.
func noFollower(f *facts.Facts, m *facts.Member) facts.Notice {
	switch {
	case isSpareToPark(f):
		return facts.Notice{}
	case !f.HasFollowers():
		return facts.Notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "it has no secondary, so no other member has its data"}
	}
	return noSuccessor(f, m)
}
