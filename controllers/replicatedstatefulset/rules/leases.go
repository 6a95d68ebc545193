package rules

import (
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The writes of the Leases of members. All are bound to the Lease that was read. Decision 0052 has the model.

// usesLeases reports whether Leases are maintained and written.
func usesLeases(f *facts.Facts) bool {
	return f.ManagesChildren() && f.Fencing.Leases != nil && f.Fencing.Problem.Message == ""
}

// keepLeases creates the Leases of members, and the rights of their pods on them, and deletes those that no member
// needs any more.
func keepLeases(f *facts.Facts, p *Plan) {
	if !usesLeases(f) || f.Deleting() {
		return // the garbage collector deletes them with the object
	}
	for _, m := range f.Members {
		if m.IsLeased() && f.LeaseOf(m) == nil && f.Fencing.Foreign[m.Name()] == nil {
			p.Do(action.Chain{createLease(f, m)})
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(f.Fencing.Leases)) {
		if lease := f.Fencing.Leases[pod]; isUnused(f, pod) {
			p.Do(action.Chain{{Verb: action.Delete, Object: lease, Reason: facts.ReasonLease, Detail: "no member uses it"}})
		}
	}
	keepLeaseRights(f, p)
}

// createLease returns the action that creates the Lease of a member. If a Lease of the member's grant is missing,
// the new one names the pod with its epoch: process 1 may still renew it.
func createLease(f *facts.Facts, m *facts.Member) action.Action {
	epoch, held := int64(0), false
	for _, g := range f.Record.Granted {
		if g.Pod == m.Name() && g.LeaseEpoch >= epoch {
			epoch, held = g.LeaseEpoch, g.UID == m.Pod.UID && g.LeaseEpoch > 0
		}
	}
	lease := children.BuildLease(f.Set, m.Pod, m.CommandsIn, epoch)
	if held {
		lease.Spec.HolderIdentity = ptr.To(fencing.Identity(m.Pod))
	}
	return action.Action{Verb: action.Create, Object: lease, Reason: facts.ReasonLease}
}

// isUnused reports whether no member needs the Lease of a pod.
func isUnused(f *facts.Facts, pod string) bool {
	if f.Record.GrantsName(pod) || f.StoresGrantOf(pod) {
		return false
	}
	if m := f.Named(pod); m != nil {
		return !m.IsLeased()
	}
	ordinal, _ := spec.OrdinalOf(f.Set, pod)
	return ordinal >= f.Wanted() || !f.WantsLeases()
}

// keepLeaseRights creates, repairs and deletes the Role and the RoleBinding.
func keepLeaseRights(f *facts.Facts, p *Plan) {
	if !f.Fencing.ReadRights {
		p.LooksLive = p.LooksLive || f.Fencing.RightsAreDue
		return
	}
	wanted := f.LeaseRights()
	role, binding := children.BuildLeaseRole(f.Set, wanted.Pods), children.BuildLeaseRoleBinding(f.Set, wanted.Accounts)
	isUsed := len(wanted.Pods) > 0
	haveRole, haveBinding := f.Fencing.Role, f.Fencing.RoleBinding
	if haveRole == nil {
		createRight(p, isUsed, action.Action{Object: role})
	} else {
		next := haveRole.DeepCopy()
		next.Rules = role.Rules
		keepRight(f, p, isUsed, action.Action{Object: next, From: haveRole})
	}
	switch {
	case haveBinding == nil:
		createRight(p, isUsed, action.Action{Object: binding})
	case isUsed && fencing.BindsAnotherRole(haveBinding):
		replaceBinding(f, p, binding)
	default:
		next := haveBinding.DeepCopy()
		next.Subjects = binding.Subjects
		keepRight(f, p, isUsed, action.Action{Object: next, From: haveBinding})
	}
}

// createRight creates a Role or a RoleBinding.
func createRight(p *Plan, wanted bool, a action.Action) {
	if wanted {
		a.Verb, a.Reason = action.Create, facts.ReasonLease
		p.Do(action.Chain{a})
	}
}

// replaceBinding replaces an own RoleBinding of another Role, because the API server does not allow to change its roleRef.
// Condition Degraded reports one of another owner.
func replaceBinding(f *facts.Facts, p *Plan, binding *rbacv1.RoleBinding) {
	if have := f.Fencing.RoleBinding; f.Ours(have) {
		p.Do(action.Chain{
			{Verb: action.Delete, Object: have, Reason: facts.ReasonLease, Detail: "it binds another Role"},
			{Verb: action.Create, Object: binding, Reason: facts.ReasonLease},
		})
	}
}

// keepRight repairs or deletes a Role or a RoleBinding. Condition Degraded reports one of another owner.
func keepRight(f *facts.Facts, p *Plan, wanted bool, a action.Action) {
	a.Verb, a.Unchanged, a.Reason = action.Patch, true, facts.ReasonLease
	switch {
	case !f.Ours(a.From):
	case wanted:
		patchChild(f, p, true, a)
	default:
		p.Do(action.Chain{{Verb: action.Delete, Object: a.From, Reason: facts.ReasonLease, Detail: "no member uses it"}})
	}
}

// assignLease returns the write by which the Lease of a member names its pod. No renewal has been made with this
// epoch yet.
func assignLease(f *facts.Facts, m *facts.Member, epoch int64) action.Action {
	have := f.LeaseOf(m)
	lease, now := have.DeepCopy(), metav1.NewMicroTime(f.Now)
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To(fencing.Identity(m.Pod)), ptr.To(int32(epoch))
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(m.LeaseDuration() / time.Second))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, nil
	return writeLease(have, lease, fmt.Sprintf("names %s, epoch %d", m.Name(), epoch))
}

// writeLease returns a write of a Lease, bound to the version that was read.
func writeLease(have, lease *coordinationv1.Lease, detail string) action.Action {
	return action.Action{Verb: action.Patch, Object: lease, From: have, Unchanged: true, Reason: facts.ReasonLease, Detail: detail,
		Verify: fencing.SameHolder(lease)}
}

// nameHolders writes the Leases of grants for which they were not written: this process, or another one, was
// interrupted, or the member was found running as primary.
func nameHolders(f *facts.Facts, p *Plan) {
	if !usesLeases(f) {
		return
	}
	for i := range f.Record.Granted {
		g := &f.Record.Granted[i]
		m := f.ByUID(g.UID)
		if m == nil || !m.IsLeased() || f.LeaseOf(m) == nil || !f.StoresGrant(g) {
			continue
		}
		if g.LeaseEpoch > fencing.EpochOf(f.LeaseOf(m)) {
			p.Do(action.Chain{assignLease(f, m, g.LeaseEpoch)})
		}
	}
}

// takeOverLeases removes pods from Leases that have not been renewed in time. Their members are not primary any
// more. If process 1 has renewed the Lease with its epoch, the container has ended.
func takeOverLeases(f *facts.Facts, p *Plan) {
	if !usesLeases(f) {
		return
	}
	for _, m := range f.Members {
		g := f.GrantThatExpires(m)
		if g == nil {
			continue
		}
		if !f.LeaseHasExpired(m) {
			p.lookAgainForLease(f, m)
			continue
		}
		have := f.LeaseOf(m)
		lease := have.DeepCopy()
		lease.Spec.HolderIdentity = nil
		if g.LeaseRenewed {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationFenced, g.ContainerID)
		}
		write := writeLease(have, lease, fmt.Sprintf("%s has not renewed it for %s", m.Name(), m.LeaseDuration()))
		write.Reason = facts.ReasonExpired
		p.Do(action.Chain{write})
	}
}

