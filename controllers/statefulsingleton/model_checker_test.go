package statefulsingleton_test

import (
	"slices"
	"strings"
)

// origin is the state from which a state was reached, and the move.
type origin struct {
	from int32
	move uint8
	by   turn
}

// search is the set of reached states, nearest first. Of states that differ only in the
// order of pods or operators, one is kept.
type search struct {
	m       *model
	turns   [anOperatorOnAPod + 1][]turn
	same    []renaming
	states  []state
	origins []origin
	known   map[key]int32
	now     state
	next    state
	edges   []edge // of moves that help, on request
}

type edge struct{ from, to int32 }

var moves = slices.Concat(users, kubelets, machines, agents, passes())

// explore visits all reachable states, breadth first, and stops at a broken one. It returns
// the index of the broken state, or -1.
func (m *model) explore(keepEdges bool) (*search, int) {
	x := &search{m: m, turns: m.turns(), same: m.renamings(), known: map[key]int32{}}
	x.reach(origin{from: -1})
	for at := 0; ; at++ {
		if at == len(x.states) {
			return x, -1
		}
		if x.states[at].broken() {
			return x, at
		}
		x.now = x.states[at]
		for k := range moves {
			x.try(at, k, keepEdges)
		}
	}
}

func (x *search) try(at, k int, keepEdges bool) {
	mv := &moves[k]
	for _, by := range x.turns[mv.who] {
		if !mv.can(view{x.m, &x.now, by}) {
			continue
		}
		x.next = x.now
		mv.do(view{x.m, &x.next, by})
		x.next.dropRefused(x.m)
		to := x.reach(origin{int32(at), uint8(k), by})
		if keepEdges && mv.helps {
			x.edges = append(x.edges, edge{int32(at), to})
		}
	}
}

func (x *search) reach(by origin) int32 {
	k := x.next.key(&x.same[0])
	for i := range x.same[1:] {
		k = k.smaller(x.next.key(&x.same[i+1]))
	}
	at, ok := x.known[k]
	if !ok {
		at = int32(len(x.states))
		x.known[k] = at
		x.states = append(x.states, x.next)
		x.origins = append(x.origins, by)
	}
	return at
}

// story returns one of the shortest ways to reach a state.
func (x *search) story(at int) string {
	var lines []string
	for ; at > 0; at = int(x.origins[at].from) {
		o := x.origins[at]
		lines = append(lines, moves[o.move].say(o.by))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// deadEnd returns a state from which no helping moves lead to a state without waiting pods,
// so that a waiting pod may never run; -1 if there is none.
func (x *search) deadEnd() int {
	before, first := x.helped()
	good := make([]bool, len(x.states))
	var queue []int32
	for i := range x.states {
		if !x.states[i].someWaits() {
			good[i], queue = true, append(queue, int32(i))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, from := range before[first[at]:first[at+1]] {
			if !good[from] {
				good[from], queue = true, append(queue, from)
			}
		}
	}
	return slices.Index(good, false)
}

// helped returns, for each state, the states from which a helping move leads to it. Those
// for state i begin at first[i].
func (x *search) helped() (before, first []int32) {
	before, first = make([]int32, len(x.edges)), make([]int32, len(x.states)+2)
	for _, e := range x.edges {
		first[e.to+2]++
	}
	for i := range x.states {
		first[i+2] += first[i+1]
	}
	for _, e := range x.edges {
		before[first[e.to+1]] = e.from
		first[e.to+1]++
	}
	return before, first
}
