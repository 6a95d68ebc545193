package record

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// updateMaintenance updates the states of the members of spec.maintenance.
func (r *Record) updateMaintenance(o *Observed) {
	if o.Invalid {
		return
	}
	before := r.Maintenance
	r.Maintenance = nil
	for _, pod := range spec.Maintained(o.Set) {
		i := slices.IndexFunc(before, func(x v1alpha1.MemberMaintenance) bool { return x.Pod == pod })
		now := v1alpha1.MemberMaintenance{Pod: pod}
		if i >= 0 {
			now = before[i]
		}
		if is := r.maintenanceState(o, pod, now.State); is != now.State {
			now.State, now.Since = is, metav1.NewTime(o.Now)
			r.reportParked(now)
		}
		r.Maintenance = append(r.Maintenance, now)
	}
	for _, x := range before {
		if x.State == v1alpha1.MaintenanceParked && r.MaintenanceOf(x.Pod).State != x.State {
			r.addEvent(v1alpha1.EventMemberUnparked, "%s is no longer parked", x.Pod)
		}
	}
}

// maintenanceState returns the maintenance state of a member of spec.maintenance. was is its
// previous state.
func (r *Record) maintenanceState(o *Observed, pod string, was v1alpha1.MaintenanceState) v1alpha1.MaintenanceState {
	switch {
	case r.GrantsName(pod):
		return v1alpha1.MaintenanceHandingOver
	case was == v1alpha1.MaintenanceHandingOver && !r.rolesAreFilled(o):
		return v1alpha1.MaintenanceHandingOver // it may still have the newest copy
	case r.runsIn(pod):
		return v1alpha1.MaintenanceWaiting
	}
	return v1alpha1.MaintenanceParked
}

// rolesAreFilled reports whether the other members have all primary roles that members can take
// over. If no members follow the primaries, all primaries have the same data, and one is enough.
func (r *Record) rolesAreFilled(o *Observed) bool {
	need := o.WantedPrimaries
	if !spec.HasFollowers(o.Set, o.Wanted, o.WantedPrimaries) {
		need = min(need, 1)
	}
	filled := 0
	for i := range o.Members {
		m := &o.Members[i]
		if r.stateOf(o, m) == Primary && !m.Terminating && !spec.IsListed(o.Set, m.Name) {
			filled++
		}
	}
	return filled >= need
}

// reportParked adds an event if the member is parked now.
func (r *Record) reportParked(now v1alpha1.MemberMaintenance) {
	if now.State == v1alpha1.MaintenanceParked {
		r.addEvent(v1alpha1.EventMemberParked, "%s is parked, as spec.maintenance requires", now.Pod)
	}
}

// MaintenanceOf returns the maintenance state of a member. It is empty if the member is not in
// spec.maintenance.
func (r *Record) MaintenanceOf(pod string) v1alpha1.MemberMaintenance {
	for _, x := range r.Maintenance {
		if x.Pod == pod {
			return x
		}
	}
	return v1alpha1.MemberMaintenance{}
}

// runsIn reports whether a command in a pod of that name is on record, and so may still run.
func (r *Record) runsIn(pod string) bool {
	return slices.ContainsFunc(r.Commands, func(c v1alpha1.RunningCommand) bool { return c.Pod == pod })
}
