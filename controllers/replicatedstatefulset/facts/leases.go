package facts

import (
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The Leases of members, as one more proof that a member is not primary. Decision 0052 has the model. Process 1 of
// a member renews its Lease while the Lease names its pod, and ends the container if it cannot. A start as primary
// begins only while process 1 renews the Lease of the epoch of its grant.

// fencingFacts are the Leases of a set, and the rights of its pods on them.
type fencingFacts struct {
	// Leases are those of the members, by the name of the pod. They were read from the API server before the
	// object. It is nil if they were not read. Foreign are those of other owners and clients. Since is when this
	// process first saw their current versions.
	Leases, Foreign map[string]*coordinationv1.Lease
	Since           map[string]time.Time
	// Role and RoleBinding are nil if they did not exist when they were last read. ReadRights is true if that was
	// now, so that they can be written, and RightsAreDue if they must be read.
	Role                     *rbacv1.Role
	RoleBinding              *rbacv1.RoleBinding
	ReadRights, RightsAreDue bool
	// Problem states why Leases are not used. It is empty if they are.
	Problem Notice
}

// LeaseDuration returns the duration of the Lease that process 1 of the member renews. It is 0 if the member has
// no Lease.
func (m *Member) LeaseDuration() time.Duration { return children.LeaseDuration(m.Pod, m.CommandsIn) }

// IsLeased reports whether the member has a Lease.
func (m *Member) IsLeased() bool { return m.LeaseDuration() > 0 }

// UsesLeases reports whether members have Leases, or new ones will.
func (w *World) UsesLeases() bool {
	switch {
	case w.WantsLeases(), slices.ContainsFunc(w.Members, (*Member).IsLeased):
		return true
	}
	return slices.ContainsFunc(w.Set.Status.Grants, func(g v1alpha1.Grant) bool { return g.LeaseEpoch > 0 })
}

// WantsLeases reports whether new pods have Leases.
func (w *World) WantsLeases() bool { return application.FencedByLease(w.Set) }

// StoresGrantOf reports whether the stored status has a grant of a pod of that name.
func (w *World) StoresGrantOf(pod string) bool {
	return slices.ContainsFunc(w.Set.Status.Grants, func(g v1alpha1.Grant) bool { return g.Pod == pod })
}

// StoresGrant reports whether the stored status has a grant with its epoch of the Lease.
func (w *World) StoresGrant(g *v1alpha1.Grant) bool {
	return slices.ContainsFunc(w.Set.Status.Grants, func(s v1alpha1.Grant) bool {
		return s.UID == g.UID && s.ContainerID == g.ContainerID && s.LeaseEpoch == g.LeaseEpoch
	})
}

// LeaseOf returns the Lease of a member. It returns nil if there is none.
func (w *World) LeaseOf(m *Member) *coordinationv1.Lease { return w.Fencing.Leases[m.Name()] }

// HoldsLease reports whether the Lease of the member names its pod.
func (w *World) HoldsLease(m *Member) bool {
	return fencing.HolderOf(w.LeaseOf(m)) == fencing.Identity(m.Pod)
}

// LeaseRights are the pods that may renew Leases, and their service accounts. Both are sorted.
type LeaseRights struct{ Pods, Accounts []string }

// LeaseRights returns the rights of the pods that have Leases, or will have.
func (w *World) LeaseRights() LeaseRights {
	pods, accounts := map[string]bool{}, map[string]bool{}
	for _, m := range w.Members {
		if m.IsLeased() {
			pods[m.Name()], accounts[fencing.AccountOf(&m.Pod.Spec)] = true, true
		}
	}
	if w.WantsLeases() {
		for name := range w.WantedNames() {
			pods[name] = true
		}
		if w.HasStatefulSet() {
			accounts[fencing.AccountOf(&w.Stateful.Spec.Template.Spec)] = true
		}
	}
	return LeaseRights{slices.Sorted(maps.Keys(pods)), slices.Sorted(maps.Keys(accounts))}
}

// NeedsRightsSoon reports whether a member is about to start as primary, or does not renew its Lease. A reason can be
// that another client has changed the rights.
func (w *World) NeedsRightsSoon() bool {
	if len(w.Set.Status.Grants) < w.WantedPrimaries() {
		return true
	}
	return slices.ContainsFunc(w.Members, func(m *Member) bool {
		return m.IsLeased() && w.HoldsLease(m) && w.LeaseExpiresIn(m) < m.LeaseDuration()/2
	})
}

// LeaseExpiresIn returns the time until the Lease of a member has expired, if it is not renewed.
func (w *World) LeaseExpiresIn(m *Member) time.Duration {
	return w.Watch.Deadline(w.Fencing.Since[m.Name()], m.LeaseDuration()).Sub(w.Now)
}

// LeaseHasExpired reports whether the Lease of a member has not changed for its duration. Time in which this process
// could not observe the cluster does not count.
func (w *World) LeaseHasExpired(m *Member) bool {
	since, seen := w.Fencing.Since[m.Name()]
	return seen && m.IsLeased() && w.Watch.Elapsed(since, w.Now) >= m.LeaseDuration()
}

// GrantThatExpires returns the grant of a member that ends when its Lease has not been renewed for its duration: process
// 1 has renewed the Lease with the epoch of the grant, or the start has not begun. It returns nil if there is none. A
// member that was found running as primary may run without the Lease until process 1 has renewed it.
func (f *Facts) GrantThatExpires(m *Member) *v1alpha1.Grant {
	if f.Fencing.Problem.Message != "" || !m.IsLeased() || !f.HoldsLease(m) {
		return nil
	}
	var found *v1alpha1.Grant
	for i := range f.Record.Granted {
		g := &f.Record.Granted[i]
		mayBegin := g.LeaseRenewed || !g.Confirmed
		if g.UID != m.Pod.UID || g.LeaseEpoch != fencing.EpochOf(f.LeaseOf(m)) || !mayBegin {
			continue
		}
		if found == nil || g.ContainerID == m.Running() {
			found = g
		}
	}
	return found
}

// IsFrozen reports whether the container of a member counts as ended with its Lease, and a kubelet that responds has
// reported for FencedFor that it runs.
func (w *World) IsFrozen(m *Member) bool {
	if m.FencedSince.IsZero() || m.Terminating() || m.NodeUnreachable() || m.WhyForeign != "" {
		return false
	}
	return w.Watch.Elapsed(m.FencedSince, w.Now) >= spec.FencedFor
}

// WhyNoLease states why a member cannot be started as primary now: its Lease, or the rights on it, do not exist, or
// may not be used. It is "" if it can.
func (w *World) WhyNoLease(m *Member) string {
	x := &w.Fencing
	isMissing := x.Role == nil || x.RoleBinding == nil
	switch {
	case !m.IsLeased():
		return ""
	case x.Problem.Message != "":
		return x.Problem.Message
	case x.Foreign[m.Name()] != nil:
		return "Lease " + children.LeaseName(m.Name()) + " does not belong to the set"
	case fencing.EpochOf(w.LeaseOf(m)) >= fencing.MaxEpoch: // a new container cannot begin a start of an earlier one
		return fmt.Sprintf("Lease %[1]s has reached the highest epoch; delete the pod, and then the Lease: kubectl -n %[2]s delete pod %[3]s && kubectl -n %[2]s delete lease %[1]s",
			children.LeaseName(m.Name()), w.Set.Namespace, m.Name())
	case w.LeaseOf(m) == nil:
		return "Lease " + children.LeaseName(m.Name()) + " does not exist yet"
	case x.ReadRights && isMissing:
		return "Role and RoleBinding " + children.RightsName(w.Set) + " do not exist yet"
	}
	return ""
}

// leases returns the Leases as the record depends on them. It returns nil if they were not read.
func (w *World) leases() map[string]record.Lease {
	if w.Fencing.Leases == nil {
		return nil
	}
	all := map[string]record.Lease{}
	for pod, lease := range w.Fencing.Leases {
		all[pod] = record.Lease{Epoch: fencing.EpochOf(lease), Holder: fencing.HolderOf(lease), Renewed: lease.Spec.RenewTime != nil}
	}
	return all
}
