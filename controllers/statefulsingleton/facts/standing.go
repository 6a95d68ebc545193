package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// verdictOf returns the part of a member that follows from the world.
func (w *World) verdictOf(m *Member) verdict {
	return verdict{
		Standing:   w.standingOf(m),
		Holder:     w.isHolder(m),
		HoldsLease: w.holdsLease(m),
		Fenced:     w.fencedByLease(m),
		CrashLoops: w.crashLoops(m),
		Tried:      w.handsOverCrashLoops() && m.CrashLooped(),
		Replaced:   wasReplaced(w, m),
		PoweredOff: w.isPoweredOff(m),
		GateSteady: m.AtGate() && w.Since(m.AtGateSince) >= spec.GateSteadyAfter,
	}
}

// activeOf returns the holder if it is a blocker, else the oldest blocker.
func activeOf(blockers []*Member) *Member {
	for _, m := range blockers {
		if m.Holder {
			return m
		}
	}
	if len(blockers) > 0 {
		return blockers[0]
	}
	return nil
}

// standingOf returns the state of a pod.
func (w *World) standingOf(m *Member) standing {
	switch {
	case w.MayRun(m):
		return mayRun
	case w.fencedByLease(m):
		return Out
	case m.Gated && m.Lives():
		return waits
	}
	return Out
}

// MayRun reports whether the pod may be running its program, or may start it at any time.
func (w *World) MayRun(m *Member) bool {
	switch {
	case podstate.Stopped(m.Pod, m.Protected() || w.holdsLease(m)):
		return false
	case w.isFenced(m):
		return false
	case m.Leased && !m.Granted(): // the finalizer proves nothing, because the Lease decides
		return w.agentMayRun(m) || w.isPending(m)
	case m.Granted(), m.protectedForItself():
		return true
	case m.Gated:
		// The pod is named in status.holder, and its grant is pending. A terminating pod
		// can no longer be granted, because the API server rejects the patch. An ended pod
		// can neither, because its resourceVersion has changed.
		return w.isHolder(m) && m.Lives()
	}
	return !w.isAfterObject(m)
}

// agentMayRun reports whether the agent of a pod may be running the program.
func (w *World) agentMayRun(m *Member) bool {
	switch {
	case w.LeaseProblem.Message != "":
		return true
	case w.holdsLease(m):
		return !w.fencedByLease(m)
	case !w.leaseIsUnknown(), w.LeaseExpired():
		return false
	}
	return w.Object == nil || w.leaseWasUsed() || !w.MadeUnder(m)
}

// fencedByLease reports whether the holder of the Lease can no longer run. While its container restarts on a
// Ready Node, nothing renews the Lease, and the pod keeps its turn, unless another one takes over from crash loops.
func (w *World) fencedByLease(m *Member) bool {
	if !w.holdsLease(m) || !w.LeaseExpired() {
		return false
	}
	if m.CrashLooped() && m.isStuck() && w.crashLoops(m) {
		return true
	}
	return w.hasRunFor(m, w.LeaseDuration()) || !m.Node.Ready
}

// hasRunFor reports whether the agent of a pod has been running for that long. A container that has just started has
// had no time to renew the Lease.
func (w *World) hasRunFor(m *Member, d time.Duration) bool {
	since := m.RunsSince()
	return !since.IsZero() && w.Now.Sub(since) >= d
}

// handsOverCrashLoops reports whether another pod takes over from one whose program ends again and again.
func (w *World) handsOverCrashLoops() bool {
	return w.Object != nil && spec.HandsOverCrashLoops(w.Object)
}

// crashLoops reports whether the program of the holder of the Lease ends again and again, and a waiting pod can take
// over. A pod whose program was in a crash loop itself does not, so that broken pods do not pass the turn to and fro.
// The container of the old pod restarts, and its agent waits for the Lease.
func (w *World) crashLoops(m *Member) bool {
	return w.InCrashLoop(m) && w.Grants() && slices.ContainsFunc(w.Pods, w.takesOverCrashLoop)
}

// InCrashLoop reports whether the program of the holder of the Lease ends again and again, and another pod may take
// over. A crash loop begins when the kubelet pauses before a restart, and ends when the program has run for so long that
// the kubelet would not pause any more.
func (w *World) InCrashLoop(m *Member) bool {
	if !w.handsOverCrashLoops() || !w.holdsLease(m) || !m.Lives() {
		return false
	}
	if m.CrashLooped() {
		return !w.hasRunFor(m, spec.BackOffReset)
	}
	return m.isInBackOff()
}

// takesOverCrashLoop reports whether a waiting pod could start its program at once, and was not in a crash loop.
func (w *World) takesOverCrashLoop(m *Member) bool {
	waits := m.Gated && m.Leased && m.Lives() && !w.holdsLease(m)
	return waits && m.AtGate() && m.Eligible() && !m.CrashLooped()
}

