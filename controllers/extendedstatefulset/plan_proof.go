package extendedstatefulset

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// longestProbation is how long a pod of a new version must have been Ready before
// it counts as good, where minReadySeconds says nothing. A program without a
// readiness probe is Ready as soon as it starts, also one that crashes then: without
// this the old version would be gone by the time that it does.
const longestProbation = 10 * time.Second

// probation is that time: minReadySeconds if there is one, and a part of the
// canaryWatchTime of whoever is in a hurry.
func (w *world) probation() time.Duration {
	if d := w.minReady(); d > 0 {
		return d
	}
	return min(longestProbation, w.canaryTime()/2)
}

// proven counts the pods of a StatefulSet that are past their probation.
func (w *world) proven(c *child) (n int32) {
	for ordinal, pod := range c.pods {
		if ordinal < w.replicas && c.span().has(ordinal) && podstate.Ready(pod) && !podstate.Terminating(pod) && !w.provenAt(pod).After(w.now) {
			n++
		}
	}
	return n
}

// provenAt is when a pod that is Ready now is past its probation. Time in which nobody
// looked is no proof either: while the API server is away a kubelet cannot say that a
// pod is not Ready any more.
func (w *world) provenAt(pod *corev1.Pod) time.Time {
	since, _ := podstate.Since(pod, corev1.PodReady)
	return w.watch.Deadline(since, w.probation())
}

// allProven tells whether all pods of a version are, in every zone.
func (w *world) allProven(number int64) bool {
	for _, z := range w.zones {
		if c := w.child(z.index, number); c == nil || w.proven(c) < w.replicas {
			return false
		}
	}
	return true
}

// watchedSince is when canaryWatchTime begins: when the canaries were asked for, or when
// their StatefulSet was made, if that came later. Until it is made only updateWatchTime
// counts, as the version is not to blame.
func watchedSince(u *v1alpha1.UpdateStatus, c *child) time.Time {
	if made := c.set.CreationTimestamp.Time; made.After(u.CanaryAt.Time) {
		return made
	}
	return u.CanaryAt.Time
}

// ranOut reports whether a time that began at from is over. Time in which this process
// could not look does not count: it may have missed what happened in it.
func (w *world) ranOut(from time.Time, limit time.Duration) bool {
	return w.watch.Elapsed(from, w.now) >= limit
}

// deadlines are when the upgrade has failed, if nothing happens before.
func (w *world) deadlines() (at []time.Time) {
	u := w.books.Update
	if u == nil || u.Returning || w.books.Phase == v1alpha1.PhaseStale || w.books.Phase == v1alpha1.PhaseAborted {
		return nil
	}
	if u.StartedAt != nil {
		at = append(at, w.watch.Deadline(u.StartedAt.Time, w.updateTime()), w.watch.Deadline(u.StartedAt.Time, w.updateTime()+w.probation()))
	}
	if c := w.child(w.zoneOf(u).index, w.books.UpdateVersion); c != nil && u.CanaryAt != nil && w.books.Phase == v1alpha1.PhaseCanary {
		from := watchedSince(u, c)
		at = append(at, w.watch.Deadline(from, w.canaryTime()), w.watch.Deadline(from, w.canaryTime()+w.probation()))
	}
	return at
}

// allowed is a time that is allowed, and the probation if all is Ready that must be.
func (b *ledger) allowed(time time.Duration) time.Duration {
	n := b.w.serving(b.w.child(b.zone().index, b.UpdateVersion), b.w.replicas)
	if b.Phase == v1alpha1.PhaseCanary && n >= b.w.canaries() || b.Phase == v1alpha1.PhasePromoting && n == b.w.replicas ||
		b.Phase == v1alpha1.PhasePostJob && b.complete(b.UpdateVersion) {
		return time + b.w.probation()
	}
	return time
}

// paused tells whether canaries wait for replicas: a version that is tried is not
// good for there being nothing to try it with.
func (b *ledger) paused() bool {
	return b.Phase == v1alpha1.PhaseCanary && b.w.replicas == 0
}

