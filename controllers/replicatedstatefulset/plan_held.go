package replicatedstatefulset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// The pod of a primary that is deleted, preempted or driven off by a taint is in no drain: no
// budget is asked. But where its container has a preStop hook that sleeps, the kubelet sends
// SIGTERM when that is over, and until then the role is handed over as in a drain.

// heldUntil is until when the kubelet holds SIGTERM back from the container of the commands,
// in a pod that is being deleted; zero if it does not. A hook that runs a command does not
// count: it may be what ends the program.
func heldUntil(m *member) time.Time {
	sleep := sleepOf(m)
	if sleep == 0 || !m.terminating() {
		return time.Time{}
	}
	grace := time.Duration(ptr.Deref(m.pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return podstate.DeletedAt(m.pod).Add(min(sleep, grace))
}

// sleepOf is how long the preStop hook of the container of the commands sleeps.
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

// isHeld reports whether a pod is being deleted and its program has not been told yet.
func (c *clock) isHeld(m *member) bool { return c.now.Before(heldUntil(m)) }

// handOverHeld hands the role of a primary over that is being deleted and held. While no other
// member has its data it stays primary, and is stopped at the end of that time.
func handOverHeld(f *facts, p *plan, m *member) {
	p.LookAgain(heldUntil(m).Sub(f.now))
	handOver(f, p, relief{facts: f, old: m}, "its pod is being deleted")
}

// awaitHeld waits until those that run have the data of a primary that was demoted because its
// pod is being deleted, and asks them again and again. It reports whether there is one to wait
// for. If they never have it all, the copy comes back with the next pod of that name.
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
		p.askSince(f, question{m, said.Ended})
	}
	p.LookAgain(heldUntil(newest).Sub(f.now))
	p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf(
		"the pod of %s is being deleted, and no other has all of its data yet: sequence %d", newest.name(), newest.version.sequence,
	))
	return true
}
