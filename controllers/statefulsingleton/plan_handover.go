package statefulsingleton

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// supersede deletes the running pod of an older revision once a pod of the
// newest is held and at rest. A rolling update with surge waits for the new pod to be Ready,
// which waits for the old one to stop: one of them must go, and it is the one
// that the Deployment would delete. Nothing is deleted while a pod that is not
// superseded would block the new one anyway. Of several pods that were not made under
// this object none is: their Deployment would not stop them all at one time.
func supersede(f *facts, p *plan) {
	if !f.grants() {
		return
	}
	var chains []action.Chain
	for _, m := range f.blockers {
		if m.terminating() {
			continue
		}
		if !f.isSuperseded(m) {
			return
		}
		chains = append(chains, deletion(m, reasonSuperseded, f.whySuperseded(m)))
	}
	p.Do(chains...)
}

// isSuperseded reports whether a pod may be deleted for one of its successors.
func (f *facts) isSuperseded(m *member) bool {
	if len(f.blockers) > 1 && !f.madeUnder(m) {
		return false
	}
	return slices.ContainsFunc(f.successors(m), func(next *member) bool {
		if next.needsClaimOf(m) {
			return true
		}
		return next.eligible() && next.rests
	})
}

// whySuperseded says for what a pod is deleted.
func (f *facts) whySuperseded(m *member) string {
	if m == f.leaving {
		return fmt.Sprintf("its Node %s is cordoned, and another pod waits elsewhere", m.pod.Spec.NodeName)
	}
	return "a pod of the newest revision waits for it"
}

// endTimeout deletes the pods that are waited for, if the spec wants that and they
// were made under this object. One whose successor cannot come to its gate runs on:
// nothing would be won, and the next pod of its revision would be deleted as well.
func endTimeout(f *facts, p *plan) {
	if !f.late || !f.deletesOnTimeout() {
		return
	}
	var replaced []*member
	chains := deletions(f.blockers, reasonTimeout, timeoutDetail, func(m *member) bool {
		switch {
		case !f.holdsUp(m), m.terminating(), !f.madeUnder(m):
			return false
		case f.mayBeReplaced(m):
			replaced = append(replaced, m)
			return false
		}
		return true
	})
	p.Do(append(chains, replacement(f, replaced)...)...)
}

// timeoutDetail is why a pod is deleted that is waited for.
const timeoutDetail = "the handover takes longer than maxTransitionTime"

func (w *world) deletesOnTimeout() bool {
	if !w.serves() || w.deleting() {
		return false
	}
	return w.object.Spec.OnTimeout == v1.TimeoutDeletesOld
}

// holdsUp reports whether another pod could start as soon as this one has gone.
func (f *facts) holdsUp(m *member) bool {
	switch {
	case podstate.Ended(m.pod), f.isIdle(m), f.mayBeReplaced(m):
		return true
	}
	return slices.ContainsFunc(f.successors(m), (*member).held)
}

// successors are those of the waiting pods that are to take the place of m: its Deployment
// replaces its pods by surge, and wants them there, or m leaves its cordoned Node.
func (f *facts) successors(m *member) []*member {
	var found []*member
	for _, next := range f.waiting {
		follows := m.family.rolls && next.family.follows(&m.family)
		if follows || (m == f.leaving && next.relieves(m)) {
			found = append(found, next)
		}
	}
	return found
}

// family is what matters of who made a pod. The zero value is a pod without a
// controller.
type family struct {
	owner    types.UID // of the Deployment or StatefulSet
	name     string    // kind and name, for people
	outdated bool      // the owner wants a newer revision
	rolls    bool      // a Deployment that replaces its pods by surge
	// wanted is how many pods are to be Ready for a rollout to go on.
	wanted int32
	// deployment and replicaSet are their names, of a pod of a Deployment; there is no
	// replicaSet if it is gone.
	deployment, replicaSet string
	unwanted               bool // the Deployment wants no pod
	surges                 bool // the Deployment may have a pod more than it wants
	pinned                 bool // the pods of the ReplicaSet start on a Node that the template names
	adopts                 bool // the ReplicaSet takes a pod of its own back that has no controller

	// unknown is the kind of an owner that the operator does not know, for people; "" if it
	// knows the owner.
	unknown string
	// revision is the same for pods that such an owner created from one template.
	revision string
	// since is when such an owner, or the ReplicaSet that it created, came; zero if that is
	// not known.
	since time.Time
}

// follows reports whether a pod is what the owner of an older one wants in its place.
func (f *family) follows(old *family) bool {
	return f.owner == old.owner && !f.outdated && old.outdated
}
