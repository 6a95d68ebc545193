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

// This file has the facts that rules use. They are derived from the world: a clock that evaluates pods,
// a StatefulSet with its pods, and all StatefulSets together.

// facts are what a pass has read, and the record that follows from it.
type facts struct {
	*world
	// record is the status that must be written before anything else is done.
	record *v1alpha1.ExtendedStatefulSetStatus
}

// ignored reports whether nothing is done for the object: it is terminating, or its spec cannot be
// served.
func (w *world) ignored() bool { return w.set.DeletionTimestamp != nil || w.invalid != "" }

// clock evaluates pods by the durations of a spec. Time during which this process did not watch the
// cluster is not counted, neither for a pod nor against it.
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

// probation returns how long a pod of a new version must have been Ready to count as good:
// minReadySeconds if it is set, else maxProbation, or half of canaryWatchTime if that is shorter.
func (c clock) probation() time.Duration {
	if d := c.minReady(); d > 0 {
		return d
	}
	return min(maxProbation, c.canaryTime()/2)
}

// available reports whether a pod serves: it has been Ready for minReadySeconds and is not terminating.
func (c clock) available(pod *corev1.Pod) bool {
	if pod == nil || podstate.Terminating(pod) {
		return false
	}
	ok, _ := podstate.Available(pod, c.minReady(), c.now)
	return ok
}

// proven reports whether a pod has passed its probation.
func (c clock) proven(pod *corev1.Pod) bool { return serves(pod) && !c.provenAt(pod).After(c.now) }

// provenAt returns when a Ready pod passes its probation. Time during which this process did not watch
// does not count as proof either: while the API server is unreachable, a kubelet cannot report that a
// pod is no longer Ready.
func (c clock) provenAt(pod *corev1.Pod) time.Time {
	since, _ := podstate.Since(pod, corev1.PodReady)
	return c.deadline(since, c.probation())
}

// hadItsTime reports whether a pod has not been Ready for canaryWatchTime.
func (c clock) hadItsTime(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	since, _ := podstate.Since(pod, corev1.PodReady)
	return c.ranOut(since, c.canaryTime())
}

// hangs reports whether a pod has been terminating for longer than canaryWatchTime.
func (c clock) hangs(pod *corev1.Pod) bool {
	return podstate.Terminating(pod) && c.ranOut(podstate.DeletedAt(pod), c.canaryTime())
}

// ranOut reports whether limit has passed since from. Time during which this process did not watch is
// not counted, because events in it may have been missed.
func (c clock) ranOut(from time.Time, limit time.Duration) bool {
	return c.watch.Elapsed(from, c.now) >= limit
}

// deadline returns when ranOut becomes true.
func (c clock) deadline(from time.Time, limit time.Duration) time.Time {
	return c.watch.Deadline(from, limit)
}

// in returns the duration from now to at.
func (c clock) in(at time.Time) time.Duration { return at.Sub(c.now) }

// first returns the first item for which holds is true.
func first[T any](all []T, holds func(T) bool) (found T, ok bool) {
	for _, one := range all {
		if holds(one) {
			return one, true
		}
	}
	return found, false
}

// soonest returns the shorter of two durations. A duration of 0 or less means never.
func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b, 0)
	}
	return min(a, b)
}

// serves reports whether a pod is Ready and not terminating.
func serves(pod *corev1.Pod) bool { return podstate.Ready(pod) && !podstate.Terminating(pod) }

// child is one StatefulSet of the object.
type child struct {
	set     *appsv1.StatefulSet
	zone    int32 // index of the zone
	version int64
	pods    map[int32]*corev1.Pod // by ordinal, including terminating pods
}

// span returns the ordinals of the StatefulSet.
func (c *child) span() span {
	s := span{replicas: ptr.Deref(c.set.Spec.Replicas, 1)}
	if c.set.Spec.Ordinals != nil {
		s.start = c.set.Spec.Ordinals.Start
	}
	return s
}

func (c *child) digest() string { return c.set.Annotations[v1alpha1.AnnotationDigest] }

// attempts returns how many attempts were made to upgrade to its version.
func (c *child) attempts() int32 {
	n, _ := strconv.ParseInt(c.set.Annotations[v1alpha1.AnnotationAttempts], 10, 32)
	return int32(n)
}

// terminating reports whether the StatefulSet is being deleted.
func (c *child) terminating() bool { return c.set.DeletionTimestamp != nil }

// observed reports whether the StatefulSet controller has observed the latest spec. Until then it may
// still create a pod that the latest spec does not include.
func (c *child) observed() bool { return c.set.Status.ObservedGeneration >= c.set.Generation }

// hasAll reports whether the StatefulSet has all ordinals of its zone.
func (c *child) hasAll(replicas int32) bool { return c.span() == span{0, replicas} }

// empty reports whether the StatefulSet has no pods and no ordinals.
func (c *child) empty() bool { return c.span().replicas == 0 && len(c.pods) == 0 }

