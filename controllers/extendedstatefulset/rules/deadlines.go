package rules

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// requeueAtDeadlines requeues the set for everything that changes without a watch event, in particular
// when a duration has elapsed.
func requeueAtDeadlines(p *Plan, f *facts.Facts) {
	p.LookAgain(f.Config.Wait)
	p.LookAgain(f.Causes.Again)
	if f.Untracked != "" {
		p.LookAgain(configuration.Retry)
	}
	if facts.Disputed(f.World) != "" {
		p.LookAgain(spec.ConsentRetry)
	}
	if !f.LostDue.IsZero() {
		p.LookAgain(f.LostDue.Sub(f.Now))
	}
	if !f.RefusalsDue.IsZero() {
		p.LookAgain(f.RefusalsDue.Sub(f.Now))
	}
	deadlines, returning := Deadlines(f), f.Returning()
	for _, c := range f.Children {
		for _, pod := range c.Pods {
			_, untilAvailable := podstate.Available(pod, f.Clock().MinReady(), f.Now)
			p.LookAgain(untilAvailable)
			if c.Version == f.Record.CurrentVersion && (facts.NeedsPerson(pod) || causes.OfCrash(pod).Known()) {
				p.LookAgain(facts.HinderedAt(f.World, pod).Sub(f.Now))
			}
			deadlines = append(deadlines, deadlinesOf(f, c, pod, returning)...)
		}
	}
	for _, at := range deadlines {
		p.LookAgain(f.Clock().In(at))
	}
}

// deadlinesOf returns when the evaluation of a pod changes if no event occurs before. returning is true
// while ordinals are returned.
func deadlinesOf(f *facts.Facts, c *facts.Child, pod *corev1.Pod, returning bool) (at []time.Time) {
	clock, ready := f.Clock(), podstate.Ready(pod)
	isNew := f.Record.Update != nil && c.Version == f.Record.UpdateVersion
	if isNew && ready {
		at = append(at, clock.ProvenAt(pod))
	}
	if !returning {
		return at
	}
	if since, _ := podstate.Since(pod, corev1.PodReady); !ready {
		at = append(at, clock.Deadline(since, clock.CanaryTime()))
	}
	if podstate.Terminating(pod) {
		at = append(at, clock.Deadline(podstate.DeletedAt(pod), clock.CanaryTime()))
	}
	return at
}

// Deadlines returns when the attempt in progress fails if no event occurs before. Each limit has two
// deadlines: with and without the probation that record.recorder.limitWithProbation may add.
func Deadlines(f *facts.Facts) (at []time.Time) {
	u, clock := f.Record.Update, f.Clock()
	if u == nil || u.Returning || facts.GivenUp(f.Record) {
		return nil
	}
	add := func(from time.Time, limit time.Duration) {
		at = append(at, clock.Deadline(from, limit), clock.Deadline(from, limit+clock.Probation()))
	}
	if u.StartedAt != nil && u.HeldAt == nil {
		add(u.StartedAt.Time, clock.UpdateTime())
	}
	c := f.Children.Find(f.ZoneOf(u).Index, f.Record.UpdateVersion)
	if c != nil && u.CanaryAt != nil && u.GoodAt == nil && f.Record.Phase == v1alpha1.PhaseCanary {
		add(record.WatchedSince(u, c), clock.CanaryTime())
	}
	return at
}
