package rules

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// maintainLease creates the Lease, and the rights of the pods on it, and deletes them when no pod needs them. A new
// Lease has no holder: a write that is late names no pod.
func maintainLease(f *facts.Facts, p *Plan) {
	if f.Object == nil || f.LeaseProblem.Message != "" || !f.UsesLease() {
		return
	}
	accounts := leasedAccounts(f.Pods)
	switch {
	case f.Deleting():
		p.Do(keepLeaseForPods(f)...) // the garbage collector may delete its dependents
		return
	case !spec.FencedByLease(f.Object) && len(accounts) == 0:
		p.Do(deleteLease(f)...)
		return
	}
	p.Do(ownLease(f)...)
	if f.Lease == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: children.BuildLease(f.Object), Reason: ReasonLease}})
	}
	if len(accounts) > 0 {
		createRights(f, p, accounts)
	}
}

// leasedAccounts returns the service accounts of the pods that use the Lease, sorted.
func leasedAccounts(members []*facts.Member) []string {
	found := map[string]bool{}
	for _, m := range members {
		if children.LeaseDuration(m.Pod) > 0 {
			found[fencing.AccountOf(&m.Pod.Spec)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// deleteLease returns the actions that delete the Lease and the rights on it, after a change of the mode. The status
// does not refer to them any more, before they are deleted.
func deleteLease(f *facts.Facts) []action.Chain {
	if f.UnseenHolder() != "" {
		return nil
	}
	var chain action.Chain
	if h := f.Object.Status.Holder; h != nil && h.Lease != "" {
		object := f.Object.DeepCopy()
		object.Status.Holder.Lease = ""
		chain = append(chain, action.Action{Verb: action.PatchStatus, Object: object, From: f.Object, Reason: ReasonLease, Detail: "no pod uses it"})
	}
	for _, obj := range leaseObjects(f) {
		chain = append(chain, action.Action{Verb: action.Delete, Object: obj, Reason: ReasonLease, Detail: "no pod uses it"})
	}
	if len(chain) == 0 {
		return nil
	}
	return []action.Chain{chain}
}

// ownLease returns the actions that make this object the owner of the Lease and of the rights on it. An earlier
// object of the same name has left them to its pods.
func ownLease(f *facts.Facts) []action.Chain {
	return withOwners(f, children.BuildLease(f.Object).OwnerReferences, "")
}

// keepLeaseForPods returns the actions that keep the Lease, and the rights on it, while leased pods exist,
// although the object ends. Without the Lease the running program would end.
func keepLeaseForPods(f *facts.Facts) []action.Chain {
	var owners []metav1.OwnerReference
	for _, m := range f.Pods {
		if m.Leased && !podstate.Ended(m.Pod) {
			owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: m.Name(), UID: m.Pod.UID})
		}
	}
	if len(owners) == 0 {
		return nil // the garbage collector deletes them
	}
	return withOwners(f, owners, "its pods still use it")
}

// freeLease returns the write that removes a pod from the Lease that no longer runs, so that the next pod need not
// wait until the Lease expires.
func freeLease(f *facts.Facts, m *facts.Member) action.Action {
	lease := f.Lease.DeepCopy()
	lease.Spec.HolderIdentity = nil
	delete(lease.Annotations, v1.AnnotationNext)
	return action.Action{Verb: action.Patch, Object: lease, From: f.Lease, Unchanged: true, Reason: ReasonLease, Detail: m.Name() + " does not run"}
}

// assignLease returns the write of the Lease in a grant. A leased pod becomes its holder. Any other pod starts by its
// annotation, and the Lease gets no holder. The write is bound to the Lease that was read.
func assignLease(f *facts.Facts, m *facts.Member, epoch int64) action.Action {
	lease := f.Lease.DeepCopy()
	now, reason := metav1.NewMicroTime(f.Now), ReasonLease
	lease.Spec.HolderIdentity = nil
	if m.Leased {
		reason = ReasonAssign
		lease.Spec.HolderIdentity = ptr.To(fencing.Identity(m.Pod))
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(children.LeaseDuration(m.Pod).Seconds()))
	}
	lease.Spec.LeaseTransitions = ptr.To(int32(epoch))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	delete(lease.Annotations, v1.AnnotationNext)
	return action.Action{Verb: action.Patch, Object: lease, From: f.Lease, Unchanged: true, Reason: reason,
		Detail: fmt.Sprintf("%s, epoch %d", m.Name(), epoch), Verify: fencing.SameHolder(lease)}
}

// nameSuccessor names the pod to which the agent of the holder hands the Lease when its program has ended, so that
// the next program starts without the operator. No other pod may be running then. Otherwise no successor is named.
func nameSuccessor(f *facts.Facts, p *Plan) {
	if f.Lease == nil || leaseHolder(f.Blockers) == nil {
		return // a grant removes the successor
	}
	var chain action.Chain
	want, detail := "", "none"
	if next := successor(f); next != nil {
		want = fencing.Identity(next.Pod)
		detail = want
		if holder := f.Blockers[0]; holder.CrashLoops && !holder.CrashLooped() {
			chain = append(chain, markCrashLoop(holder, next))
		}
	}
	if f.Lease.Annotations[v1.AnnotationNext] != want {
		lease := f.Lease.DeepCopy()
		delete(lease.Annotations, v1.AnnotationNext)
		if want != "" {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1.AnnotationNext, want)
		}
		chain = append(chain, action.Action{Verb: action.Patch, Object: lease, From: f.Lease, Unchanged: true, Reason: reasonNext, Detail: detail})
	}
	if len(chain) > 0 {
		p.Do(chain)
	}
}

