package rules

import (
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// restoreLabels restores the labels by which the StatefulSet and the Services select all members.
// Without them the StatefulSet controller releases the pod, and cannot replace it, because no other
// pod can have its name. updateRoleLabels updates the labels that depend on the role.
func restoreLabels(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() {
		return
	}
	own := spec.OwnLabels(f.Set)
	for _, m := range f.Members {
		if hasLabels(m, own) {
			continue
		}
		pod := m.Pod.DeepCopy()
		pod.Labels = spec.Merged(m.Pod.Labels, own)
		patchChild(f, p, false, action.Action{
			Verb:   action.Patch,
			Object: pod,
			From:   m.Pod,
			Reason: facts.ReasonChild,
			Detail: "its labels",
		})
	}
}

// hasLabels reports whether the pod of a member has all these labels.
func hasLabels(m *facts.Member, labels map[string]string) bool {
	for label, value := range labels {
		if have, exists := m.Pod.Labels[label]; !exists || have != value {
			return false
		}
	}
	return true
}

// updateRoleLabels updates the role labels of the pods.
func updateRoleLabels(f *facts.Facts, p *Plan) {
	for _, m := range f.Members {
		if !isRelabelled(f, m) {
			continue
		}
		active, role := roleLabelsOf(m)
		if patch := label(m, active, role); len(patch) > 0 {
			p.Do(patch)
		}
	}
}

// isRelabelled reports whether the labels of a pod follow its member's role in this pass.
func isRelabelled(f *facts.Facts, m *facts.Member) bool {
	return !f.NamespaceTerminating && !roleLabelsStay(f, m)
}

// becomesLabelled reports whether updateRoleLabels labels a member primary in this pass.
func becomesLabelled(f *facts.Facts, m *facts.Member) bool {
	_, role := roleLabelsOf(m)
	return isRelabelled(f, m) && role == v1alpha1.RolePrimary && m.Pod.Labels[v1alpha1.LabelRole] != role
}

// roleLabelsOf returns the label values of a pod. Strangers, whatever their labels, parked members and
// members that have left the application receive no client traffic.
func roleLabelsOf(m *facts.Member) (active, role string) {
	switch {
	case m.WhyForeign != "", m.Parked, mayHaveLeft(m):
		return v1alpha1.False, v1alpha1.RoleNone
	case m.State == record.Primary:
		return v1alpha1.True, v1alpha1.RolePrimary
	case m.State == record.Secondary:
		return v1alpha1.True, v1alpha1.RoleSecondary
	}
	return v1alpha1.False, v1alpha1.RoleNone
}

// mayHaveLeft reports whether the application may have forgotten the member. A primary that is not
// removed keeps its clients until it is stopped, because it may be the only one.
func mayHaveLeft(m *facts.Member) bool {
	if m.MustRejoin && m.State == record.Primary {
		return false
	}
	return m.Membership.State == v1alpha1.MembershipLeaving || m.Membership.State == v1alpha1.MembershipLeft
}

// roleLabelsStay reports whether the role labels of a pod stay unchanged. They stay while the
// member's state is unknown, unless they are those of a primary in a previous container.
func roleLabelsStay(f *facts.Facts, m *facts.Member) bool {
	switch {
	case m.WhyForeign != "", m.Parked:
		return false
	case m.RefusesToStepDown() && m.State != record.Failed && shouldStepDown(f, m):
		return true // its labels were changed for the stop, which is retried
	case m.State != record.Unknown:
		return false
	case m.Command != nil, m.NodeUnreachable():
		return true // labels are set before a stop is sent, and after a start
	case m.Pod.Labels[v1alpha1.LabelActive] == "":
		return false
	}
	return m.GrantedHere || m.Pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary
}

// shouldStepDown reports whether a running member should stop or be demoted.
func shouldStepDown(f *facts.Facts, m *facts.Member) bool {
	if m.ScaledDown || m.MustRejoin || m.Terminating() || !m.UpToDate {
		return true
	}
	return m.State == record.Primary && len(f.Primaries()) > f.WantedPrimaries()
}

// label returns the patch of a pod's labels. It returns nothing if they are correct. The patch that
// sends clients to a primary is bound to the version that was read: if the operator freezes, it can
// arrive late, after the member was demoted.
func label(m *facts.Member, active, role string) action.Chain {
	labels := map[string]string{v1alpha1.LabelActive: active, v1alpha1.LabelRole: role}
	if hasLabels(m, labels) {
		return nil
	}
	pod := m.Pod.DeepCopy()
	pod.Labels = spec.Merged(pod.Labels, labels)
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      m.Pod,
		Unchanged: role == v1alpha1.RolePrimary,
		Reason:    facts.ReasonRole,
		Detail:    role,
	}}
}

