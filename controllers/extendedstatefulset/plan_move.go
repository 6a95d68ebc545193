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
// The dot is an ordinal of nobody: its old pod is on its way out. Nobody gets it
// before that pod is gone.

// spans are what the StatefulSets of a zone have, by version.
type spans map[int64]span

// arrange says what the StatefulSets of a zone shall have now.
func arrange(w *world, z zone, p *plan) spans {
	have := w.spansOf(z)
	if w.books.Phase == v1alpha1.PhaseCleaningUp && !w.switched() {
		p.WaitFor("", fmt.Sprintf("Service %s selects what serves", activeService(w.set)))
		return have // clients first
	}
	goal := w.books.CurrentVersion
	if w.forward(z) {
		if w.books.Phase == v1alpha1.PhaseCanary && w.replicas == 0 {
			p.WaitFor("", "there are replicas to try it with")
		}
		goal = w.books.UpdateVersion
		if w.books.Update.Handover == v1alpha1.HandoverCoexist {
			return coexist(w, z, have)
		}
	}
	if _, exists := have[goal]; !exists && !w.known(goal) {
		return have
	}
	return move(w, z, have, goal, p)
}

// known tells whether the content of a version is that of the template, so that
// its StatefulSets can be made.
func (w *world) known(number int64) bool {
	return number == w.books.CurrentVersion && w.books.CurrentDigest == w.digest ||
		w.books.Update != nil && number == w.books.UpdateVersion && w.books.Update.Digest == w.digest
}

// forward tells whether the new version may take something in that zone.
func (w *world) forward(z zone) bool {
	u := w.books.Update
	if u == nil || u.Returning {
		return false
	}
	switch w.books.Phase {
	case v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhasePostJob:
		c := w.child(z.index, w.books.UpdateVersion)
		return u.Zone == z.name || c != nil && c.span().replicas > 0
	}
	return false
}

// returning tells whether what a version took is being given back.
func (w *world) returning() bool { return w.unreturned(w.books.CurrentVersion) != "" }

// coexist gives the new version canaries, then all, and the old one all.
func coexist(w *world, z zone, have spans) spans {
	want := maps.Clone(have)
	for number, s := range want {
		want[number] = span{start: s.start}
	}
	want[w.books.CurrentVersion] = span{0, w.reach(z, have[w.books.CurrentVersion])}
	n := w.reach(z, have[w.books.UpdateVersion])
	if w.books.Phase == v1alpha1.PhaseCanary && w.books.Update.Zone == z.name {
		n = min(max(w.canaries(), have[w.books.UpdateVersion].replicas), n)
	}
	want[w.books.UpdateVersion] = span{0, n}
	return want
}

// move is the next step on the way to a goal that has every ordinal.
func move(w *world, z zone, have spans, goal int64, p *plan) spans {
	want := maps.Clone(have)
	trim(want, goal, w.replicas)
	if !maps.Equal(want, have) {
		return want
	}
	_, exists := want[goal]
	if !exists {
		want[goal] = span{start: w.replicas}
	}
	if first, some := want.firstFree(w.replicas); some {
		fill(w, z, want, goal, first, p)
		return want
	}
	from, ordinal := want.next(goal, goal == w.books.CurrentVersion)
	if from == 0 || !exists || !w.mayTake(z, want, goal, from, ordinal, p) {
		return want
	}
	s := want[from]
	if ordinal == s.start {
		s.start++
	}
	s.replicas--
	want[from] = s
	return want
}

// trim takes ordinals above the number of replicas from everybody, and what two
// have from those that come after the goal. Only somebody else's edit, or an
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

// free are the ordinals of nobody, upwards or downwards. Each is asked about when its
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

// firstFree is the lowest ordinal of nobody, if there is one.
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

// fill gives ordinals of nobody to the goal where they are next to what it has,
// and else to a neighbour: but not before the pods that were there are gone.
func fill(w *world, z zone, all spans, goal int64, first int32, p *plan) {
	down := goal != w.books.CurrentVersion || all[goal].replicas > 0 && first < all[goal].start
	for range 2 { // what the first round gave may be next to what was passed over
		for o := range all.free(w.replicas, down) {
			if w.left(z, o) {
				continue
			}
			if to := all.heir(o, goal, w.enough(z, all, goal)); to == 0 {
				continue
			} else if why := cmp.Or(w.withheld(z, o), w.heldByOther(z, to, o)); why != "" {
				p.WaitFor("", why)
			} else {
				all[to] = all[to].with(o)
			}
		}
	}
}

// heir is who gets an ordinal: the goal if it can, or a neighbour; 0 if neither
// can yet. A goal that has enough comes last.
func (all spans) heir(ordinal int32, goal int64, enough bool) int64 {
	able := all[goal].replicas == 0 || all[goal].touches(ordinal)
	if able && !enough {
		return goal
	}
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if number != goal && (all[number].touches(ordinal) && all[number].replicas > 0 || enough && all[number].replicas == 0) {
			return number
		}
	}
	if able {
		return goal
	}
	return 0
}

