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

// supersede deletes the running pod of an older revision once a pod of the newest revision
// has been at its gate for long enough. A rolling update with surge waits for the new pod
// to be Ready, and the new pod waits for the old one to stop. To resolve this, the old pod
// is deleted, as the Deployment would do later. Nothing is deleted while another blocker
// that is not superseded would block the new pod anyway. If there are several blockers,
// those that were not created under this object are not superseded, because their
// Deployment would not stop them all at once.
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

// whySuperseded returns why a superseded pod is deleted.
func (f *facts) whySuperseded(m *member) string {
	if m == f.leaving {
		return fmt.Sprintf("its Node %s is cordoned, and its replacement waits on another Node", m.pod.Spec.NodeName)
	}
	return "a pod of the newest revision waits for it"
}

// endTimeout deletes the pods that block a late handover, if the spec allows that and they
// were created under this object. A pod whose successor cannot reach its gate keeps
// running: deleting it would gain nothing, and the next pod of its revision would be
// deleted as well.
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

// timeoutDetail is why such a pod is deleted.
const timeoutDetail = "the handover takes longer than maxTransitionTime"

func (w *world) deletesOnTimeout() bool {
	if !w.serves() || w.deleting() {
		return false
	}
	return w.object.Spec.OnTimeout == v1.TimeoutDeletesOld
}

// holdsUp reports whether another pod could start as soon as this one is gone.
func (f *facts) holdsUp(m *member) bool {
	switch {
	case podstate.Ended(m.pod), f.isIdle(m), f.mayBeReplaced(m):
		return true
	}
	return slices.ContainsFunc(f.successors(m), (*member).held)
}

// successors returns the waiting pods that can take over from m: those of the newest
// revision if the Deployment of m does a rolling update, and those on other Nodes if m has
// to leave its Node.
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

// family describes the owner of a pod. The zero value is used if the owner is gone or was
// not read, and for pods of a DaemonSet or Job.
type family struct {
	owner    types.UID // UID of the owner; for pods of a Deployment that of the Deployment
	name     string    // kind and name, for messages
	outdated bool      // the owner wants a newer revision
	rolls    bool      // a Deployment with a rolling update
	// wanted is the min number of Ready pods with which a rollout continues.
	wanted int32
	// deployment and replicaSet are names, for pods of a Deployment. replicaSet is empty if
	// the ReplicaSet is gone.
	deployment, replicaSet string
	unwanted               bool // the Deployment is scaled to 0
	surges                 bool // the Deployment may have more pods than replicas
	pinned                 bool // the template of the ReplicaSet names the Node
	adopts                 bool // the ReplicaSet adopts matching pods that have no controller

	// unknown is the kind of an owner that the operator does not know, for messages; "" if
	// it knows the owner.
	unknown string
	// revision is equal for all pods that such an owner created from one template.
	revision string
	// since is when the ReplicaSet of such an owner was created; zero if unknown.
	since time.Time
}

// follows reports whether the pod has the newest revision of the owner, and the old one has
// not.
func (f *family) follows(old *family) bool {
	return f.owner == old.owner && !f.outdated && old.outdated
}
