package extendedstatefulset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// What is derived from the world, and what rules are made of: a clock that judges pods,
// a StatefulSet with its pods, and all of them together.

// clock judges pods by the times of a spec. Time in which this process could not look
// counts against no pod, and for none.
type clock struct {
	now   time.Time
	watch leadership.Watch
	spec  *v1alpha1.ExtendedStatefulSetSpec
}

func (w *world) clock() clock { return clock{w.now, w.watch, &w.set.Spec} }

func (c clock) minReady() time.Duration {
	return time.Duration(c.spec.Template.Spec.MinReadySeconds) * time.Second
}

func (c clock) canaryTime() time.Duration {
	if d := c.spec.UpdateStrategy.CanaryWatchTime; d != nil {
		return d.Duration
	}
	return defaultCanaryWatch
}

func (c clock) updateTime() time.Duration {
	if d := c.spec.UpdateStrategy.UpdateWatchTime; d != nil {
		return d.Duration
	}
	return defaultUpdateWatch
}

// probation is how long a pod of a new version must have been Ready before it counts
// as good: minReadySeconds if there is one, and a part of a short canaryWatchTime.
func (c clock) probation() time.Duration {
	if d := c.minReady(); d > 0 {
		return d
	}
	return min(longestProbation, c.canaryTime()/2)
}

// available reports whether a pod serves: Ready for long enough, and not going.
func (c clock) available(pod *corev1.Pod) bool {
	if pod == nil || podstate.Terminating(pod) {
		return false
	}
	ok, _ := podstate.Available(pod, c.minReady(), c.now)
	return ok
}

// proven reports whether a pod is past its probation.
func (c clock) proven(pod *corev1.Pod) bool { return serves(pod) && !c.provenAt(pod).After(c.now) }

// provenAt is when a pod that is Ready now is past its probation. Time in which this
// process could not look is no proof either: while the API server is away a kubelet
// cannot say that a pod is not Ready any more.
func (c clock) provenAt(pod *corev1.Pod) time.Time {
	since, _ := podstate.Since(pod, corev1.PodReady)
	return c.deadline(since, c.probation())
}

// hadItsTime reports whether a pod has not been Ready for as long as a canary may.
func (c clock) hadItsTime(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	since, _ := podstate.Since(pod, corev1.PodReady)
	return c.ranOut(since, c.canaryTime())
}

// hangs reports whether a pod that is being deleted takes longer than a canary may.
func (c clock) hangs(pod *corev1.Pod) bool {
	return podstate.Terminating(pod) && c.ranOut(podstate.DeletedAt(pod), c.canaryTime())
}

// ranOut reports whether a time that began at from is over. Time in which this process
// could not look does not count: it may have missed what happened in it.
func (c clock) ranOut(from time.Time, limit time.Duration) bool {
	return c.watch.Elapsed(from, c.now) >= limit
}

// deadline is when ranOut becomes true.
func (c clock) deadline(from time.Time, limit time.Duration) time.Time {
	return c.watch.Deadline(from, limit)
}

// in is how long it takes until then.
func (c clock) in(at time.Time) time.Duration { return at.Sub(c.now) }

// first is the first of all of which something holds.
func first[T any](all []T, holds func(T) bool) (found T, ok bool) {
	for _, one := range all {
		if holds(one) {
			return one, true
		}
	}
	return found, false
}

// soonest is the shorter of two times, of which 0 or less is never.
func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b, 0)
	}
	return min(a, b)
}

// serves reports whether a pod is Ready and not being deleted.
func serves(pod *corev1.Pod) bool { return podstate.Ready(pod) && !podstate.Terminating(pod) }

// child is one StatefulSet of ours.
type child struct {
	set     *appsv1.StatefulSet
	zone    int32 // its index
	version int64
	pods    map[int32]*corev1.Pod // by ordinal, also those that are being deleted
}

// span is the ordinals that the StatefulSet has.
func (c *child) span() span {
	s := span{replicas: ptr.Deref(c.set.Spec.Replicas, 1)}
	if c.set.Spec.Ordinals != nil {
		s.start = c.set.Spec.Ordinals.Start
	}
	return s
}

func (c *child) digest() string { return c.set.Annotations[v1alpha1.AnnotationDigest] }

// attempts is how many attempts were made to upgrade to its version.
func (c *child) attempts() int32 {
	n, _ := strconv.ParseInt(c.set.Annotations[v1alpha1.AnnotationAttempts], 10, 32)
	return int32(n)
}

// terminating reports whether the StatefulSet is being deleted.
func (c *child) terminating() bool { return c.set.DeletionTimestamp != nil }

// observed reports whether the StatefulSet controller has seen the last write. Until
// then it may be about to create a pod that it is no longer meant to have.
func (c *child) observed() bool { return c.set.Status.ObservedGeneration >= c.set.Generation }

// hasAll reports whether it has all ordinals of its zone.
func (c *child) hasAll(replicas int32) bool { return c.span() == span{0, replicas} }

// empty reports whether it has no pods, and will not get any.
func (c *child) empty() bool { return c.span().replicas == 0 && len(c.pods) == 0 }

// stale reports whether the version was given up.
func (c *child) stale() bool { return c.set.Annotations[v1alpha1.AnnotationStale] == v1alpha1.True }

// anyReady reports whether a pod of the StatefulSet is Ready; false if there is none.
func (c *child) anyReady() bool { return c.ready() > 0 }

// ready counts the pods that are Ready and not being deleted.
func (c *child) ready() (n int32) {
	if c == nil {
		return 0
	}
	for _, pod := range c.pods {
		if serves(pod) {
			n++
		}
	}
	return n
}

