package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Differences compares the steps of a plan with those that happened. The same steps must have happened, and steps
// of an earlier batch must have begun before those of a later one. randomNames is true if the
// names of new pods and claims are random. drained is the Node that is drained; "" if none is.
func Differences(planned, happened []Step, randomNames bool, drained string) (differences []string) {
	want, got := identities(planned, randomNames), identities(happened, randomNames)
	inPlan, inFact := counts(want), counts(got)
	all := maps.Clone(inPlan)
	maps.Copy(all, inFact)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if w, g := inPlan[id], inFact[id]; w != g {
			differences = append(differences, fmt.Sprintf("%s: planned %d times, happened %d times", id, w, g))
		}
	}
	if len(differences) > 0 {
		return differences
	}
	return misordered(planned, want, got, drained)
}

// identities returns a text for each step that is equal for equal steps.
func identities(steps []Step, randomNames bool) []string {
	isNew := map[string]bool{}
	for _, s := range steps {
		if randomNames && (s.Action == CreatePod || s.Action == CreateClaim) {
			isNew[s.Name] = true
		}
	}
	named := func(name string) string {
		if isNew[name] {
			return "(new)"
		}
		return name
	}
	ids := make([]string, len(steps))
	for i, s := range steps {
		parts := []string{string(s.Action), named(s.Name)}
		if s.Action == Handover {
			parts = append(parts, "to", named(s.To), "as", s.Role)
		}
		ids[i] = strings.Join(parts, " ")
	}
	return ids
}

func counts(ids []string) map[string]int {
	n := map[string]int{}
	for _, id := range ids {
		n[id]++
	}
	return n
}

// misordered returns the pairs of steps that happened in another order. The nth of several equal steps is the nth
// one that happened.
func misordered(planned []Step, want, got []string, drained string) (differences []string) {
	places := map[string][]int{}
	for i, id := range got {
		places[id] = append(places[id], i)
	}
	place := make([]int, len(planned))
	for i, id := range want {
		place[i], places[id] = places[id][0], places[id][1:]
	}
	for i := range planned {
		for j := range planned {
			if planned[i].Batch < planned[j].Batch && place[i] > place[j] && haveOrder(planned[i], planned[j], drained) {
				differences = append(differences, fmt.Sprintf("%s: planned before %s, happened after it", want[i], want[j]))
			}
		}
	}
	return differences
}

// haveOrder reports whether the order of two steps is part of a plan. Claims have no order. A handover to a pod and
// the creation of another pod are steps of two controllers, which do not wait for each other. A drain requests all
// evictions at the same time, and which of two pods goes first depends on its retries.
func haveOrder(a, b Step, drained string) bool {
	for _, s := range []Step{a, b} {
		if slices.Contains([]Action{CreateClaim, DeleteClaim, CreateVersion, DeleteVersion, RunJob}, s.Action) {
			return false
		}
	}
	actions := []Action{a.Action, b.Action}
	if isOfDrain(a, drained) && isOfDrain(b, drained) {
		return false
	}
	return !slices.Contains(actions, Handover) || !slices.Contains(actions, CreatePod)
}

// isOfDrain reports whether a step is an eviction from the drained Node, or creates the replacement of an evicted pod.
func isOfDrain(s Step, drained string) bool {
	return drained != "" && (s.Node == drained || s.Action == CreatePod)
}
