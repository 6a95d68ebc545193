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
var rules = []engine.Rule[*world, plan]{
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

// decide returns the plan for a world. It is pure: the same world gives the same plan.
func decide(w *world) plan {
	p := plan{Plan: engine.Plan{Undone: w.undone}}
	w.record = w.set.Status.DeepCopy()
	asked := rules[:1] // an object that is terminating or invalid is ignored, except for its owner references
	if w.set.DeletionTimestamp == nil && w.invalid == "" {
		w.record, asked = advance(w), rules
	}
	engine.Decide(asked, w, &p, &p.Plan)
	p.lookAgainFor(w)
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
func (p *plan) lookAgainFor(w *world) {
	p.LookAgain(w.config.wait)
	p.LookAgain(w.causes.Again)
	if w.untracked != "" {
		p.LookAgain(configuration.Retry)
	}
	if w.storage().disputed() != "" {
		p.LookAgain(consentRetry)
	}
	if !w.lostDue.IsZero() {
		p.LookAgain(w.lostDue.Sub(w.now))
	}
	if !w.refusalsDue.IsZero() {
		p.LookAgain(w.refusalsDue.Sub(w.now))
	}
	at, returning := w.deadlines(), w.returning()
	for _, c := range w.children {
		for _, pod := range c.pods {
			_, missing := podstate.Available(pod, w.clock().minReady(), w.now)
			p.LookAgain(missing)
			if c.version == w.record.CurrentVersion && (needsPerson(pod) || causes.OfCrash(pod).Known()) {
				p.LookAgain(hinderedAt(w, pod).Sub(w.now))
			}
			at = append(at, w.deadlinesOf(c, pod, returning)...)
		}
	}
	for _, at := range at {
		p.LookAgain(w.clock().in(at))
	}
}

// deadlinesOf returns when the evaluation of a pod changes if no event occurs before. returning is true
// while ordinals are returned.
func (w *world) deadlinesOf(c *child, pod *corev1.Pod, returning bool) (at []time.Time) {
	clock, ready := w.clock(), podstate.Ready(pod)
	tried := w.record.Update != nil && c.version == w.record.UpdateVersion
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
