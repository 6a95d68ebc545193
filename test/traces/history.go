package main

import (
	"cmp"
	"maps"
	"slices"
)

// history are the writes of all Leases of a name, one after the other.
type history struct {
	lease string
	lives []life
}

// life are the writes of one Lease, by version. Requests that have changed nothing are left out.
type life []*write

func (l life) first() *write { return l[0] }
func (l life) last() *write  { return l[len(l)-1] }

// histories returns the histories of a trace, by the name of the Lease.
func (t *trace) histories() map[string]*history {
	byUID := map[string]life{}
	for _, w := range t.writes {
		byUID[w.after.uid] = append(byUID[w.after.uid], w)
	}
	all := map[string]*history{}
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		writes := byUID[uid]
		slices.SortStableFunc(writes, func(a, b *write) int {
			return cmp.Or(cmp.Compare(a.after.version, b.after.version), a.received.Compare(b.received))
		})
		writes = slices.CompactFunc(writes, func(a, b *write) bool { return a.after.version == b.after.version })
		name := writes[0].lease
		if all[name] == nil {
			all[name] = &history{lease: name}
		}
		all[name].lives = append(all[name].lives, writes)
	}
	for _, h := range all {
		slices.SortFunc(h.lives, func(a, b life) int { return cmp.Compare(a.first().after.version, b.first().after.version) })
	}
	return all
}

// writes returns all writes.
func (h *history) writes() []*write {
	var all []*write
	for _, l := range h.lives {
		all = append(all, l...)
	}
	return all
}
