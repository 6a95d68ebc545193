package extendedstatefulset

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// The ordinals of a zone belong to the StatefulSets of its versions. Each StatefulSet has spec.replicas
// ordinals from spec.ordinals.start on. The goal takes ordinals from its neighbours, one at a time:
//
//	v1 0 1 2 3   v1 0 1 2 .   v1 0 1 2     a rollback moves them back from the
//	v2           v2           v2       3   other side, with v1 as the goal
//
// The dot is an ordinal without an owner, because its old pod is terminating. No version gets the
// ordinal before that pod is deleted.

// spans are the ordinals of the StatefulSets of a zone, by version.
type spans map[int64]span

// handover assigns the ordinals of a zone in this pass.
type handover struct {
	f    *facts
	zone zone
	// have are the present ordinals, want the assigned ones.
	have, want spans
	// goal is the version that gets all ordinals. back is true if it is the current version, as in a
	// rollback.
	goal int64
	back bool
	// taken is true if an ordinal is taken from a serving pod in this pass, in this zone or an earlier
	// one. No other is taken then.
	taken bool
	// waits is the first reason for waiting; "" if there is none.
	waits string
}

// arrange assigns the ordinals of a zone. taken is true if an ordinal was taken from a serving pod in
// another zone.
func arrange(f *facts, z zone, taken bool) *handover {
	h := &handover{f: f, zone: z, have: f.spansOf(z), goal: f.record.CurrentVersion, taken: taken}
	h.want = h.have
	if f.record.Phase == v1alpha1.PhaseCleaningUp && !clientsSwitched(f) {
		h.waitFor(fmt.Sprintf("Service %s selects the current version", activeService(f.set)))
		return h // switch clients first
	}
	if f.forward(z) {
		if f.record.Phase == v1alpha1.PhaseCanary && f.replicas == 0 {
			h.waitFor("template.spec.replicas is more than 0")
		}
		h.goal = f.record.UpdateVersion
		if f.record.Update.Handover == v1alpha1.HandoverCoexist {
			h.want = coexist(f, z, h.have)
			return h
		}
	}
	h.back = h.goal == f.record.CurrentVersion
	if _, exists := h.have[h.goal]; exists || f.known(h.goal) {
		h.move()
	}
	return h
}

// waitFor sets the reason for waiting; the first one is kept.
func (h *handover) waitFor(what string) { h.waits = cmp.Or(h.waits, what) }

// known reports whether the template has the content of a version, so that its StatefulSets can be
// created.
func (f *facts) known(number int64) bool { return f.isKnown(f.record, number) }

// isKnown reports whether the template has the content of a version of a record.
func (w *world) isKnown(record *v1alpha1.ExtendedStatefulSetStatus, number int64) bool {
	if number == record.CurrentVersion && record.CurrentDigest == w.digest {
		return true
	}
	u := record.Update
	return u != nil && number == record.UpdateVersion && u.Digest == w.digest
}

// forward reports whether the new version may take ordinals in a zone.
func (f *facts) forward(z zone) bool {
	u := f.record.Update
	if u == nil || u.Returning {
		return false
	}
	switch f.record.Phase {
	case v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhasePostJob:
		c := f.children.find(z.index, f.record.UpdateVersion)
		begun := c != nil && c.span().replicas > 0
		return begun || u.Zone == z.name
	}
	return false
}

// returning reports whether ordinals are being returned to the current version.
func (f *facts) returning() bool { return f.unreturned() != "" }

// unreturned returns which ordinals still have to be returned to the current version; "" if it has all.
func (f *facts) unreturned() string {
	return f.standing(f.record.CurrentVersion).unreturned(f.record)
}

// spansOf returns the ordinals of the StatefulSets of a zone.
func (w *world) spansOf(z zone) spans {
	have := spans{}
	for _, c := range w.children {
		if c.zone == z.index && !c.terminating() {
			have[c.version] = c.span()
		}
	}
	return have
}

// coexist assigns all ordinals to the old version. The new version gets canaries first, and all
// ordinals later.
func coexist(f *facts, z zone, have spans) spans {
	want := maps.Clone(have)
	for number, s := range want {
		want[number] = span{start: s.start}
	}
	want[f.record.CurrentVersion] = span{0, reach(f.world, z, have[f.record.CurrentVersion])}
	n := reach(f.world, z, have[f.record.UpdateVersion])
	if f.record.Phase == v1alpha1.PhaseCanary && f.record.Update.Zone == z.name {
		n = min(max(f.canaries(), have[f.record.UpdateVersion].replicas), n)
	}
	want[f.record.UpdateVersion] = span{0, n}
	return want
}

// move takes the next step to a goal that has all ordinals.
func (h *handover) move() {
	h.want = maps.Clone(h.have)
	trim(h.want, h.goal, h.f.replicas)
	if !maps.Equal(h.want, h.have) {
		return
	}
	_, exists := h.want[h.goal]
	if !exists {
		h.want[h.goal] = span{start: h.f.replicas}
	}
	if first, some := h.want.firstFree(h.f.replicas); some {
		h.fill(first)
		return
	}
	if from, ordinal := h.want.next(h.goal, h.back); from != 0 && exists {
		h.take(from, ordinal)
	}
}

