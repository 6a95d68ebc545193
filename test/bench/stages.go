package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/test/auditlog"
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

// isOfHandover reports whether the request says something of a handover.
func (r *request) isOfHandover() bool {
	return r.byOperator() || strings.HasPrefix(r.User.Username, "system:node:") && auditlog.Resource(r.Event) == "pods/status"
}

func (r *request) byOperator() bool { return r.User.Username == deployedOperator }

// stagesOf finds the stages of one handover.
func stagesOf(requests []*request, namespace string, old, next testimony.Run) stages {
	return findStages(requests, namespace, old.Pod, next.Pod, wall(old.End), wall(next.Start))
}

// wall is that time by the clock of the audit log.
func wall(at int64) time.Time { return time.Now().Add(time.Duration(at - testimony.Now())) }

func findStages(requests []*request, namespace, oldPod, nextPod string, exit, start time.Time) stages {
	requests = slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return r.ObjectRef.Namespace != namespace || r.refused() })
	// Backwards from the grant, since what comes before it comes often.
	last := func(before time.Time, what, name string) *request {
		for _, r := range slices.Backward(requests) {
			if r.answered().Before(before) && r.what() == what && (name == "" || r.ObjectRef.Name == name) {
				return r
			}
		}
		return nil
	}
	// A write of the holder comes with a grant.
	var grant *request
	holder := last(start, "patch statefulsingletons/status", "")
	for ; holder != nil; holder = last(holder.received(), "patch statefulsingletons/status", "") {
		if i := slices.IndexFunc(requests, func(r *request) bool { return r.grants(holder, nextPod) }); i >= 0 {
			grant = requests[i]
			break
		}
	}
	if holder == nil {
		return stages{}
	}
	// A pass that decides begins with a look at the object itself.
	pass := last(holder.received(), "get statefulsingletons", holder.ObjectRef.Name)
	if pass == nil {
		return stages{}
	}
	said := last(pass.received(), "patch pods/status", oldPod)
	if said == nil || said.answered().Before(exit) {
		return stages{}
	}
	s := stages{known: true,
		reported: said.answered().Sub(exit), noticed: pass.received().Sub(said.answered()), decided: holder.received().Sub(pass.received()),
		granted: grant.answered().Sub(holder.received()), started: start.Sub(grant.answered())}
	for _, r := range requests {
		switch {
		case !r.byOperator(), r.received().Before(pass.received()), !r.received().Before(holder.received()):
		case r.isWrite():
			s.between++
		default:
			s.reads++
		}
	}
	return s
}

// grants reports whether it lets a pod go on, as the holder says.
func (r *request) grants(holder *request, pod string) bool {
	return r.what() == "patch pods" && r.ObjectRef.Name == pod && r.byOperator() &&
		!r.received().Before(holder.answered()) && r.received().Sub(holder.answered()) < 100*time.Millisecond
}

// medianStages says where the time goes.
func medianStages(seen []handover) string {
	var columns [5][]time.Duration
	var reads, writes []int
	for _, h := range seen {
		if !h.spent.known {
			continue
		}
		for i, d := range h.spent.all() {
			columns[i] = append(columns[i], d)
		}
		reads, writes = append(reads, h.spent.reads), append(writes, h.spent.between)
	}
	if len(reads) == 0 {
		return "no stages are known"
	}
	middle := func(column int) float64 { return milliseconds(quantile(columns[column], 0.5)) }
	return fmt.Sprintf("medians of the stages of %d: exit to kubelet's report %.0f ms, to the deciding pass %.0f ms, to the holder %.0f ms (%d reads, %d other writes), to the grant %.0f ms, to the start %.0f ms",
		len(reads), middle(0), middle(1), middle(2), quantile(reads, 0.5), quantile(writes, 0.5), middle(3), middle(4))
}