// addPodFinalizers adds the finalizer to pods before anything is started in them, so that a
// force-deleted pod stays visible until it has stopped.
func addPodFinalizers(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() || f.Deleting() || !spec.NeedsFinalizer(f.Set) {
		return
	}
	for _, m := range f.Among(lacksFinalizer) {
		pod := m.Pod.DeepCopy()
		controllerutil.AddFinalizer(pod, v1alpha1.FinalizerMember)
		p.Do(action.Chain{{
			Verb:      action.Patch,
			Object:    pod,
			From:      m.Pod,
			Unchanged: true,
			Reason:    facts.ReasonProtect,
		}})
	}
}

// lacksFinalizer reports whether the pod of a member needs the finalizer.
func lacksFinalizer(m *facts.Member) bool {
	return !m.Protected() && !m.Terminating() && m.WhyForeign == ""
}

// removePodFinalizers removes the finalizer from terminating pods that have stopped and are not on
// record.
func removePodFinalizers(f *facts.Facts, p *Plan) {
	for _, m := range f.Members {
		if m.Terminating() && m.Protected() && isReleasable(m) {
			p.Do(action.Chain{Unprotect(m)})
		}
	}
}

// isReleasable reports whether a terminating pod no longer needs the finalizer.
func isReleasable(m *facts.Member) bool {
	return !m.OnRecord && !mayStillRun(m)
}

// mayStillRun reports whether a pod may have running containers. If the pod had a role, a missing
// report of the kubelet is no proof that nothing runs.
func mayStillRun(m *facts.Member) bool {
	ran := m.Pod.Labels[v1alpha1.LabelActive] == v1alpha1.True
	return !m.Fenced && !podstate.Stopped(m.Pod, ran)
}

// Unprotect returns the action that removes our finalizer from a pod.
func Unprotect(m *facts.Member) action.Action {
	pod := m.Pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1alpha1.FinalizerMember)
	return action.Action{
		Verb:      action.Patch,
		Object:    pod,
		From:      m.Pod,
		Unchanged: true,
		Reason:    facts.ReasonRelease,
	}
}

// deleteFenced deletes pods whose machine is off, because their kubelet would start them again, and those that are
// frozen. The
// control plane does the same, except for pods that tolerate the taint.
func deleteFenced(f *facts.Facts, p *Plan) {
	if f.Invalid != "" {
		return
	}
	for _, m := range f.Members {
		if m.PoweredOff && !m.Terminating() && m.WhyForeign == "" {
			p.Do(deletePod(m, facts.ReasonFenced, "its Node "+m.Pod.Spec.NodeName+" is out of service"))
		}
		if f.IsFrozen(m) {
			p.Do(deletePod(m, facts.ReasonFenced, "it did not renew its Lease, and the kubelet still reports that it runs"))
		}
	}
}

// removeLabels removes the operator's labels from pods that are not members.
//
// Services and PodDisruptionBudgets select pods by labels, and any user who may create pods can set
// these labels. A pod that is not a member but has the primary label would receive client writes,
// and a budget that counts it would allow the eviction of the primary. So the labels are removed
// from it.
func removeLabels(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() || f.Deleting() {
		return
	}
	for _, pod := range f.MislabeledPods {
		p.Do(action.RemoveLabels(pod, spec.OwnPodLabels, facts.ReasonForeign, "it is not a member"))
	}
}
