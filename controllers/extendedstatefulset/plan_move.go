package extendedstatefulset

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Ordinals of a zone belong to the StatefulSets of its versions, each of which has
// those from spec.ordinals.start, as many as spec.replicas. The goal takes from
// its neighbours, one ordinal at a time:
//
//	v1 0 1 2 3   v1 0 1 2 .   v1 0 1 2     and on the way back the same from the
//	v2           v2           v2       3   other side, with v1 as the goal
//
// The dot is an ordinal without an owner: its old pod is on its way out. No version
// gets it before that pod is gone.

// spans are what the StatefulSets of a zone have, by version.
type spans map[int64]span

// handover is what the StatefulSets of a zone get in this pass.
type handover struct {
	w    *world
	zone zone
	// have is what they have, and want what they get.
	have, want spans
	// goal is the version that gets every ordinal, and back says that it is the one that
	// served before: what another took is given back.
	goal int64
	back bool
	// taken is true when a pod that serves is taken from it in this pass, in this zone or
	// in one before; no other is then.
	taken bool
	// waits says what is waited for first; "" if nothing is.
	waits string
}

// arrange says what the StatefulSets of a zone get now. taken says that a pod that serves
// is taken in another zone already.
func arrange(w *world, z zone, taken bool) *handover {
	h := &handover{w: w, zone: z, have: w.spansOf(z), goal: w.record.CurrentVersion, taken: taken}
	h.want = h.have
	if w.record.Phase == v1alpha1.PhaseCleaningUp && !w.traffic().switched() {
		h.waitFor(fmt.Sprintf("Service %s selects what serves", activeService(w.set)))
		return h // clients first
	}
	if w.forward(z) {
		if w.record.Phase == v1alpha1.PhaseCanary && w.replicas == 0 {
			h.waitFor("there are replicas to try it with")
		}
		h.goal = w.record.UpdateVersion
		if w.record.Update.Handover == v1alpha1.HandoverCoexist {
			h.want = coexist(w, z, h.have)
			return h
		}
	}
	h.back = h.goal == w.record.CurrentVersion
	if _, exists := h.have[h.goal]; exists || w.known(h.goal) {
		h.move()
	}
	return h
}

// waitFor notes what is waited for; the first has the word.
func (h *handover) waitFor(what string) { h.waits = cmp.Or(h.waits, what) }

// known reports whether the content of a version is that of the template, so that
// its StatefulSets can be made.
func (w *world) known(number int64) bool {
	if number == w.record.CurrentVersion && w.record.CurrentDigest == w.digest {
		return true
	}
	u := w.record.Update
	return u != nil && number == w.record.UpdateVersion && u.Digest == w.digest
}

// forward reports whether the new version may take something in that zone.
func (w *world) forward(z zone) bool {
	u := w.record.Update
	if u == nil || u.Returning {
		return false
	}
	switch w.record.Phase {
	case v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhasePostJob:
		c := w.children.find(z.index, w.record.UpdateVersion)
		begun := c != nil && c.span().replicas > 0
		return begun || u.Zone == z.name
	}
	return false
}

// returning reports whether what a version took is being given back.
func (w *world) returning() bool { return w.standing(w.record.CurrentVersion).unreturned() != "" }

// spansOf are what the StatefulSets of a zone have.
func (w *world) spansOf(z zone) spans {
	have := spans{}
	for _, c := range w.children {
		if c.zone == z.index && !c.terminating() {
			have[c.version] = c.span()
		}
	}
	return have
}

// coexist gives the new version canaries, then all, and the old one all.
func coexist(w *world, z zone, have spans) spans {
	want := maps.Clone(have)
	for number, s := range want {
		want[number] = span{start: s.start}
	}
	want[w.record.CurrentVersion] = span{0, w.storage().reach(z, have[w.record.CurrentVersion])}
	n := w.storage().reach(z, have[w.record.UpdateVersion])
	if w.record.Phase == v1alpha1.PhaseCanary && w.record.Update.Zone == z.name {
		n = min(max(w.canaries(), have[w.record.UpdateVersion].replicas), n)
	}
	want[w.record.UpdateVersion] = span{0, n}
	return want
}