// isPending reports whether status.holder names a leased pod, and the Lease has not been written for it.
func (w *World) isPending(m *Member) bool {
	return w.isHolder(m) && m.Lives() && w.LeaseEpoch() < w.Object.Status.Holder.Epoch
}

// LeaseExpired reports whether the Lease has not changed for its duration. No program of an agent runs then,
// and each write that is bound to this version of the Lease is safe.
func (w *World) LeaseExpired() bool {
	if w.LeaseProblem.Message != "" || w.LeaseSince.IsZero() {
		return false
	}
	return w.Since(w.LeaseSince) >= w.LeaseDuration()
}

// NotRenewed returns the pod that the Lease names and whose agent cannot renew it: it has ended the program, or is
// about to, or has not started it. It returns nil if there is none. While a container restarts after another end,
// nothing renews the Lease. On a Node that is not Ready, the Node is the cause.
func (f *Facts) NotRenewed() *Member {
	if !f.isUnchangedFor(f.EndsAfter()) {
		return nil
	}
	i := slices.IndexFunc(f.Pods, func(m *Member) bool {
		if !m.HoldsLease || !m.Lives() || !m.Node.Ready {
			return false
		}
		return f.hasRunFor(m, f.EndsAfter()) || slices.ContainsFunc(m.programStatuses(), endedByAgent)
	})
	if i < 0 {
		return nil
	}
	return f.Pods[i]
}

// isUnchangedFor reports whether the Lease has a holder and has not changed for that long.
func (w *World) isUnchangedFor(d time.Duration) bool {
	if w.LeaseProblem.Message != "" || w.leaseHolder() == "" || w.LeaseSince.IsZero() {
		return false
	}
	return w.Since(w.LeaseSince) >= d
}

// NeedsGrant reports whether the pod cannot start its program before it gets a grant.
func (w *World) NeedsGrant(m *Member) bool {
	if m.Leased { // the Lease may name it meanwhile
		return false
	}
	return m.Gated && !m.Granted() && !m.protectedForItself() && !w.isHolder(m)
}

// isHolder reports whether status.holder names the pod.
func (w *World) isHolder(m *Member) bool {
	if w.Object == nil || w.Object.Status.Holder == nil {
		return false
	}
	return w.Object.Status.Holder.UID == m.Pod.UID
}

// isFenced reports whether the pod can no longer run: its machine is off, and the pod was
// deleted or has ended, so that it does not start when the machine is switched on again.
func (w *World) isFenced(m *Member) bool {
	return w.isPoweredOff(m) && !m.Lives()
}

// isPoweredOff reports whether the machine of the pod is off, as stated by an
// administrator: its Node has the out-of-service taint, or was deleted. The taint is
// removed only after the machine is on again, so it is ignored on a Ready Node.
func (w *World) isPoweredOff(m *Member) bool {
	if m.Node.OutOfService && !m.Node.Ready {
		return true
	}
	return m.Node.Missing && w.Since(m.Node.MissingSince) >= spec.FenceAfter
}

// isAfterObject reports whether the pod may have been created after the operator had
// finished the deletion of its object, while the finalizer of another client still keeps the
// object. The guarantee does not cover such a pod.
func (w *World) isAfterObject(m *Member) bool {
	if w.Object == nil || spec.HoldsNewPods(w.Object) {
		return false
	}
	return w.Object.DeletionTimestamp.Before(&m.Pod.CreationTimestamp)
}

// MadeUnder reports whether the pod was created while this object existed: it has the gate,
// and the webhook recorded the object's UID in it. Any other pod is older than the object or
// bypassed the webhook, and is not deleted for this object. Labels and creation times are no
// proof.
func (w *World) MadeUnder(m *Member) bool {
	return m.Gated && m.Pod.Annotations[v1.AnnotationSingletonUID] == string(w.Object.UID)
}

// IsAlsoOfAnother reports whether another object with an overlapping selector also selects
// the pod.
func (w *World) IsAlsoOfAnother(m *Member) bool {
	return slices.ContainsFunc(w.Rivals, func(s *v1.StatefulSingleton) bool { return spec.Selects(s, spec.LabelsOf(m.Pod)) })
}

// passedGate reports whether the kubelet's status shows that the program of a pod passed the
// gate without a grant. Our gate does not allow that, so this gate is not ours, or was
// modified. Only behavior that our gate never shows before the grant is detected: it exits
// successfully, or its startup probe succeeds.
func (m *Member) passedGate() bool {
	if m.Granted() || m.Leased {
		return false
	}
	if wait := statusOf(m.Pod.Status.InitContainerStatuses, v1.ContainerWait); wait != nil && children.EndedCleanly(wait) {
		return slices.ContainsFunc(m.Pod.Spec.InitContainers, children.IsWait)
	}
	return slices.ContainsFunc(m.Pod.Spec.Containers, func(c corev1.Container) bool {
		s := statusOf(m.Pod.Status.ContainerStatuses, c.Name)
		return s != nil && children.IsHeld(&c) && children.LetThrough(&c, s)
	})
}