// readyOf is how many pods of a version are Ready, in all zones.
func (w *world) readyOf(number int64) (n int32) {
	for _, c := range w.ofVersion(number) {
		for _, pod := range c.pods {
			if podstate.Ready(pod) && !podstate.Terminating(pod) {
				n++
			}
		}
	}
	return n
}

// unsettled says why an upgrade from a version cannot begin yet; "" if it can. One
// that restarts its pods has one down, and the upgrade would take another.
func (w *world) unsettled(number int64) string {
	if why := w.notReady(number); why != "" {
		return why
	}
	for _, z := range w.zones {
		if c := w.child(z.index, number); c != nil && rolls(c.set) && !holdsBack(&c.set.Spec.UpdateStrategy) {
			return fmt.Sprintf("%s restarts its pods", c.set.Name)
		}
	}
	return ""
}

// split tells whether ordinals of a version are with others, or on their way.
func (w *world) split(number int64) bool {
	for _, z := range w.zones {
		alone := !slices.ContainsFunc(w.children, func(c *child) bool { return c.zone == z.index && c.version != number })
		if c := w.child(z.index, number); c != nil && !alone && c.span() != (span{0, w.replicas}) {
			return true
		}
	}
	return false
}

// holdsPods says why pods of a version must not be restarted now; "" if they may.
// While an ordinal changes hands its pod is down, and no other may be. A claim that
// somebody deleted goes with its pod, whatever the pod's version.
func (w *world) holdsPods(number int64) string {
	if w.split(w.set.Status.CurrentVersion) && !w.onTrial(number) {
		return "ordinals change hands"
	}
	if why := w.strangers(); why != "" {
		return "it waits until " + why
	}
	if !w.claimGoes() {
		return ""
	}
	for at := range w.claimNames() {
		if name := w.doomed(at.zone, at.ordinal); name != "" {
			return fmt.Sprintf("claim %s was deleted by somebody, and goes with its pod", name)
		}
	}
	return ""
}

// claimGoes reports whether any claim of ours was deleted.
func (w *world) claimGoes() bool {
	for _, c := range w.claims {
		if c.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// onTrial tells whether a version has canaries, and none that is good yet. They may be
// restarted, which may be their cure: no second ordinal is taken for such a one.
func (w *world) onTrial(number int64) bool {
	s := &w.set.Status
	good := slices.ContainsFunc(w.ofVersion(number), func(c *child) bool { return w.proven(c) > 0 })
	return number == s.UpdateVersion && s.Phase == v1alpha1.PhaseCanary && s.Update != nil && !s.Update.Returning && !good
}

// absent says which ordinal of a zone has no pod that serves; "" if all have. On a
// way back one that had its time holds up nothing: what is bad stays bad.
func (w *world) absent(z zone, all spans, but int32, back bool) string {
	if len(all) == 0 {
		return ""
	}
	for o := range w.replicas {
		c := w.child(z.index, all.owner(o))
		switch {
		case o == but:
		case c == nil:
			if w.inTransit(z, o) {
				return fmt.Sprintf("ordinal %d%s has changed hands", o, z.in())
			}
		case w.available(c.pods[o]), back && w.hadItsTime(c.pods[o]):
		default:
			return fmt.Sprintf("%s-%d is available", c.set.Name, o)
		}
	}
	return ""
}

// inTransit tells whether an ordinal of nobody will soon be somebody's: its old pod
// does not hang.
func (w *world) inTransit(z zone, ordinal int32) bool {
	for _, t := range w.tenants {
		if t.zone != z.index || t.ordinal != ordinal {
			continue
		}
		if !t.owned && !podstate.Terminating(t.pod) || podstate.Terminating(t.pod) && w.ranOut(podstate.DeletedAt(t.pod), w.canaryTime()) {
			return false
		}
	}
	return true
}

// hadItsTime tells whether a pod has not been Ready for as long as a canary may.
func (w *world) hadItsTime(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	since, _ := podstate.Since(pod, corev1.PodReady)
	return w.ranOut(since, w.canaryTime())
}
