package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// The ordinals of a zone belong to the StatefulSets of its versions. Each StatefulSet has spec.replicas
// ordinals from spec.ordinals.start on. The goal takes ordinals from its neighbours, one at a time:
//
//	v1 0 1 2 3   v1 0 1 2 .   v1 0 1 2     a rollback moves them back from the
//	v2           v2           v2       3   other side, with v1 as the goal
//
// The dot is an ordinal without an owner, because its old pod is terminating. No version gets the
// ordinal before that pod is deleted.

// handover assigns the ordinals of a zone in this pass. A pass takes ordinals from versions, or fills
// ordinals without an owner, but not both: between the two the old pod must be deleted, which a later
// pass observes.
type handover struct {
	f    *facts.Facts
	zone children.Zone
	// have are the present ordinals, want the assigned ones.
	have, want facts.Spans
	// goal is the version that gets all ordinals in the end: the new version of an upgrade in progress,
	// else the current version.
	goal int64
	// back is true if the goal is the current version, as in a rollback.
	back bool
	// taken is true if an ordinal is taken from a serving pod in this pass, in this zone or an earlier
	// one. No other is taken then.
	taken bool
	// waits is the first event that the zone waits for, as in Plan.waitFor; "" if there is none.
	waits string
}

// arrange assigns the ordinals of a zone. taken is true if an ordinal was taken from a serving pod in
// another zone.
func arrange(f *facts.Facts, z children.Zone, taken bool) *handover {
	h := &handover{f: f, zone: z, have: f.SpansOf(z), goal: f.Record.CurrentVersion, taken: taken}
	h.want = h.have
	if f.Record.Phase == v1alpha1.PhaseCleaningUp && !clientsSwitched(f) {
		h.waitFor(fmt.Sprintf("Service %s selects the current version", spec.ActiveService(f.Set)))
		return h // switch clients first
	}
	if f.Forward(z) {
		if f.Record.Phase == v1alpha1.PhaseCanary && f.Replicas == 0 {
			h.waitFor("template.spec.replicas is more than 0")
		}
		h.goal = f.Record.UpdateVersion
		if f.Record.Update.Handover == v1alpha1.HandoverCoexist {
			h.want = coexist(f, z, h.have)
			return h
		}
	}
	h.back = h.goal == f.Record.CurrentVersion
	if _, exists := h.have[h.goal]; exists || f.Known(h.goal) {
		h.move()
	}
	return h
}

// waitFor sets the event that the zone waits for; the first one is kept.
func (h *handover) waitFor(what string) { h.waits = cmp.Or(h.waits, what) }

// coexist assigns all ordinals to the old version. The new version gets canaries first, and all
// ordinals later.
func coexist(f *facts.Facts, z children.Zone, have facts.Spans) facts.Spans {
	want := maps.Clone(have)
	for number, s := range want {
		want[number] = children.Span{Start: s.Start}
	}
	want[f.Record.CurrentVersion] = children.Span{Start: 0, Replicas: facts.Assignable(f.World, z, have[f.Record.CurrentVersion])}
	n := facts.Assignable(f.World, z, have[f.Record.UpdateVersion])
	if f.Record.Phase == v1alpha1.PhaseCanary && f.Record.Update.Zone == z.Name {
		n = min(max(f.Canaries(), have[f.Record.UpdateVersion].Replicas), n)
	}
	want[f.Record.UpdateVersion] = children.Span{Start: 0, Replicas: n}
	return want
}

// move takes the next step towards a goal that has all ordinals: it trims the spans, fills ordinals
// without an owner, or takes the next ordinal for the goal.
func (h *handover) move() {
	h.want = maps.Clone(h.have)
	Trim(h.want, h.goal, h.f.Replicas)
	if !maps.Equal(h.want, h.have) {
		return
	}
	_, exists := h.want[h.goal]
	if !exists {
		h.want[h.goal] = children.Span{Start: h.f.Replicas}
	}
	if first, some := h.want.FirstFree(h.f.Replicas); some {
		h.fill(first)
		return
	}
	if from, ordinal := next(h.want, h.goal, h.back); from != 0 && exists {
		h.take(from, ordinal)
	}
}

