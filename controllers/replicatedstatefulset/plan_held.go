package replicatedstatefulset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// A deleted, preempted or tainted (NoExecute) primary is not evicted, so no budget applies. But if
// its container has a preStop hook that sleeps, the kubelet sends SIGTERM only after the sleep.
// Until then the role is handed over as in a drain.

// heldUntil returns the time at which the kubelet sends SIGTERM to the commands' container of a
// terminating pod, if a preStop hook delays it. It returns zero if there is no delay. A hook that
// runs a command does not count, because it may end the program.
func heldUntil(m *member) time.Time {
	sleep := sleepOf(m)
	if sleep == 0 || !m.terminating() {
		return time.Time{}
	}
	grace := time.Duration(ptr.Deref(m.pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return podstate.DeletedAt(m.pod).Add(min(sleep, grace))
}

// sleepOf returns how long the preStop hook of the commands' container sleeps.
func sleepOf(m *member) time.Duration {
	for i := range m.pod.Spec.Containers {
		if c := &m.pod.Spec.Containers[i]; c.Name == m.commandsIn && sleeps(c) {
			return time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		}
	}
	return 0
}

// sleeps reports whether a container has a preStop hook that sleeps.
func sleeps(c *corev1.Container) bool { return hasPreStop(c) && c.Lifecycle.PreStop.Sleep != nil }

// isHeld reports whether a pod is terminating and its program has not received SIGTERM yet.
func (c *clock) isHeld(m *member) bool { return c.now.Before(heldUntil(m)) }

// handOverHeld hands over the role of a terminating primary whose SIGTERM is delayed. While no
// other member has its data, it stays primary. It is stopped at the end of the delay.
func handOverHeld(f *facts, p *plan, m *member) {
	p.LookAgain(heldUntil(m).Sub(f.now))
	handOver(f, p, relief{facts: f, old: m}, "its pod is being deleted")
}

// awaitHeld waits until the running members have the data of a primary that was demoted because its
// pod is terminating, and asks them for their sequence repeatedly. It reports whether there is a
// member to wait for. If no member catches up in time, the copy returns with the next pod of that
// name.
func (p *plan) awaitHeld(f *facts, running []*member, sequence uint64) bool {
	held := f.among(func(m *member) bool { return m.owned && m.state == secondary && f.isHeld(m) })
	if len(held) == 0 {
		return false
	}
	p.askVersions(f, held)
	all := copiesOf(held)
	newest := all[0]
	switch {
	case !all.answered():
		p.WaitFor(v1alpha1.ReasonSeeding, all.whyWaiting(""))
		return true
	case !newest.version.known, newest.version.sequence <= sequence:
		return false
	}
	said, _ := newest.answer(v1alpha1.CommandSequence)
	for _, m := range running {
		p.askSince(f, question{member: m, since: said.Ended})
	}
	p.LookAgain(heldUntil(newest).Sub(f.now))
	p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf(
		"the pod of %s is being deleted; waiting for another member to catch up with it: sequence %d", newest.name(), newest.version.sequence,
	))
	return true
}
