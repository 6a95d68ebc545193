package statefulsingleton_test

import "strings"

// turn identifies the actor of a move: a pod and its node, a node, an object, or an
// operator, which has an object and may read a pod.
type turn struct{ op, i, nodeAt, objectAt int8 }

// view is one state from the perspective of an actor.
type view struct {
	m *model
	s *state
	turn
}

func (v view) pod() *pod         { return &v.s.pods[v.i] }
func (v view) node() *node       { return &v.s.nodes[v.nodeAt] }
func (v view) object() *object   { return &v.s.objects[v.objectAt] }
func (v view) process() *process { return &v.s.operators[v.op] }

// of returns the same view for another pod.
func (v view) of(pod int) view {
	v.i, v.nodeAt = int8(pod), int8(pod%v.m.nodes)
	return v
}

// move is one event that can happen.
type move struct {
	words string // with placeholders POD, NODE, OBJECT and OPERATOR for the actor
	who   who
	can   func(view) bool
	do    func(view)
	helps bool
}

// A move helps if a healthy cluster makes it eventually.
const (
	helps  = true
	mishap = false
)

type who uint8

const (
	aPod who = iota
	aNode
	anObject
	aLease
	anOperator
	anOperatorOnAPod
)

// turns returns all possible actors, by kind.
func (m *model) turns() (all [anOperatorOnAPod + 1][]turn) {
	for i := range m.pods {
		all[aPod] = append(all[aPod], view{m: m}.of(i).turn)
	}
	for i := range m.nodes {
		all[aNode] = append(all[aNode], turn{nodeAt: int8(i)})
	}
	for i := range m.objects {
		all[anObject] = append(all[anObject], turn{objectAt: int8(i)})
	}
	all[aLease] = []turn{{}}
	for op := range m.operators {
		by := turn{op: int8(op), objectAt: int8(op % m.objects)}
		all[anOperator] = append(all[anOperator], by)
		for i := range m.pods {
			all[anOperatorOnAPod] = append(all[anOperatorOnAPod], view{m: m, turn: by}.of(i).turn)
		}
	}
	return all
}

func (mv *move) say(by turn) string {
	return strings.NewReplacer("POD", string(rune('a'+by.i)), "NODE", string(rune('1'+by.nodeAt)),
		"OBJECT", string(rune('1'+by.objectAt)), "OPERATOR", string(rune('X'+by.op))).Replace(mv.words)
}

// Moves of users and controllers, and the API server's reactions.
var users = []move{
	{"pod POD is created with the gate", aPod, view.canMakeGate, func(v view) { v.makeGated(noGrant) }, mishap},
	{"pod POD is created with an agent", aPod, view.canMakeLeased, view.makeLeased, mishap},
	{"the Lease is deleted", aLease, view.canLoseLease, view.loseLease, mishap},
	{"pod POD is created with the gate and the grant of an older pod", aPod, view.canCopy, func(v view) { v.makeGated(foreignGrant) }, mishap},
	{"pod POD is created without the gate", aPod, view.canMakeUngated, view.makeUngated, mishap},
	{"pod POD is deleted", aPod, view.canDelete, view.delete, mishap},
	{"pod POD is deleted for a newer waiting pod", aPod, view.superseded, view.delete, helps},
	{"pod POD, which the kubelet rejected, is deleted", aPod, view.canDeleteRefused, view.delete, helps},
	{"pod POD is force deleted", aPod, view.canForceDelete, view.forceDelete, mishap},
	{"pod POD loses the labels of the selector", aPod, view.canRelabel, func(v view) { v.relabel(marked) }, mishap},
	{"pod POD loses all its labels", aPod, view.canUnlabel, func(v view) { v.relabel(stranger) }, mishap},
	{"object OBJECT is created", anObject, view.canMakeObject, view.makeObject, helps},
	{"object OBJECT is created with a creationTimestamp that is too early", anObject, view.canSkew, view.makeObjectEarly, mishap},
	{"object OBJECT is known to every guard", anObject, view.canSettle, func(v view) { v.object().settled = true }, helps},
	{"object OBJECT is deleted", anObject, view.canDeleteObject, view.deleteObject, mishap},
}

func (v view) canMakeGated() bool {
	return *v.pod() == pod{} && (v.s.objects[0].made || v.s.objects[1].made)
}

