package statefulsingleton_test

import "slices"

// key is a compact encoding of a state.
type key [3]uint64

// renaming is a permutation of equivalent actors: pods of one node, and operators, with
// their objects if there are two.
type renaming struct {
	pods, operators, objects []int
	slots                    [4]uint64 // the new slot for each slot
	sets                     [8]uint64 // the new set for each set of pods
}

func (m *model) renamings() []renaming {
	pods := [][]int{{0, 1, 2}, {1, 0, 2}}
	switch {
	case m.nodes == 2:
		pods = pods[:1]
	case m.pods == 3:
		pods = append(pods, []int{0, 2, 1}, []int{1, 2, 0}, []int{2, 0, 1}, []int{2, 1, 0})
	}
	operators := [][]int{{0, 1}, {1, 0}}
	if m.operators == 1 {
		operators = operators[:1]
	}
	var all []renaming
	for _, p := range pods {
		for _, o := range operators {
			r := renaming{pods: p, operators: o, objects: []int{0, 1}}
			if m.objects == 2 {
				r.objects = o
			}
			for to, from := range p {
				r.slots[from+1] = uint64(to + 1)
				for set := range r.sets {
					r.sets[set] |= uint64(set>>from&1) << to
				}
			}
			all = append(all, r)
		}
	}
	return all
}

func (k key) smaller(other key) key {
	if slices.Compare(other[:], k[:]) < 0 {
		return other
	}
	return k
}

func (s *state) key(r *renaming) key {
	var pods, rest uint64
	for _, from := range r.pods {
		pods = pods<<podBits | s.pods[from].bits(r)
	}
	for i := range s.nodes {
		n, o := &s.nodes[i], &s.objects[r.objects[i]]
		rest = rest<<4 | uint64(n.machine)<<2 | uint64(n.word)
		rest = rest<<6 | is(o.made)<<5 | is(o.settled)<<4 | is(o.dying)<<3 | is(o.younger)<<2 | r.slots[o.holder]
	}
	for _, from := range r.operators {
		rest = rest<<14 | s.operators[from].bits(r)
	}
	return key{pods, rest, s.leaseBits(r)}
}

const podBits = 20

func (p *pod) bits(r *renaming) uint64 {
	b := is(p.late)<<5 | is(p.made)<<4 | is(p.gated)<<3 | is(p.kept)<<2 | is(p.dying)<<1 | is(p.unwatched)
	b = b<<2 | uint64(p.grant)
	b = b<<2 | uint64(p.phase)
	b = b<<2 | uint64(p.shown)
	b = b<<2 | uint64(p.labels)
	b = b<<3 | uint64(p.program)
	return b<<3 | r.sets[p.beside]
}

func (o *process) bits(r *renaming) uint64 {
	b := uint64(o.at)<<3 | is(o.newest)<<2 | is(o.same)<<1 | is(o.gone)
	b = b<<2 | r.slots[o.target]
	b = b<<2 | r.slots[o.holder]
	return b<<2 | uint64(o.fenced)
}

func is(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}
