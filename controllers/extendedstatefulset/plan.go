package extendedstatefulset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is the result of decide: the steps to take, and the reasons for them.
type plan struct {
	engine.Plan

	// recordFirst is true if the record must be written. The pass does nothing else then.
	recordFirst bool
}

// rules are the rules in the order in which they run. Each rule lets the next one act. A rule that must
// write the record first stops the pass.
var rules = []engine.Rule[*facts, plan]{
	{Name: "keep the owner references on configuration", Act: keepTracking, Mode: engine.Leading},
	{Name: "keep the record", Act: keepRecord, Mode: engine.Leading},
	{Name: "keep the claims", Act: keepClaims, Mode: engine.Leading},
	{Name: "keep the Services", Act: keepServices, Mode: engine.Leading},
	{Name: "remove labels from pods that belong to no version", Act: removeLabels, Mode: engine.Leading},
	{Name: "keep the disruption budgets", Act: keepBudgets, Mode: engine.Leading},
	{Name: "run the jobs", Act: runJobs, Mode: engine.Leading},
	{Name: "keep the versions", Act: keepChildren, Mode: engine.Leading},
	{Name: "replace pods without claims", Act: replaceUnassigned, Mode: engine.Leading},
	{Name: "delete surplus pods", Act: deleteSurplus, Mode: engine.Leading},
	{Name: "clean up", Act: cleanUp, Mode: engine.Leading},
	{Name: "follow the active/passive probes", Act: followProbes, Mode: engine.Leading},
}

// decide returns the plan for the facts. It is pure: the same facts give the same plan.
func decide(f *facts) plan {
	p := plan{Plan: engine.Plan{Undone: f.undone}}
	asked := rules
	if f.ignored() { // except for its owner references
		asked = rules[:1]
	}
	engine.Decide(asked, f, &p, &p.Plan)
	p.lookAgainFor(f)
	return p
}

// waitFor sets the reason for waiting; "" is ignored.
func (p *plan) waitFor(what string) {
	if what != "" {
		p.WaitFor(v1alpha1.ReasonWaiting, what)
	}
}

func (p *plan) acts() bool { return p.recordFirst || p.Acts() > 0 }

// changes reports whether the plan does more than run probes. An outdated world cannot make probes
// wrong.
func (p *plan) changes() bool { return p.acts() && !p.asksOnly() }

// lookAgainFor schedules a requeue for everything that has no watch event.
func (p *plan) lookAgainFor(f *facts) {
	p.LookAgain(f.config.wait)
	p.LookAgain(f.causes.Again)
	if f.untracked != "" {
		p.LookAgain(configuration.Retry)
	}
	if disputed(f.world) != "" {
		p.LookAgain(consentRetry)
	}
	if !f.lostDue.IsZero() {
		p.LookAgain(f.lostDue.Sub(f.now))
	}
	if !f.refusalsDue.IsZero() {
		p.LookAgain(f.refusalsDue.Sub(f.now))
	}
	at, returning := f.deadlines(), f.returning()
	for _, c := range f.children {
		for _, pod := range c.pods {
			_, missing := podstate.Available(pod, f.clock().minReady(), f.now)
			p.LookAgain(missing)
			if c.version == f.record.CurrentVersion && (needsPerson(pod) || causes.OfCrash(pod).Known()) {
				p.LookAgain(hinderedAt(f.world, pod).Sub(f.now))
			}
			at = append(at, f.deadlinesOf(c, pod, returning)...)
		}
	}
	for _, at := range at {
		p.LookAgain(f.clock().in(at))
	}
}

// deadlinesOf returns when the evaluation of a pod changes if no event occurs before. returning is true
// while ordinals are returned.
func (f *facts) deadlinesOf(c *child, pod *corev1.Pod, returning bool) (at []time.Time) {
	clock, ready := f.clock(), podstate.Ready(pod)
	tried := f.record.Update != nil && c.version == f.record.UpdateVersion
	if tried && ready {
		at = append(at, clock.provenAt(pod))
	}
	if !returning {
		return at
	}
	if since, _ := podstate.Since(pod, corev1.PodReady); !ready {
		at = append(at, clock.deadline(since, clock.canaryTime()))
	}
	if podstate.Terminating(pod) {
		at = append(at, clock.deadline(podstate.DeletedAt(pod), clock.canaryTime()))
	}
	return at
}