// move is the next step on the way to a goal that has every ordinal.
func (h *handover) move() {
	h.want = maps.Clone(h.have)
	trim(h.want, h.goal, h.w.replicas)
	if !maps.Equal(h.want, h.have) {
		return
	}
	_, exists := h.want[h.goal]
	if !exists {
		h.want[h.goal] = span{start: h.w.replicas}
	}
	if first, some := h.want.firstFree(h.w.replicas); some {
		h.fill(first)
		return
	}
	if from, ordinal := h.want.next(h.goal, h.back); from != 0 && exists {
		h.take(from, ordinal)
	}
}

// trim takes ordinals above the number of replicas from all versions, and what two
// have from those that come after the goal. Only the edit of another client, or an
// upgrade with Coexist that is given up, leaves two with one ordinal.
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

// free are the ordinals without an owner, upwards or downwards. Each is asked about when its
// turn comes: one that got an owner meanwhile is none any more.
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

// firstFree is the lowest ordinal without an owner, if there is one.
func (all spans) firstFree(replicas int32) (ordinal int32, some bool) {
	for o := range all.free(replicas, false) {
		return o, true
	}
	return 0, false
}

// owner is the version that has an ordinal; 0 if none has.
func (all spans) owner(ordinal int32) int64 {
	for number, s := range all {
		if s.has(ordinal) {
			return number
		}
	}
	return 0
}

// fill gives ordinals without an owner to the goal where they are next to what it has,
// and else to a neighbour: but not before the pods that were there are gone.
func (h *handover) fill(first int32) {
	goal := h.want[h.goal]
	down := !h.back || (goal.replicas > 0 && first < goal.start)
	for range 2 { // what the first round gave may be next to what was passed over
		for o := range h.want.free(h.w.replicas, down) {
			h.give(o)
		}
	}
}

// give gives an ordinal without an owner to the version that gets it, if it may have it
// yet.
func (h *handover) give(ordinal int32) {
	if h.w.left(h.zone, ordinal) {
		return
	}
	to := h.want.successor(ordinal, h.goal, h.enough())
	if to == 0 {
		return
	}
	if why := cmp.Or(h.w.storage().withheld(h.zone, ordinal), h.held(to, ordinal)); why != "" {
		h.waitFor(why)
		return
	}
	h.want[to] = h.want[to].with(ordinal)
}

// successor is the version that gets an ordinal: the goal if it can, or a neighbour; 0 if
// neither can yet. A goal that has enough comes last.
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

// takesOver reports whether a neighbour of the goal gets an ordinal: one that touches
// it, or one that has none if the goal has enough.
func (s span) takesOver(ordinal int32, enough bool) bool {
	if s.replicas == 0 {
		return enough
	}
	return s.touches(ordinal)
}

// enough reports whether a goal that has to prove itself has its canaries.
func (h *handover) enough() bool {
	if h.back || h.w.record.Phase != v1alpha1.PhaseCanary || h.w.record.Update.Zone != h.zone.name {
		return false
	}
	return h.want[h.goal].replicas >= h.w.canaries()
}

func (s span) touches(ordinal int32) bool { return ordinal == s.end() || ordinal == s.start-1 }

// with is the span with an ordinal that it touches, or nothing but it.
func (s span) with(ordinal int32) span {
	switch {
	case s.replicas == 0:
		return span{ordinal, 1}
	case ordinal < s.start:
		return span{ordinal, s.replicas + 1}
	}
	return span{s.start, s.replicas + 1}
}

// without is the span without its first or last ordinal.
func (s span) without(ordinal int32) span {
	if ordinal == s.start {
		return span{s.start + 1, s.replicas - 1}
	}
	return span{s.start, s.replicas - 1}
}

// held says why an ordinal cannot be given to a version yet; "" if it can.
func (h *handover) held(to int64, ordinal int32) string {
	return cmp.Or(h.heldByPod(to, ordinal), h.heldByUnobserved(to), h.heldByRival(ordinal))
}