// lookAgainForLease requeues the set for the expiry of a Lease that has not been renewed for half of its duration. The
// watch of Leases announces it too, but can be broken.
func (p *Plan) lookAgainForLease(f *facts.Facts, m *facts.Member) {
	if left := f.LeaseExpiresIn(m); left < m.LeaseDuration()/2 {
		p.LookAgain(left)
	}
}

// releaseLeases removes pods from the Leases of members that are not primary, so that their process 1 stops
// renewing. The record was read after the Leases, so that no grant was added in between.
func releaseLeases(f *facts.Facts, p *Plan) {
	if !usesLeases(f) {
		return
	}
	for _, pod := range slices.Sorted(maps.Keys(f.Fencing.Leases)) {
		have := f.Fencing.Leases[pod]
		if fencing.HolderOf(have) == "" || f.Record.GrantsName(pod) || f.StoresGrantOf(pod) {
			continue
		}
		lease := have.DeepCopy()
		lease.Spec.HolderIdentity = nil
		p.Do(action.Chain{writeLease(have, lease, pod+" is not primary")})
	}
}

// writesLease reports whether the plan writes the Lease of a member already.
func (p *Plan) writesLease(m *facts.Member) bool {
	return slices.ContainsFunc(slices.Concat(p.Steps...), func(chain action.Chain) bool {
		return slices.ContainsFunc(chain, func(a action.Action) bool {
			_, isLease := a.Object.(*coordinationv1.Lease)
			return isLease && a.Object.GetName() == children.LeaseName(m.Name())
		})
	})
}

// whyNoLease states why a member cannot be started as primary now: its Lease, or the rights on it, do not exist, or
// this plan writes it.
func (p *Plan) whyNoLease(f *facts.Facts, m *facts.Member) string {
	if why := f.WhyNoLease(m); why != "" {
		return why
	}
	if m.IsLeased() && p.writesLease(m) {
		return "Lease " + children.LeaseName(m.Name()) + " is being released"
	}
	return ""
}
