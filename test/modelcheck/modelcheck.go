// Package modelcheck searches all states that a model can reach.
package modelcheck

import (
	"flag"
	"slices"
	"strings"
)

var searchLarge = flag.Bool("large", false, "search the large worlds of the models, too")

// Worlds returns the worlds of a model that are searched: the large ones only with flag -large.
func Worlds[W any](worlds, large []W) []W {
	if *searchLarge {
		return slices.Concat(worlds, large)
	}
	return worlds
}

// Model is a model with states of type S.
type Model[S comparable] struct {
	// Next calls reach for each state that one move leads to. Say returns the words of the move with that label.
	Next func(from S, reach func(label int32, to S))
	Say  func(label int32) string
	// Broken reports whether a state violates what the model must guarantee.
	Broken func(S) bool
}

// Search is the set of reached states, nearest first.
type Search[S comparable] struct {
	States  []S
	origins []origin
	say     func(int32) string
}

// origin is the state from which a state was reached, and the label of the move.
type origin struct{ from, label int32 }

// Explore visits all reachable states, breadth first, and stops at a broken one. It returns the index of that
// state, or -1.
func Explore[S comparable](m Model[S]) (*Search[S], int) {
	var first S
	x := &Search[S]{States: []S{first}, origins: []origin{{from: -1}}, say: m.Say}
	known := map[S]bool{first: true}
	for at := 0; at < len(x.States); at++ {
		if m.Broken(x.States[at]) {
			return x, at
		}
		m.Next(x.States[at], func(label int32, to S) {
			if known[to] {
				return
			}
			known[to] = true
			x.States = append(x.States, to)
			x.origins = append(x.origins, origin{int32(at), label})
		})
	}
	return x, -1
}

// Story returns one of the shortest ways to reach a state, a line for each move.
func (x *Search[S]) Story(at int) string {
	var lines []string
	for ; at > 0; at = int(x.origins[at].from) {
		lines = append(lines, x.say(x.origins[at].label))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// Reaches reports whether any state is as wanted.
func (x *Search[S]) Reaches(is func(S) bool) bool { return slices.ContainsFunc(x.States, is) }

// TB is the part of testing.TB that Needs uses.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Holds fails the test if a broken state is reachable.
func Holds[S comparable](t TB, m Model[S]) *Search[S] {
	t.Helper()
	x, at := Explore(m)
	if at >= 0 {
		t.Fatalf("the guarantee is violated:\n%s", x.Story(at))
	}
	t.Logf("%d states", len(x.States))
	return x
}

// Breaks fails the test unless a broken state is reachable. If because is not empty, no broken state may be
// reachable, and because is the reason.
func Breaks[S comparable](t TB, m Model[S], because string) {
	t.Helper()
	x, at := Explore(m)
	switch {
	case at < 0 && because == "":
		t.Fatalf("the guarantee holds in all %d states", len(x.States))
	case at < 0:
		t.Logf("the guarantee holds in all %d states: %s", len(x.States), because)
	case because != "":
		t.Fatalf("the guarantee is violated:\n%s", x.Story(at))
	default:
		t.Logf("the guarantee is violated:\n%s", x.Story(at))
	}
}