// Trim removes ordinals above replicas from all versions. If two versions have the same ordinal, it
// keeps that of the goal, or else of the lower version. Two versions have the same ordinal only after
// an edit by another client, or in a rollback of an upgrade with Coexist.
func Trim(all facts.Spans, goal int64, replicas int32) {
	taken := make([]children.Span, 0, len(all))
	order := slices.SortedFunc(maps.Keys(all), func(a, b int64) int {
		switch goal {
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, number := range order {
		s := all[number]
		s.Start, s.Replicas = min(s.Start, replicas), min(s.Replicas, max(0, replicas-s.Start))
		for _, t := range taken {
			for s.Replicas > 0 && t.Has(s.Start) {
				s.Start, s.Replicas = s.Start+1, s.Replicas-1
			}
			for s.Replicas > 0 && t.Has(s.End()-1) {
				s.Replicas--
			}
			if s.Replicas > 0 && t.Replicas > 0 && s.Start < t.Start && t.Start < s.End() {
				s.Replicas = t.Start - s.Start
			}
		}
		all[number] = s
		taken = append(taken, s)
	}
}

// fill assigns ordinals without an owner: to the goal if they are adjacent to its ordinals, else to a
// neighbour. first is the lowest of them. An ordinal is not assigned before its old pods are deleted.
func (h *handover) fill(first int32) {
	goal := h.want[h.goal]
	// The nearest ordinal to the goal comes first, so that the next one is adjacent to the goal then.
	down := !h.back || (goal.Replicas > 0 && first < goal.Start)
	for range 2 { // an ordinal that was skipped in the first round may be adjacent now
		for o := range h.want.Free(h.f.Replicas, down) {
			h.give(o)
		}
	}
}

// give assigns an ordinal without an owner, unless it is held back.
func (h *handover) give(ordinal int32) {
	if h.f.IsUnread(h.zone, ordinal) {
		return
	}
	to := successor(h.want, ordinal, h.goal, h.enough())
	if to == 0 {
		return
	}
	if what := cmp.Or(facts.Withheld(h.f.World, h.zone, ordinal), h.held(to, ordinal)); what != "" {
		h.waitFor(what)
		return
	}
	h.want[to] = h.want[to].With(ordinal)
}

// successor returns the version that gets an ordinal without an owner: the goal, if it has no ordinals
// or an adjacent one, or a neighbour. It returns 0 if neither can have it yet. enough is as returned by
// handover.enough; if it is true, neighbours take precedence.
func successor(all facts.Spans, ordinal int32, goal int64, enough bool) int64 {
	goalCan := all[goal].Replicas == 0 || all[goal].Touches(ordinal)
	if goalCan && !enough {
		return goal
	}
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if number != goal && all[number].TakesOver(ordinal, enough) {
			return number
		}
	}
	if goalCan {
		return goal
	}
	return 0
}

// enough reports whether the goal has all the ordinals that it may have in the present phase: its
// canaries, in phase Canary.
func (h *handover) enough() bool {
	if h.back || h.f.Record.Phase != v1alpha1.PhaseCanary || h.f.Record.Update.Zone != h.zone.Name {
		return false
	}
	return h.want[h.goal].Replicas >= h.f.Canaries()
}

// held returns the event before which an ordinal cannot be assigned to a version; "" if it can be
// assigned now.
func (h *handover) held(to int64, ordinal int32) string {
	return cmp.Or(h.heldByPod(to, ordinal), h.heldByUnobserved(to), h.heldByRival(ordinal))
}

// heldByPod waits until no pod of another version exists on the ordinal.
func (h *handover) heldByPod(to int64, ordinal int32) string {
	others := func(p facts.PodOfOrdinal) bool { return p.IsOn(h.zone, ordinal) && p.Version != to }
	if p, some := facts.First(h.f.Pods, others); some {
		return fmt.Sprintf("pod %s is deleted", p.Pod.Name)
	}
	return ""
}

// heldByUnobserved waits until the StatefulSet controller has observed the latest spec of all other
// versions. Before, it may create a pod on an ordinal that another version no longer has.
func (h *handover) heldByUnobserved(to int64) string {
	unobserved := func(c *facts.Child) bool { return c.Zone == h.zone.Index && c.Version != to && !c.Observed() }
	if c, some := facts.First(h.f.Children, unobserved); some {
		return fmt.Sprintf("StatefulSet %s is observed by its controller", c.Set.Name)
	}
	return ""
}

// heldByRival waits until no StatefulSet that the object no longer controls has pods on the same claims.
func (h *handover) heldByRival(ordinal int32) string {
	if len(h.f.Set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	has := func(c *facts.Child) bool { return c.Zone == h.zone.Index && c.Span().Has(ordinal) }
	if c, some := facts.First(h.f.Rivals, has); some {
		return fmt.Sprintf("StatefulSet %s is deleted, because it does not belong to this object but its pods use the same claims", c.Set.Name)
	}
	return ""
}

// next returns the ordinal that the goal takes next, and its owner. It extends the goal downwards, then
// upwards. A goal without ordinals begins at the top, or in a rollback at the bottom. from is 0 if the
// goal has all ordinals.
func next(all facts.Spans, goal int64, back bool) (from int64, ordinal int32) {
	s := all[goal]
	switch {
	case s.Replicas == 0 && back:
		return lowest(all)
	case s.Replicas == 0:
		return highest(all)
	}
	if from = all.Owner(s.Start - 1); from != 0 {
		return from, s.Start - 1
	}
	return all.Owner(s.End()), s.End()
}

// lowest returns the lowest ordinal of all versions and its version; 0 if there is none.
func lowest(all facts.Spans) (from int64, ordinal int32) {
	for number, s := range all {
		if s.Replicas > 0 && (from == 0 || s.Start < ordinal) {
			from, ordinal = number, s.Start
		}
	}
	return from, ordinal
}

// highest returns the highest ordinal of all versions and its version; 0 if there is none.
func highest(all facts.Spans) (from int64, ordinal int32) {
	for number, s := range all {
		if s.Replicas > 0 && (from == 0 || s.End()-1 > ordinal) {
			from, ordinal = number, s.End()-1
		}
	}
	return from, ordinal
}

// take removes an ordinal from a version, for the goal: an ordinal whose pod does not serve, or any
// ordinal while all others serve.
func (h *handover) take(from int64, ordinal int32) {
	if what := cmp.Or(h.unsafe(ordinal), h.unproven()); what != "" {
		h.waitFor(what)
		return
	}
	if h.costsService(from, ordinal) {
		if what := h.othersDown(ordinal); what != "" {
			h.waitFor(what)
			return
		}
		h.taken = true
	}
	h.want[from] = h.want[from].Without(ordinal)
}

// unsafe returns the event before which the pod of an ordinal must not be deleted because of its claims;
// "" if it may be.
func (h *handover) unsafe(ordinal int32) string {
	if name := facts.DeletedClaimOf(h.f.World, h.zone, ordinal); name != "" {
		return fmt.Sprintf("claim %s is safe: it is terminating, and its data is lost when its pod is deleted", name)
	}
	return facts.Withheld(h.f.World, h.zone, ordinal)
}

// unproven returns the event before which a new version must not get more ordinals; "" if it may get
// one now.
func (h *handover) unproven() string {
	if h.back {
		return ""
	}
	if h.enough() {
		return "the canaries are good"
	}
	c, want := h.f.Children.Find(h.zone.Index, h.goal), h.want[h.goal].Replicas
	good := h.f.AvailablePods(c)
	if h.f.Record.Phase == v1alpha1.PhaseCanary { // a canary must be proven before the next one is created
		good = h.f.ProvenPods(c)
	}
	if good < want {
		return fmt.Sprintf("%s has %d of %d pods available", c.Set.Name, want, want)
	}
	return ""
}

// costsService reports whether taking an ordinal removes an available pod. It returns false if the user
// set updateNotReady, except in a rollback: the user accepts then that pods are missing.
func (h *handover) costsService(from int64, ordinal int32) bool {
	if !h.back && h.f.Set.Spec.UpdateStrategy.UpdateNotReady {
		return false
	}
	c := h.f.Children.Find(h.zone.Index, from)
	return c != nil && h.f.Clock().Available(c.Pods[ordinal])
}

// othersDown returns the event before which another ordinal is not available, in any zone; "" if all
// are available.
func (h *handover) othersDown(ordinal int32) string {
	what := h.f.Unavailable(h.zone, h.want, ordinal, h.back)
	for _, other := range h.f.Zones {
		if other != h.zone && what == "" {
			what = h.f.Unavailable(other, h.f.SpansOf(other), -1, h.back)
		}
	}
	if what == "" && h.taken {
		what = "another zone has all its pods again"
	}
	return what
}