// count counts the pods on ordinals of the StatefulSet below limit of which something
// holds; 0 if there is no StatefulSet.
func (c *child) count(limit int32, holds func(*corev1.Pod) bool) (n int32) {
	if c == nil {
		return 0
	}
	for ordinal, pod := range c.pods {
		if ordinal < limit && c.span().has(ordinal) && holds(pod) {
			n++
		}
	}
	return n
}

// lacksPods reports whether a StatefulSet should have pods that are not there.
func (c *child) lacksPods() bool {
	if c.terminating() {
		return false
	}
	for o := range c.span().ordinals() {
		if c.pods[o] == nil {
			return true
		}
	}
	return false
}

// lacks reports whether a StatefulSet should have the pod of that name, and has it not.
func (c *child) lacks(pod string) bool {
	rest, ours := strings.CutPrefix(pod, c.set.Name+"-")
	n, err := strconv.ParseInt(rest, 10, 32)
	ordinal := int32(n)
	if !ours || err != nil || strconv.FormatInt(n, 10) != rest {
		return false
	}
	return c.span().has(ordinal) && c.pods[ordinal] == nil
}

// serving counts the ordinals of a zone on which a pod of the StatefulSet is available.
func (w *world) serving(c *child) int32 { return c.count(w.replicas, w.clock().available) }

// proven counts the pods of a StatefulSet that are past their probation.
func (w *world) proven(c *child) int32 { return c.count(w.replicas, w.clock().proven) }

// standing is how a version stands in all zones.
type standing struct {
	*world
	number int64
}

func (w *world) standing(number int64) standing { return standing{w, number} }

// children are its StatefulSets in the zones that are wanted, in the order of the spec.
func (s standing) children() (found []*child) {
	for _, z := range s.zones {
		if c := s.world.children.find(z.index, s.number); c != nil {
			found = append(found, c)
		}
	}
	return found
}

// allProven reports whether all pods of a version are, in every zone.
func (s standing) allProven() bool {
	return s.everywhere(func(c *child) bool { return s.proven(c) >= s.replicas })
}

// complete reports whether a version serves on all ordinals, in every zone.
func (s standing) complete() bool {
	return s.everywhere(func(c *child) bool { return s.serving(c) >= s.replicas })
}

// everywhere reports whether a version has a StatefulSet in each zone, and that holds
// of all of them.
func (s standing) everywhere(holds func(*child) bool) bool {
	there := s.children()
	return len(there) == len(s.zones) && !slices.ContainsFunc(there, func(c *child) bool { return !holds(c) })
}

// children are the StatefulSets of a set, by zone index, then version.
type children []*child

// find is the StatefulSet of a version in a zone; nil if there is none.
func (all children) find(zone int32, number int64) *child {
	found, _ := first(all, func(c *child) bool { return c.zone == zone && c.version == number })
	return found
}

// ofVersion are the StatefulSets of a version, in all zones.
func (all children) ofVersion(number int64) (found children) {
	for _, c := range all {
		if c.version == number {
			found = append(found, c)
		}
	}
	return found
}

// ready is how many pods of a version are Ready, in all zones.
func (all children) ready(number int64) (n int32) {
	for _, c := range all.ofVersion(number) {
		n += c.ready()
	}
	return n
}

// others reports whether there are versions beside that one.
func (all children) others(number int64) bool {
	return slices.ContainsFunc(all, func(c *child) bool { return c.version != number })
}

// withDigest is the version, other than that one, of those contents that is not being
// deleted; nil if there is none.
func (all children) withDigest(digest string, except int64) (found *child) {
	for _, c := range all {
		if c.version != except && c.digest() == digest && !c.terminating() {
			found = c
		}
	}
	return found
}

// podOfOrdinal is a pod on an ordinal, also one whose StatefulSet is gone.
type podOfOrdinal struct {
	zone    int32
	version int64
	ordinal int32
	pod     *corev1.Pod
	// owned is true when its controller is a StatefulSet of ours, by UID.
	owned bool
}

// isOn reports whether it is on an ordinal of a zone.
func (p podOfOrdinal) isOn(z zone, ordinal int32) bool {
	return p.zone == z.index && p.ordinal == ordinal
}

// wanted reports whether a zone of that index is in the spec.
func (w *world) wanted(index int32) bool {
	return slices.ContainsFunc(w.zones, func(z zone) bool { return z.index == index })
}

// canaries is how many pods of a zone prove a new version.
func (w *world) canaries() int32 {
	return min(max(1, ptr.Deref(w.set.Spec.UpdateStrategy.Canaries, 1)), w.replicas)
}

// zonesOf are the wanted zones. One that has no index yet gets the next: an index
// is never given to another zone, since claims are named after it.
func zonesOf(set *v1alpha1.ExtendedStatefulSet, s *v1alpha1.ExtendedStatefulSetStatus) []zone {
	names := set.Spec.Zones[:min(len(set.Spec.Zones), mostZones)] // nothing is done for a set that has more
	if len(names) == 0 {
		return []zone{{index: noZone}}
	}
	next, known := int32(0), map[string]int32{}
	for _, z := range s.Zones {
		known[z.Name], next = z.Index, max(next, z.Index+1)
	}
	zones := make([]zone, 0, len(names))
	for _, name := range names {
		index, ok := known[name]
		if !ok {
			index, known[name] = next, next
			next++
		}
		zones = append(zones, zone{name, index})
	}
	return zones
}