// heldByPod: a pod of another version is still there.
func (h *handover) heldByPod(to int64, ordinal int32) string {
	others := func(p podOfOrdinal) bool { return p.isOn(h.zone, ordinal) && p.version != to }
	if p, some := first(h.w.pods, others); some {
		return fmt.Sprintf("pod %s ends", p.pod.Name)
	}
	return ""
}

// heldByUnobserved: a pod of another version may come, as long as the StatefulSet
// controller has not seen that the other has the ordinal no more.
func (h *handover) heldByUnobserved(to int64) string {
	unobserved := func(c *child) bool { return c.zone == h.zone.index && c.version != to && !c.observed() }
	if c, some := first(h.w.children, unobserved); some {
		return fmt.Sprintf("StatefulSet %s is observed by its controller", c.set.Name)
	}
	return ""
}

// heldByRival: a StatefulSet that is not ours any more has pods on our claims.
func (h *handover) heldByRival(ordinal int32) string {
	if len(h.w.set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	has := func(c *child) bool { return c.zone == h.zone.index && c.span().has(ordinal) }
	if c, some := first(h.w.rivals, has); some {
		return fmt.Sprintf("StatefulSet %s is gone, which is not this object's and whose pods have its claims", c.set.Name)
	}
	return ""
}

// next is what the goal takes next, and from whom: downwards from where it is, or
// from the top, and on a way back upwards. from is 0 when it has all.
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

// lowest is the lowest ordinal that any version has, and the version; 0 if none has.
func (all spans) lowest() (from int64, ordinal int32) {
	for number, s := range all {
		if s.replicas > 0 && (from == 0 || s.start < ordinal) {
			from, ordinal = number, s.start
		}
	}
	return from, ordinal
}

// highest is the highest ordinal that any version has, and the version; 0 if none has.
func (all spans) highest() (from int64, ordinal int32) {
	for number, s := range all {
		if s.replicas > 0 && (from == 0 || s.end()-1 > ordinal) {
			from, ordinal = number, s.end()-1
		}
	}
	return from, ordinal
}

// take takes an ordinal from a version, for the goal: one whose pod does not serve, or
// one while all others serve.
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

// unsafe says why the claims of an ordinal must stay with its pod; "" if they need not.
func (h *handover) unsafe(ordinal int32) string {
	if name := h.w.storage().deletedClaim(h.zone, ordinal); name != "" {
		return fmt.Sprintf("claim %s is safe: it was deleted, and its data is lost when its pod ends", name)
	}
	return h.w.storage().withheld(h.zone, ordinal)
}

// unproven says why a goal that has to prove itself gets no more for now; "" if it may.
func (h *handover) unproven() string {
	if h.back {
		return ""
	}
	if h.enough() {
		return "the canaries have proven themselves"
	}
	c, want := h.w.children.find(h.zone.index, h.goal), h.want[h.goal].replicas
	good := h.w.serving(c)
	if h.w.record.Phase == v1alpha1.PhaseCanary { // the next canary too would be down
		good = h.w.proven(c)
	}
	if good < want {
		return fmt.Sprintf("%s has %d of %d pods available", c.set.Name, want, want)
	}
	return ""
}

// costsService reports whether a pod that serves is lost with an ordinal, as far as the
// user cares.
func (h *handover) costsService(from int64, ordinal int32) bool {
	if !h.back && h.w.set.Spec.UpdateStrategy.UpdateNotReady {
		return false
	}
	c := h.w.children.find(h.zone.index, from)
	return c != nil && h.w.clock().available(c.pods[ordinal])
}

// othersDown says which other ordinal does not serve, in any zone; "" if all do.
func (h *handover) othersDown(ordinal int32) string {
	why := h.w.absent(h.zone, h.want, ordinal, h.back)
	for _, other := range h.w.zones {
		if other != h.zone && why == "" {
			why = h.w.absent(other, h.w.spansOf(other), -1, h.back)
		}
	}
	if why == "" && h.taken {
		why = "another zone has its pod back"
	}
	return why
}