// stale reports whether the version is marked stale.
func (c *child) stale() bool { return c.set.Annotations[v1alpha1.AnnotationStale] == v1alpha1.True }

// anyReady reports whether at least one pod of the StatefulSet is Ready.
func (c *child) anyReady() bool { return c.ready() > 0 }

// ready returns the number of pods that are Ready and not terminating.
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

// count returns the number of pods on the StatefulSet's ordinals below limit for which holds is true.
// It returns 0 for a nil child.
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

// lacksPods reports whether pods of the StatefulSet are missing.
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

// lacks reports whether the pod with the given name belongs to the StatefulSet and is missing.
func (c *child) lacks(pod string) bool {
	rest, ours := strings.CutPrefix(pod, c.set.Name+"-")
	n, err := strconv.ParseInt(rest, 10, 32)
	ordinal := int32(n)
	if !ours || err != nil || strconv.FormatInt(n, 10) != rest {
		return false
	}
	return c.span().has(ordinal) && c.pods[ordinal] == nil
}

// serving returns the number of ordinals of a zone on which a pod of the StatefulSet is available.
func (w *world) serving(c *child) int32 { return c.count(w.replicas, w.clock().available) }

// proven returns the number of pods of a StatefulSet that have passed their probation.
func (w *world) proven(c *child) int32 { return c.count(w.replicas, w.clock().proven) }

// standing evaluates one version in all zones.
type standing struct {
	*world
	number int64
}

func (w *world) standing(number int64) standing { return standing{w, number} }

// members returns the StatefulSets of the version in the wanted zones, in the order of the spec.
func (s standing) members() (found []*child) {
	for _, z := range s.zones {
		if c := s.children.find(z.index, s.number); c != nil {
			found = append(found, c)
		}
	}
	return found
}

// allProven reports whether all pods of a version have passed their probation, in every zone.
func (s standing) allProven() bool {
	return s.everywhere(func(c *child) bool { return s.proven(c) >= s.replicas })
}

// complete reports whether a version serves on all ordinals, in every zone.
func (s standing) complete() bool {
	return s.everywhere(func(c *child) bool { return s.serving(c) >= s.replicas })
}

// everywhere reports whether a version has a StatefulSet in each zone, and holds is true for all of
// them.
func (s standing) everywhere(holds func(*child) bool) bool {
	there := s.members()
	return len(there) == len(s.zones) && !slices.ContainsFunc(there, func(c *child) bool { return !holds(c) })
}

// siblings are the StatefulSets of a set, sorted by zone index, then version.
type siblings []*child

// find returns the StatefulSet of a version in a zone, or nil.
func (all siblings) find(zone int32, number int64) *child {
	found, _ := first(all, func(c *child) bool { return c.zone == zone && c.version == number })
	return found
}

// ofVersion returns the StatefulSets of a version, in all zones.
func (all siblings) ofVersion(number int64) (found siblings) {
	for _, c := range all {
		if c.version == number {
			found = append(found, c)
		}
	}
	return found
}

// ready returns the number of Ready pods of a version, in all zones.
func (all siblings) ready(number int64) (n int32) {
	for _, c := range all.ofVersion(number) {
		n += c.ready()
	}
	return n
}

// others reports whether there are StatefulSets of other versions than number.
func (all siblings) others(number int64) bool {
	return slices.ContainsFunc(all, func(c *child) bool { return c.version != number })
}

// withDigest returns a StatefulSet with the given digest, or nil. It ignores version except and
// terminating StatefulSets.
func (all siblings) withDigest(digest string, except int64) (found *child) {
	for _, c := range all {
		if c.version != except && c.digest() == digest && !c.terminating() {
			found = c
		}
	}
	return found
}

// podOfOrdinal is a pod on an ordinal. Its StatefulSet may already be deleted.
type podOfOrdinal struct {
	zone    int32
	version int64
	ordinal int32
	pod     *corev1.Pod
	// owned is true if its controller is a StatefulSet of the object, by UID.
	owned bool
}

// isOn reports whether the pod is on an ordinal of a zone.
func (p podOfOrdinal) isOn(z zone, ordinal int32) bool {
	return p.zone == z.index && p.ordinal == ordinal
}

// wanted reports whether the spec has a zone with the given index.
func (w *world) wanted(index int32) bool {
	return slices.ContainsFunc(w.zones, func(z zone) bool { return z.index == index })
}

// canaries returns the number of canaries in each zone.
func (w *world) canaries() int32 {
	return min(max(1, ptr.Deref(w.set.Spec.UpdateStrategy.Canaries, 1)), w.replicas)
}

// zonesOf returns the wanted zones. A zone without an index gets the next free index. An index is never
// reused for another zone, because claims are named after it.
func zonesOf(set *v1alpha1.ExtendedStatefulSet, s *v1alpha1.ExtendedStatefulSetStatus) []zone {
	names := set.Spec.Zones[:min(len(set.Spec.Zones), maxZones)] // a set with more zones is invalid and gets no changes
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
