package facts

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// Facts are the observed state of a set in one pass and the conclusions from it. They are derived
// once and then read by the rules.
type Facts struct {
	*World

	// Spec is the revision of the current spec. It has no UID before it is created.
	Spec *appsv1.ControllerRevision
	// Target is the revision that members are updated to. It is the revision of the spec, or the
	// newest recorded one while the API server refuses to create the revision of the spec. Lost
	// members are replaced in either case.
	Target *appsv1.ControllerRevision

	// Each member that has a pod is in exactly one of the next four lists (see the package comment).

	// Alive are members whose pods are not being deleted. They need not be Ready.
	Alive []*Member
	// Lost are members that will be replaced, now or when maxConcurrent allows it.
	Lost []Loss
	// Returning members have a pod that is terminating or gone, and will be recreated under the
	// same name.
	Returning []v1alpha1.UpdatingMember
	// Departed members are being deleted and never come back.
	Departed []*Member

	// ReadySince is when the member that has been Ready longest became Ready; zero in an outage.
	ReadySince time.Time
	// Kept are members that count as lost but are kept because of an outage.
	Kept []string
	// PendingEnds are members whose pod is gone and that will be recreated, unless the pod watch
	// shows that a user deleted the pod.
	PendingEnds []string

	// HasSuccessor is true for the names of members that a pod of another member replaces.
	HasSuccessor map[string]bool
	// ReturnFailed is true if a returning member counts as lost. Its entry in status.updating must
	// be removed before its successor is created.
	ReturnFailed bool

	// Failing are members that passed a deadline and are not replaced, because their template may
	// be the cause.
	Failing []string
	// ManyUnready is the number of members that are not Ready, if that is too many to replace any
	// of them; otherwise 0.
	ManyUnready int
	// Crashing are members whose containers crash repeatedly since the member got its revision.
	Crashing []string
	// Unsettled are members of the target revision that restarted since they got it. The update
	// waits until they have been Ready for a while.
	Unsettled []string
	// Down are the members that were Ready before, if no member of the set is Ready now.
	Down []string
	// Ignored are members that have not been Ready for a long time and have no deadline for
	// replacement.
	Ignored []string

	// draining is true while any member, lost or not, has to leave a cordoned Node.
	draining bool
	// Leaving are the alive members on cordoned Nodes that will be retired when new members are
	// available.
	Leaving []*Member
	// StayReason is why members stay on cordoned Nodes although onEviction is ReplaceFirst;
	// "" if there is none.
	StayReason string
	// Roomless are new members that cannot be scheduled while Nodes are cordoned. They are not
	// replaced, because a replacement could not be scheduled either.
	Roomless []string

	// Changes are the times at which the facts will change without an event.
	Changes []time.Time
	// claimRecord holds the entries of status.claims.
	claimRecord map[v1alpha1.RecordedClaim]bool
}

// Loss is a member with the reason why it counts as lost.
type Loss struct {
	*Member
	Reason v1alpha1.LossReason
	// Due is when the member counts as lost. Only time in which this process observed the cluster
	// counts towards it.
	Due time.Time
	// wall is Due by the wall clock, as if the operator had observed the cluster without
	// interruption. It is set only for unreadiness.
	wall time.Time
}