// trim removes ordinals above replicas from all versions. If two versions have the same ordinal, it
// keeps that of the goal, or else of the lower version. Two versions have the same ordinal only after
// an edit by another client, or in a rollback of an upgrade with Coexist.
func trim(all spans, goal int64, replicas int32) {
	taken := make([]span, 0, len(all))
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
		s.start, s.replicas = min(s.start, replicas), min(s.replicas, max(0, replicas-s.start))
		for _, t := range taken {
			for s.replicas > 0 && t.has(s.start) {
				s.start, s.replicas = s.start+1, s.replicas-1
			}
			for s.replicas > 0 && t.has(s.end()-1) {
				s.replicas--
			}
			if s.replicas > 0 && t.replicas > 0 && s.start < t.start && t.start < s.end() {
				s.replicas = t.start - s.start
			}
		}
		all[number] = s
		taken = append(taken, s)
	}
}

// free returns the ordinals without an owner, in ascending or descending order. The owner is checked
// when an ordinal is reached, so an ordinal that got an owner during the iteration is skipped.
func (all spans) free(replicas int32, down bool) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for o := range replicas {
			if down {
				o = replicas - 1 - o
			}
			if all.owner(o) == 0 && !yield(o) {
				return
			}
		}
	}
}

// firstFree returns the lowest ordinal without an owner, if there is one.
func (all spans) firstFree(replicas int32) (ordinal int32, some bool) {
	for o := range all.free(replicas, false) {
		return o, true
	}
	return 0, false
}

// owner returns the version that has an ordinal; 0 if there is none.
func (all spans) owner(ordinal int32) int64 {
	for number, s := range all {
		if s.has(ordinal) {
			return number
		}
	}
	return 0
}

// fill assigns ordinals without an owner: to the goal if they are adjacent to its ordinals, else to a
// neighbour. An ordinal is not assigned before its old pods are deleted.
func (h *handover) fill(first int32) {
	goal := h.want[h.goal]
	down := !h.back || (goal.replicas > 0 && first < goal.start)
	for range 2 { // an ordinal that was skipped in the first round may be adjacent now
		for o := range h.want.free(h.f.replicas, down) {
			h.give(o)
		}
	}
}

// give assigns an ordinal without an owner, unless it is held back.
func (h *handover) give(ordinal int32) {
	if h.f.left(h.zone, ordinal) {
		return
	}
	to := h.want.successor(ordinal, h.goal, h.enough())
	if to == 0 {
		return
	}
	if why := cmp.Or(withheld(h.f.world, h.zone, ordinal), h.held(to, ordinal)); why != "" {
		h.waitFor(why)
		return
	}
	h.want[to] = h.want[to].with(ordinal)
}

// successor returns the version that gets an ordinal: the goal, if it has no ordinals or an adjacent
// one, or a neighbour. It returns 0 if neither can have it yet. If the goal has enough, neighbours take
// precedence.
func (all spans) successor(ordinal int32, goal int64, enough bool) int64 {
	able := all[goal].replicas == 0 || all[goal].touches(ordinal)
	if able && !enough {
		return goal
	}
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if number != goal && all[number].takesOver(ordinal, enough) {
			return number
		}
	}
	if able {
		return goal
	}
	return 0
}

// takesOver reports whether a neighbour of the goal gets an ordinal: if it is adjacent, or if the
// neighbour has no ordinals and the goal has enough.
func (s span) takesOver(ordinal int32, enough bool) bool {
	if s.replicas == 0 {
		return enough
	}
	return s.touches(ordinal)
}

// enough reports whether a goal in phase Canary has all its canaries.
func (h *handover) enough() bool {
	if h.back || h.f.record.Phase != v1alpha1.PhaseCanary || h.f.record.Update.Zone != h.zone.name {
		return false
	}
	return h.want[h.goal].replicas >= h.f.canaries()
}

func (s span) touches(ordinal int32) bool { return ordinal == s.end() || ordinal == s.start-1 }

// with returns the span extended by an adjacent ordinal. An empty span becomes a span of that ordinal.
func (s span) with(ordinal int32) span {
	switch {
	case s.replicas == 0:
		return span{ordinal, 1}
	case ordinal < s.start:
		return span{ordinal, s.replicas + 1}
	}
	return span{s.start, s.replicas + 1}
}

// without returns the span without its first or last ordinal.
func (s span) without(ordinal int32) span {
	if ordinal == s.start {
		return span{s.start + 1, s.replicas - 1}
	}
	return span{s.start, s.replicas - 1}
}

// held returns the reason why an ordinal cannot be assigned to a version yet; "" if it can.
func (h *handover) held(to int64, ordinal int32) string {
	return cmp.Or(h.heldByPod(to, ordinal), h.heldByUnobserved(to), h.heldByRival(ordinal))
}

