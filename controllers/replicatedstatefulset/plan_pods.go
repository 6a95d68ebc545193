package replicatedstatefulset

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// keepLabels restores the labels that select a pod. Without them the StatefulSet controller
// releases the pod, but no other pod can have its name.
func keepLabels(f *facts, p *plan) {
	if !f.keeps() {
		return
	}
	for _, m := range f.members {
		labels := merged(m.pod.Labels, ownLabels(f.set))
		if maps.Equal(labels, m.pod.Labels) {
			continue
		}
		pod := m.pod.DeepCopy()
		pod.Labels = labels
		mend(f, p, false, action.Action{
			Verb:   action.Patch,
			Object: pod,
			From:   m.pod,
			Reason: reasonChild,
			Detail: "its labels",
		})
	}
}

// showRoles updates the role labels of the pods.
func showRoles(f *facts, p *plan) {
	for _, m := range f.members {
		if !isRelabelled(f, m) {
			continue
		}
		active, role := roleOf(m)
		if patch := label(m, active, role); len(patch) > 0 {
			p.Do(patch)
		}
	}
}

// isRelabelled reports whether the labels of a pod follow its member's role in this pass.
func isRelabelled(f *facts, m *member) bool { return !f.namespaceGoes && !f.keepsLabels(m) }

// becomesLabelled reports whether showRoles labels a member primary in this pass.
func becomesLabelled(f *facts, m *member) bool {
	_, role := roleOf(m)
	return isRelabelled(f, m) && role == v1alpha1.RolePrimary && m.pod.Labels[v1alpha1.LabelRole] != role
}

// roleOf returns the label values of a pod. Strangers, whatever their labels, and parked members
// receive no client traffic.
func roleOf(m *member) (active, role string) {
	switch {
	case m.stranger != "", m.parked:
		return v1alpha1.False, v1alpha1.RoleNone
	case m.state == primary:
		return v1alpha1.True, v1alpha1.RolePrimary
	case m.state == secondary:
		return v1alpha1.True, v1alpha1.RoleSecondary
	}
	return v1alpha1.False, v1alpha1.RoleNone
}

// keepsLabels reports whether the labels of a pod stay. They stay while the member's state is
// unknown, unless they refer to a previous container.
func (f *facts) keepsLabels(m *member) bool {
	switch {
	case m.stranger != "", m.parked:
		return false
	case m.resists() && m.state != failed && f.shouldGo(m):
		return true // its labels were changed for the stop, which is retried
	case m.state != unknown:
		return false
	case m.command != nil, m.lost():
		return true // labels are set before a stop is sent, and after a start
	case m.pod.Labels[v1alpha1.LabelActive] == "":
		return false
	}
	return m.grantedHere || m.pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary
}

// shouldGo reports whether a running member should stop or be demoted.
func (f *facts) shouldGo(m *member) bool {
	if m.leaves || m.terminating() || !m.upToDate {
		return true
	}
	return m.state == primary && len(f.primaries()) > f.target()
}

// label returns the patch of a pod's labels. It returns nothing if they are correct. The patch that
// sends clients to a primary is bound to the version that was read: if the operator freezes, it can
// arrive late, after the member was demoted.
func label(m *member, active, role string) action.Chain {
	pod := m.pod.DeepCopy()
	pod.Labels = merged(
		pod.Labels,
		map[string]string{v1alpha1.LabelActive: active, v1alpha1.LabelRole: role},
	)
	if maps.Equal(pod.Labels, m.pod.Labels) {
		return nil
	}
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      m.pod,
		Unchanged: role == v1alpha1.RolePrimary,
		Reason:    reasonRole,
		Detail:    role,
	}}
}

// protect adds the finalizer to pods before anything is started in them, so that a force-deleted
// pod stays visible until it has stopped.
func protect(f *facts, p *plan) {
	if !f.keeps() || f.deleting() || !exclusive(f.set) {
		return
	}
	for _, m := range f.among(lacksFinalizer) {
		pod := m.pod.DeepCopy()
		controllerutil.AddFinalizer(pod, v1alpha1.FinalizerMember)
		p.Do(action.Chain{{
			Verb:      action.Patch,
			Object:    pod,
			From:      m.pod,
			Unchanged: true,
			Reason:    reasonProtect,
		}})
	}
}

// lacksFinalizer reports whether the pod of a member needs the finalizer.
func lacksFinalizer(m *member) bool {
	return !m.protected() && !m.terminating() && m.stranger == ""
}

// release removes the finalizer from terminating pods that have stopped and are not on record.
func release(f *facts, p *plan) {
	for _, m := range f.members {
		if m.terminating() && m.protected() && isReleasable(m) {
			p.Do(action.Chain{unprotect(m)})
		}
	}
}

// isReleasable reports whether a terminating pod no longer needs the finalizer.
func isReleasable(m *member) bool {
	return !m.written && !mayStillRun(m)
}

// mayStillRun reports whether a pod may have running containers.
func mayStillRun(m *member) bool {
	ran := m.pod.Labels[v1alpha1.LabelActive] == v1alpha1.True
	return !m.fenced && !podstate.Stopped(m.pod, ran)
}

// isStored reports whether the pod is in the stored status.
func (w *world) isStored(m *member) bool {
	if commandOf(w.set.Status.Commands, m.pod.UID) != nil {
		return true
	}
	return slices.ContainsFunc(
		w.set.Status.Grants,
		func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID },
	)
}

func unprotect(m *member) action.Action {
	pod := m.pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1alpha1.FinalizerMember)
	return action.Action{
		Verb:      action.Patch,
		Object:    pod,
		From:      m.pod,
		Unchanged: true,
		Reason:    reasonRelease,
	}
}

// deleteFenced deletes pods whose machine is off, because their kubelet would start them again. The
// control plane does the same, except for pods that tolerate the taint.
func deleteFenced(f *facts, p *plan) {
	if f.invalid != "" {
		return
	}
	for _, m := range f.members {
		if m.poweredOff && !m.terminating() && m.stranger == "" {
			p.Do(remove(m, reasonFenced, "its Node "+m.pod.Spec.NodeName+" is out of service"))
		}
	}
}