// markCrashLoop returns the write that records on a pod that another one takes over from its crash loop. It precedes
// the handover, so that the pod does not get its turn back for the crash loop of the other one.
func markCrashLoop(m, next *facts.Member) action.Action {
	pod := m.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationCrashLooped, string(pod.UID))
	return action.Action{Verb: action.Patch, Object: pod, From: m.Pod, Reason: ReasonCrashLoop, Verify: isMarked,
		Detail: fmt.Sprintf("its program ends again and again, and pod %s takes over", next.Name())}
}

// isMarked returns an error if an admission webhook has removed the mark.
func isMarked(answer metav1.Object) error {
	if pod, ok := answer.(*corev1.Pod); !ok || !(&facts.Member{Pod: pod}).CrashLooped() {
		return fmt.Errorf("annotation %s of pod %s was removed", v1.AnnotationCrashLooped, answer.GetName())
	}
	return nil
}

// successor returns the pod that takes over from the holder of the Lease; nil if there is none, or if the holder
// does not have to stop. The program of a pod in a crash loop is not stopped: it ends by itself.
func successor(f *facts.Facts) *facts.Member {
	if len(f.Blockers) != 1 || len(f.Waiting) == 0 || !f.Grants() {
		return nil
	}
	if !handsOver(f, f.Blockers[0]) {
		return nil
	}
	next, _ := Next(f)
	if next == nil || !next.Leased || !next.AtGate() {
		return nil
	}
	return next
}

// handsOver reports whether the agent of a blocker hands the Lease over when its program has ended.
func handsOver(f *facts.Facts, m *facts.Member) bool {
	return m.HoldsLease && (m.CrashLoops || f.HasToGo(m))
}

// replaceFenced deletes the pod that has not renewed the Lease in time if no other pod waits, so that its owner
// creates another one.
func replaceFenced(f *facts.Facts, p *Plan) {
	if !f.Grants() || len(f.Waiting) > 0 {
		return
	}
	p.Do(deletions(f.Pods, reasonExpired, "it has not renewed the Lease for "+f.LeaseDuration().String(), func(m *facts.Member) bool {
		return m.Fenced && m.Lives() && !m.CrashLoops
	})...)
}