// heldByPod returns a reason if a pod of another version still exists on the ordinal.
func (h *handover) heldByPod(to int64, ordinal int32) string {
	others := func(p podOfOrdinal) bool { return p.isOn(h.zone, ordinal) && p.version != to }
	if p, some := first(h.f.pods, others); some {
		return fmt.Sprintf("pod %s is deleted", p.pod.Name)
	}
	return ""
}

// heldByUnobserved returns a reason if the StatefulSet controller has not observed the latest spec of
// another version. Until then it may create a pod on an ordinal that the other version no longer has.
func (h *handover) heldByUnobserved(to int64) string {
	unobserved := func(c *child) bool { return c.zone == h.zone.index && c.version != to && !c.observed() }
	if c, some := first(h.f.children, unobserved); some {
		return fmt.Sprintf("StatefulSet %s is observed by its controller", c.set.Name)
	}
	return ""
}

// heldByRival returns a reason if a StatefulSet that the object no longer controls has pods on the same
// claims.
func (h *handover) heldByRival(ordinal int32) string {
	if len(h.f.set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	has := func(c *child) bool { return c.zone == h.zone.index && c.span().has(ordinal) }
	if c, some := first(h.f.rivals, has); some {
		return fmt.Sprintf("StatefulSet %s is deleted, because it does not belong to this object but its pods use the same claims", c.set.Name)
	}
	return ""
}

// next returns the ordinal that the goal takes next, and its owner. It extends the goal downwards, then
// upwards. A goal without ordinals begins at the top, or in a rollback at the bottom. from is 0 if the
// goal has all ordinals.
func (all spans) next(goal int64, back bool) (from int64, ordinal int32) {
	s := all[goal]
	switch {
	case s.replicas == 0 && back:
		return all.lowest()
	case s.replicas == 0:
		return all.highest()
	}
	if from = all.owner(s.start - 1); from != 0 {
		return from, s.start - 1
	}
	return all.owner(s.end()), s.end()
}

// lowest returns the lowest ordinal of all versions and its version; 0 if there is none.
func (all spans) lowest() (from int64, ordinal int32) {
	for number, s := range all {
		if s.replicas > 0 && (from == 0 || s.start < ordinal) {
			from, ordinal = number, s.start
		}
	}
	return from, ordinal
}

// highest returns the highest ordinal of all versions and its version; 0 if there is none.
func (all spans) highest() (from int64, ordinal int32) {
	for number, s := range all {
		if s.replicas > 0 && (from == 0 || s.end()-1 > ordinal) {
			from, ordinal = number, s.end()-1
		}
	}
	return from, ordinal
}

// take removes an ordinal from a version, for the goal: an ordinal whose pod does not serve, or any
// ordinal while all others serve.
func (h *handover) take(from int64, ordinal int32) {
	if why := cmp.Or(h.unsafe(ordinal), h.unproven()); why != "" {
		h.waitFor(why)
		return
	}
	if h.costsService(from, ordinal) {
		if why := h.othersDown(ordinal); why != "" {
			h.waitFor(why)
			return
		}
		h.taken = true
	}
	h.want[from] = h.want[from].without(ordinal)
}

// unsafe returns the reason why the pod of an ordinal must keep its claims; "" if there is none.
func (h *handover) unsafe(ordinal int32) string {
	if name := deletedClaimOf(h.f.world, h.zone, ordinal); name != "" {
		return fmt.Sprintf("claim %s is safe: it is terminating, and its data is lost when its pod is deleted", name)
	}
	return withheld(h.f.world, h.zone, ordinal)
}

// unproven returns the reason why a new version gets no more ordinals yet; "" if it may.
func (h *handover) unproven() string {
	if h.back {
		return ""
	}
	if h.enough() {
		return "the canaries are good"
	}
	c, want := h.f.children.find(h.zone.index, h.goal), h.want[h.goal].replicas
	good := h.f.serving(c)
	if h.f.record.Phase == v1alpha1.PhaseCanary { // else the next canary could fail too
		good = h.f.proven(c)
	}
	if good < want {
		return fmt.Sprintf("%s has %d of %d pods available", c.set.Name, want, want)
	}
	return ""
}

// costsService reports whether taking an ordinal removes a serving pod. It returns false if the user
// set updateNotReady, except in a rollback.
func (h *handover) costsService(from int64, ordinal int32) bool {
	if !h.back && h.f.set.Spec.UpdateStrategy.UpdateNotReady {
		return false
	}
	c := h.f.children.find(h.zone.index, from)
	return c != nil && h.f.clock().available(c.pods[ordinal])
}

// othersDown returns the reason if another ordinal does not serve, in any zone; "" if all serve.
func (h *handover) othersDown(ordinal int32) string {
	why := h.f.absent(h.zone, h.want, ordinal, h.back)
	for _, other := range h.f.zones {
		if other != h.zone && why == "" {
			why = h.f.absent(other, h.f.spansOf(other), -1, h.back)
		}
	}
	if why == "" && h.taken {
		why = "another zone has all its pods again"
	}
	return why
}
