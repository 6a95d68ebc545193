package record

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// endGrants removes the grants of containers that are no longer primary.
func (r *Record) endGrants(o *Observed) {
	var left []v1alpha1.Grant
	for i := range r.Granted {
		g := &r.Granted[i]
		why := r.whyRevoked(o, g)
		g.LeaseRenewed = g.LeaseRenewed || o.isRenewed(g)
		if why == "" {
			left = append(left, *g)
			continue
		}
		reason := v1alpha1.EventNotPromoted
		if g.Confirmed {
			reason = v1alpha1.EventDemoted
		}
		r.addEvent(reason, "%s is not primary: %s", g.Pod, why)
	}
	r.Granted = left
}

// whyRevoked states the proof that a container with a grant is no longer primary. It is "" if there
// is no proof.
func (r *Record) whyRevoked(o *Observed, g *v1alpha1.Grant) string {
	const ended = "its container has ended"
	m := o.byUID(g.UID)
	switch {
	case o.isRevoked(g):
		return "its Lease does not name it any more"
	case r.startsIn(g):
		return "" // a start with an unknown outcome may still take effect
	case m == nil || m.Stopped:
		return ended
	case o.containerEnded(g.UID, g.ContainerID):
		if r.mayBePrimaryNext(o, g) {
			return ""
		}
		return ended
	case m.Container != g.ContainerID:
		return "" // the kubelet has not reported the end of the container of the grant
	}
	switch r.stateOf(o, m) {
	case Idle:
		return "status reports that it has stopped"
	case Secondary:
		return "status reports that it is secondary"
	}
	return ""
}

// mayBePrimaryNext reports whether a start for an ended container may have reached the next
// container of the same pod, which the kubelet may not have reported yet. If it had reached the
// container of another pod, its end would not count as seen, and the command would still be on
// record.
func (r *Record) mayBePrimaryNext(o *Observed, g *v1alpha1.Grant) bool {
	next := o.replacementOf(g.Pod, g.ContainerID)
	if next == nil {
		return !o.Now.After(spec.StrayUntil(g.Since, g.BeginWithin))
	}
	switch r.stateOf(o, next) {
	case Idle, Secondary:
		return false
	case Primary:
		return !r.GrantsRunning(next.Identity)
	}
	return true
}

// grantPrimaries adds grants for members that are found running as primary, and confirms their
// existing grants.
func (r *Record) grantPrimaries(o *Observed) {
	for i := range o.Members {
		m := &o.Members[i]
		if r.stateOf(o, m) != Primary {
			continue
		}
		if !r.GrantsRunning(m.Identity) {
			r.Granted = append(r.Granted, NewGrant(m.Identity, r.Epoch, o.Now))
			r.addEvent(v1alpha1.EventRoleChanged, "%s was found running as primary", m.Name)
		}
		r.confirm(o, m.Identity)
	}
}

// confirm marks the grant of a member that was seen running as primary. If it was added while the Leases were not
// read, it gets its epoch now.
func (r *Record) confirm(o *Observed, m Identity) {
	for i := range r.Granted {
		g := &r.Granted[i]
		if g.UID == m.PodUID && g.ContainerID == m.Container {
			g.Confirmed = true
			if g.LeaseEpoch == 0 {
				g.LeaseEpoch = o.LeaseEpoch(m)
			}
		}
	}
}

// NewGrant returns a grant for the running container of a member.
func NewGrant(to Identity, epoch int64, now time.Time) v1alpha1.Grant {
	return v1alpha1.Grant{
		Pod:         to.Name,
		UID:         to.PodUID,
		ContainerID: to.Container,
		Epoch:       epoch,
		Since:       metav1.NewMicroTime(now),
	}
}
