package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/test/auditlog"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// stages are the parts of the gap between two programs, measured from the API server's audit log.
type stages struct {
	reported time.Duration // from the program's exit until the kubelet has reported it
	noticed  time.Duration // until the operator starts the reconcile that decides
	decided  time.Duration // until it writes the holder
	granted  time.Duration // until the API server receives the grant
	started  time.Duration // until the next program starts: the kubelet and the gate
	known    bool
	reads    int // of the operator, from the start of that reconcile to the holder
	between  int // its other writes in that time
}

func (s stages) all() []time.Duration {
	return []time.Duration{s.reported, s.noticed, s.decided, s.granted, s.started}
}

// isOfHandover reports whether the request can be part of a handover.
func (r *request) isOfHandover() bool {
	return r.byOperator() || strings.HasPrefix(r.User.Username, "system:node:") && auditlog.Resource(r.Event) == "pods/status"
}

func (r *request) byOperator() bool { return r.User.Username == deployedOperator }

// stagesOf returns the stages of one handover.
func stagesOf(requests []*request, namespace string, old, next testimony.Run) stages {
	return findStages(requests, namespace, old.Pod, next.Pod, wall(old.End), wall(next.Start))
}

// wall converts a time of the run logs to the audit log's clock.
func wall(at int64) time.Time { return time.Now().Add(time.Duration(at - testimony.Now())) }

func findStages(requests []*request, namespace, oldPod, nextPod string, exit, start time.Time) stages {
	requests = slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return r.ObjectRef.Namespace != namespace || r.refused() })
	// Search backwards from the grant, because the earlier requests are frequent.
	last := func(before time.Time, what, name string) *request {
		for _, r := range slices.Backward(requests) {
			if r.answered().Before(before) && r.what() == what && (name == "" || r.ObjectRef.Name == name) {
				return r
			}
		}
		return nil
	}
	// A write of the holder is followed by a grant.
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
	// A deciding reconcile starts with a read of the object.
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

// grants reports whether the request grants the run to the pod, right after the write of the holder.
func (r *request) grants(holder *request, pod string) bool {
	return r.what() == "patch pods" && r.ObjectRef.Name == pod && r.byOperator() &&
		!r.received().Before(holder.answered()) && r.received().Sub(holder.answered()) < 100*time.Millisecond
}

// medianStages returns the median of each stage as text.
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
