package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// stages are what the gap between two programs is made of, as the API server's
// audit log tells it.
type stages struct {
	reported time.Duration // from the program's exit until the kubelet has said so
	noticed  time.Duration // from there until the operator begins the pass that decides
	decided  time.Duration // until it writes the holder
	granted  time.Duration // until the API server has its grant
	started  time.Duration // until the next program starts: the kubelet, and the gate
	known    bool
	reads    int // of the operator, from the begin of that pass to the holder
	between  int // its other writes there
}

func (s stages) all() []time.Duration {
	return []time.Duration{s.reported, s.noticed, s.decided, s.granted, s.started}
}

// isOfHandover tells whether the request says something of a handover.
func (r request) isOfHandover() bool {
	return r.User.Username == deployedOperator ||
		strings.HasPrefix(r.User.Username, "system:node:") && r.Object.Resource == "pods" && r.Object.Subresource == "status"
}

// stagesOf finds the stages of one handover.
func stagesOf(requests []request, namespace string, old, next testimony.Run) stages {
	return findStages(requests, namespace, old.Pod, next.Pod, wall(old.End), wall(next.Start))
}

// wall is that time by the clock of the audit log.
func wall(at int64) time.Time { return time.Now().Add(time.Duration(at - testimony.Now())) }

func findStages(requests []request, namespace, oldPod, nextPod string, exit, start time.Time) stages {
	requests = slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return r.Object.Namespace != namespace || r.Answer.Code >= 300 })
	slices.SortStableFunc(requests, func(a, b request) int { return a.Received.Compare(b.Received) })
	// Backwards from the grant, since what comes before it comes often.
	last := func(before time.Time, what, name string) (request, bool) {
		for _, r := range slices.Backward(requests) {
			if r.Answered.Before(before) && r.String() == what && (name == "" || r.Object.Name == name) {
				return r, true
			}
		}
		return request{}, false
	}
	holder, named := last(start, "patch statefulsingletons/status", "")
	for named && !followedBy(requests, holder, nextPod) {
		holder, named = last(holder.Received, "patch statefulsingletons/status", "")
	}
	if !named {
		return stages{}
	}
	grant := requests[slices.IndexFunc(requests, func(r request) bool { return isGrant(r, holder, nextPod) })]
	pass, began := last(holder.Received, "list statefulsingletons", "")
	if !began {
		return stages{}
	}
	said, reported := last(pass.Received, "patch pods/status", oldPod)
	if !reported || said.Answered.Before(exit) {
		return stages{}
	}
	s := stages{known: true,
		reported: said.Answered.Sub(exit), noticed: pass.Received.Sub(said.Answered), decided: holder.Received.Sub(pass.Received),
		granted: grant.Answered.Sub(holder.Received), started: start.Sub(grant.Answered)}
	for _, r := range requests {
		switch {
		case r.User.Username != deployedOperator, r.Received.Before(pass.Received), !r.Received.Before(holder.Received):
		case r.isWrite():
			s.between++
		default:
			s.reads++
		}
	}
	return s
}

// followedBy tells whether the write of the holder came with a grant.
func followedBy(requests []request, holder request, pod string) bool {
	return slices.ContainsFunc(requests, func(r request) bool { return isGrant(r, holder, pod) })
}

func isGrant(r, holder request, pod string) bool {
	return r.String() == "patch pods" && r.Object.Name == pod && r.User.Username == deployedOperator &&
		!r.Received.Before(holder.Answered) && r.Received.Sub(holder.Answered) < 100*time.Millisecond
}

// medianStages says where the time goes.
func medianStages(seen []handover) string {
	var columns [5][]float64
	var reads, writes []float64
	for _, h := range seen {
		if !h.spent.known {
			continue
		}
		for i, d := range h.spent.all() {
			columns[i] = append(columns[i], float64(d.Microseconds())/1000)
		}
		reads, writes = append(reads, float64(h.spent.reads)), append(writes, float64(h.spent.between))
	}
	if len(reads) == 0 {
		return "no stages are known"
	}
	middle := func(values []float64) float64 {
		slices.Sort(values)
		return quantile(values, 0.5)
	}
	return fmt.Sprintf("medians of the stages of %d: exit to kubelet's report %.0f ms, to the deciding pass %.0f ms, to the holder %.0f ms (%.0f reads, %.0f other writes), to the grant %.0f ms, to the start %.0f ms",
		len(reads), middle(columns[0]), middle(columns[1]), middle(columns[2]), middle(reads), middle(writes), middle(columns[3]), middle(columns[4]))
}