// enough tells whether a goal that has to prove itself has its canaries.
func (w *world) enough(z zone, all spans, goal int64) bool {
	return goal != w.books.CurrentVersion && w.books.Phase == v1alpha1.PhaseCanary && w.books.Update.Zone == z.name && all[goal].replicas >= w.canaries()
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

// heldByOther says why an ordinal cannot be given to a version yet: a pod of
// another is there, or may come, as long as the StatefulSet controller has not seen
// that the other has it no more. "" if it can.
func (w *world) heldByOther(z zone, number int64, ordinal int32) string {
	for _, t := range w.tenants {
		if t.zone == z.index && t.ordinal == ordinal && t.version != number {
			return fmt.Sprintf("pod %s ends", t.pod.Name)
		}
	}
	for _, c := range w.children {
		if c.zone == z.index && c.version != number && c.set.Status.ObservedGeneration < c.set.Generation {
			return fmt.Sprintf("StatefulSet %s is observed by its controller", c.set.Name)
		}
	}
	for _, c := range w.rivals {
		if c.zone == z.index && c.span().has(ordinal) && len(w.set.Spec.Template.Spec.VolumeClaimTemplates) > 0 {
			return fmt.Sprintf("StatefulSet %s is gone, which is not this object's and whose pods have its claims", c.set.Name)
		}
	}
	return ""
}

// doomed is the claim of an ordinal that somebody deleted, and that goes for good
// with the pod that has it; "" if none.
func (w *world) doomed(z zone, ordinal int32) string {
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		name := claimName(w.set.Name, t.Name, z, ordinal)
		if c := w.claims[name]; c != nil && c.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// next is what the goal takes next, and from whom: downwards from where it is, or
// from the top, and on a way back upwards. 0 when it has all.
func (all spans) next(goal int64, back bool) (from int64, ordinal int32) {
	s := all[goal]
	if s.replicas > 0 {
		if from = all.owner(s.start - 1); from != 0 {
			return from, s.start - 1
		}
		return all.owner(s.end()), s.end()
	}
	for number, other := range all {
		switch {
		case other.replicas == 0:
		case from == 0 || back && other.start < ordinal:
			from, ordinal = number, other.start
		}
		if other.replicas > 0 && !back && other.end()-1 > ordinal {
			from, ordinal = number, other.end()-1
		}
	}
	return from, ordinal
}

// mayTake tells whether an ordinal may change hands: only one whose pod serves
// nobody, or while all others serve.
func (w *world) mayTake(z zone, all spans, goal int64, from int64, ordinal int32, p *plan) bool {
	back := goal == w.books.CurrentVersion
	if name := w.doomed(z, ordinal); name != "" {
		p.WaitFor("", fmt.Sprintf("claim %s is safe: somebody deleted it, and it goes with its data when its pod ends", name))
		return false
	}
	if why := w.withheld(z, ordinal); why != "" {
		p.WaitFor("", why)
		return false
	}
	if !back {
		if w.enough(z, all, goal) {
			p.WaitFor("", "the canaries have proven themselves")
			return false
		}
		c, want := w.child(z.index, goal), all[goal].replicas
		good := w.serving(c, w.replicas)
		if c != nil && w.books.Phase == v1alpha1.PhaseCanary { // the next canary too would be down
			good = w.proven(c)
		}
		if good < want {
			p.WaitFor("", fmt.Sprintf("%s has %d of %d pods available", c.set.Name, want, want))
			return false
		}
	}
	if c := w.child(z.index, from); c == nil || !w.available(c.pods[ordinal]) || !back && w.set.Spec.UpdateStrategy.UpdateNotReady {
		return true
	}
	why := w.absent(z, all, ordinal, back)
	for _, other := range w.zones {
		if other != z && why == "" {
			why = w.absent(other, w.spansOf(other), -1, back)
		}
	}
	if p.taken && why == "" {
		why = "another zone has its pod back"
	}
	p.WaitFor("", why)
	p.taken = p.taken || why == ""
	return why == ""
}

// spansOf are what the StatefulSets of a zone have.
func (w *world) spansOf(z zone) spans {
	have := spans{}
	for _, c := range w.children {
		if c.zone == z.index && !c.going() {
			have[c.version] = c.span()
		}
	}
	return have
}

// unreturned says what versions other than that one still have; "" if nothing.
func (w *world) unreturned(current int64) string {
	for _, c := range w.children {
		if c.version == current || !w.wanted(c.zone) || w.child(c.zone, current) == nil && !w.known(current) {
			continue // nobody is there to give anything back to
		}
		if c.span().replicas > 0 || len(c.pods) > 0 {
			return fmt.Sprintf("%s still has pods", c.set.Name)
		}
	}
	for _, z := range w.zones {
		if c := w.child(z.index, current); c != nil && c.span() != (span{0, w.replicas}) {
			return fmt.Sprintf("%s has not got all its ordinals back", c.set.Name)
		}
	}
	return ""
}

// notReady says what of a version is not available; "" if all is.
func (w *world) notReady(number int64) string {
	for _, z := range w.zones {
		c := w.child(z.index, number)
		if c == nil {
			continue
		}
		if n := w.serving(c, w.replicas); n < w.replicas {
			return fmt.Sprintf("%s has %d of %d pods available", c.set.Name, n, w.replicas)
		}
	}
	return ""
}