// canMakeGate reports whether a pod without an agent can be created.
func (v view) canMakeGate() bool {
	return v.canMakeGated() && (!v.m.has(leases) || v.m.has(mixed))
}

func (v view) canCopy() bool { return v.m.has(copies) && v.canMakeGated() }

func (v view) makeGated(g grant) { *v.pod() = pod{made: true, gated: true, grant: g} }

// guarded reports whether the guard knows an object for which it checks new pods.
func (v view) guarded() bool {
	for _, o := range v.s.objects {
		if o.settled && (!o.dying || v.m.obeys(guardStays)) {
			return true
		}
	}
	return false
}

// held reports whether an object should hold new pods back.
func (v view) held() bool { return v.s.objects[0].settled || v.s.objects[1].settled }

// canMakeUngated reports whether a pod without the gate can be created. The webhook fails
// open, so only the guard prevents it, once it knows an object.
func (v view) canMakeUngated() bool {
	free := !v.guarded() || !v.m.obeys(guard)
	return v.m.has(ungated) && *v.pod() == pod{} && free
}

func (v view) makeUngated() {
	*v.pod() = pod{made: true, unwatched: true, late: !v.m.obeys(newcomersCount) && (v.s.objects[0].dying || v.s.objects[1].dying)}
	if v.held() {
		return // there is no excuse if another program runs at the same time
	}
	for k, other := range v.s.pods {
		started := other.program == working || other.program == crashed
		if k != int(v.i) && (started || other.made && (!other.gated || other.grant == ownGrant)) {
			v.pod().beside |= 1 << k
		}
	}
}

func (v view) canDelete() bool { return v.pod().made && !v.pod().dying }

func (v view) delete() {
	v.pod().dying = true
	v.s.touch(v.i)
}

// superseded reports whether a user, or rule "delete a superseded pod" of the operator, can
// delete a running pod.
func (v view) superseded() bool {
	return v.canDelete() && v.pod().program == working && v.s.someWaits()
}

func (v view) canDeleteRefused() bool {
	return v.m.obeys(refusedAreDeleted) && v.canDelete() && v.pod().refused()
}

func (v view) canForceDelete() bool {
	changes := !v.pod().dying || !v.pod().kept
	return v.m.has(forced) && v.pod().made && changes
}

func (v view) forceDelete() {
	if v.pod().kept {
		v.delete()
		return
	}
	v.s.remove(v.m, v.i)
}

// canRelabel reports whether the guard allows a change of labels. It matters only for a pod
// with a grant.
func (v view) canRelabel() bool {
	p := v.pod()
	free := !v.guarded() || p.phase != living && !p.kept
	return v.m.has(relabels) && p.made && p.grant == ownGrant && p.labels == matching && free
}

// canUnlabel reports whether labels can be removed in a cluster without a guard.
func (v view) canUnlabel() bool {
	p := v.pod()
	return v.m.has(unguarded) && p.made && p.grant == ownGrant && p.labels != stranger
}

func (v view) relabel(to labels) {
	v.pod().labels = to
	v.s.touch(v.i)
}

// rival returns the other object, whose selector overlaps.
func (v view) rival() *object { return &v.s.objects[1-v.objectAt] }

func (v view) canMakeObject() bool { return !v.object().made }

func (v view) canSkew() bool { return v.m.has(skew) && v.canMakeObject() && v.rival().made }

func (v view) canSettle() bool { return v.object().made && !v.object().settled }

func (v view) canDeleteObject() bool {
	return v.m.has(deletions) && v.object().made && !v.object().dying
}

func (v view) makeObject() { *v.object() = object{made: true, younger: v.rival().made} }

func (v view) makeObjectEarly() {
	*v.object() = object{made: true}
	v.rival().younger = true
}

func (v view) deleteObject() {
	v.object().dying = true
	v.s.touchObject(v.m, v.objectAt)
}

func (s *state) someWaits() bool {
	for i := range s.pods {
		if s.pods[i].waiting() && !s.isLeaseHolder(i) {
			return true
		}
	}
	return false
}

// waiting reports whether the pod should start eventually.
func (p *pod) waiting() bool {
	return p.made && p.gated && p.grant != ownGrant && !p.dying && p.phase == living && p.labels == matching
}

// refused reports whether the pod has ended without any container status.
func (p *pod) refused() bool { return p.made && p.phase == ended && p.shown == nothing }
