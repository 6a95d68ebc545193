package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// Goals of StatefulSingleton, from section 4 of the contract.
var (
	goalBinary       = bounds{p50: atMost(0.3), p99: atMost(1)} // seconds
	goalInit         = bounds{p50: atMost(1.5)}
	goalReplaceFirst = bounds{p50: atMost(0.6)}
	goalAdmission    = atMost(5) // ms at p99
	goalOverlap      = atMost(0)
	goalGateIsGone   = atMost(0) // processes other than the program
)

// arrangement is a kind of application and a way to trigger the handover of its program.
type arrangement struct {
	name string // of the application and its namespace
	what string
	gate v1.GateMode // "" without a StatefulSingleton
	pods int
	make func(*application) client.Object
	// end ends the program. after undoes the side effects of end.
	end, after func(context.Context, *application, testimony.Run)
	// held is true if the next pod already waits at its gate.
	held bool
	goal bounds
	// asked is true if the time since the request is reported, and not since the old program's end.
	asked bool
	// share is an interval: one handover in this number of rounds.
	share int
	// rules change its StatefulSingleton.
	rules []rule
}

// surge allows one additional pod during a rollout and no missing one.
var surge = witnessset.Rolling(1, 0)

// arrangements alternate, so that other load of the machine affects all of them equally.
var arrangements = []arrangement{
	{name: "binary-surge", what: "Binary, rollout with surge", gate: v1.GateBinary, pods: 1, make: deployment(surge), end: rollOut, held: true, goal: goalBinary, share: 1},
	{name: "binary-standby", what: "Binary, a standby takes over", gate: v1.GateBinary, pods: 2, make: deployment(surge), end: deletePod, held: true, goal: goalBinary, share: 1},
	{name: "init-surge", what: "Init, rollout with surge", gate: v1.GateInit, pods: 1, make: deployment(surge), end: rollOut, held: true, goal: goalInit, share: 1},
	{name: "recreate-ours", what: "Recreate Deployment with a StatefulSingleton", gate: v1.GateBinary, pods: 1, make: deployment(witnessset.Recreate()), end: rollOut, share: 1},
	{name: "recreate", what: "Recreate Deployment alone", pods: 1, make: deployment(witnessset.Recreate()), end: rollOut, share: 1},
	{name: "set-ours", what: "StatefulSet of one with a StatefulSingleton", gate: v1.GateBinary, pods: 1, make: setOfOne, end: rollOut, share: 1},
	{name: "set", what: "StatefulSet of one alone", pods: 1, make: setOfOne, end: rollOut, share: 1},
	{name: "delete-standby", what: "delete, a standby waits", gate: v1.GateBinary, pods: 2, make: deployment(surge), end: deletePod, held: true, asked: true, share: 5},
	{name: "delete", what: "delete, none waits", gate: v1.GateBinary, pods: 1, make: deployment(surge), end: deletePod, asked: true, share: 5},
	{name: "drain-standby", what: "drain, a standby waits", gate: v1.GateBinary, pods: 2, make: deployment(surge), end: drain, after: uncordon, held: true, asked: true, share: 5},
	{name: "drain", what: "drain, none waits", gate: v1.GateBinary, pods: 1, make: deployment(surge), end: drain, after: uncordon, asked: true, share: 5},
	{name: "drain-first", what: "drain, onEviction ReplaceFirst", gate: v1.GateBinary, pods: 1, make: deployment(surge), end: drain, after: uncordon, held: true, goal: goalReplaceFirst, share: 2, rules: []rule{replaceFirst}},
}

func measureSingleton(ctx context.Context, s *site) {
	for _, part := range []func(context.Context, *site){measureGate, measureHandovers, measureLostNode, measureAdmission} {
		part(ctx, s)
	}
}

// handover is the measurement of one handover.
type handover struct {
	gap   time.Duration // between the programs
	asked time.Duration // from the request to the new program's start
	spent stages
}

func measureHandovers(ctx context.Context, s *site) {
	s.alternate(ctx, arrangements, s.size.handovers, func(seen [][]handover) {
		for i, how := range arrangements {
			s.reportHandovers(how, seen[i])
		}
	})
}

// alternate measures handovers of each arrangement, and reports them and the overlaps.
func (s *site) alternate(ctx context.Context, all []arrangement, times int, report func(seen [][]handover)) {
	step("starting %d applications", len(all))
	applications := make([]*application, len(all))
	for i, how := range all {
		within("starting "+how.name, func() { applications[i] = s.newApplication(ctx, how.name, how.gate, how.pods, how.make, how.rules...) })
	}
	seen := make([][]handover, len(all))
	failed := attempt(func() { takeTurns(ctx, all, applications, times, seen) })
	report(seen) // also handovers before a failure
	check(errors.Join(failed, attempt(func() { s.reportOverlaps(applications) })))
}

// takeTurns triggers the given number of handovers, alternating between the applications.
func takeTurns(ctx context.Context, all []arrangement, applications []*application, times int, seen [][]handover) {
	said := time.Now()
	for round := range times {
		if time.Since(said) > progressInterval {
			said = time.Now()
			step("round %d of %d", round+1, times)
		}
		for i, how := range all {
			if round%how.share == 0 {
				within(how.what, func() { seen[i] = append(seen[i], applications[i].handOver(ctx, how)) })
			}
		}
	}
}

// breath is the pause after a handover for its remaining work.
const breath = time.Second

// handOver triggers one handover and waits until the application is settled again.
func (a *application) handOver(ctx context.Context, how arrangement) handover {
	old, mark, asked := a.active(), a.markAudit(), testimony.Now()
	how.end(ctx, a, old)
	old, next := a.next(ctx, old)
	h := handover{gap: time.Duration(next.Start - old.End), asked: time.Duration(next.Start - asked)}
	if how.after != nil {
		how.after(ctx, a, old)
	}
	a.settled(ctx)
	if how.gate != "" {
		h.spent = stagesOf(a.since(mark, (*request).isOfHandover), a.Namespace, old, next)
	}
	pause(ctx, breath)
	return h
}

func (s *site) reportHandovers(how arrangement, seen []handover) {
	title, lengths := "gap, "+how.what, make([]time.Duration, 0, len(seen))
	if how.asked {
		title = "from the request to the next start, " + how.what
	}
	for _, h := range seen {
		if how.asked {
			h.gap = h.asked
		}
		lengths = append(lengths, h.gap)
	}
	detail := fmt.Sprintf("%d handovers", len(seen))
	if how.held {
		detail += "; " + medianStages(seen)
	}
	s.spread3(title, lengths, how.goal, detail)
}

// reportOverlaps counts the programs of gated applications that overlapped another one.
func (s *site) reportOverlaps(applications []*application) {
	found, runs := 0, 0
	for _, a := range applications {
		if a.gate == "" {
			continue
		}
		all := must(a.folder.Runs())
		runs += len(all)
		found += len(testimony.Overlaps(all, testimony.Now()))
	}
	s.report(figure{title: "overlaps", what: "programs that ran at the same time as another one", value: float64(found), digits: -1, goal: goalOverlap,
		detail: fmt.Sprintf("%d programs", runs)})
}

// measureLostNode powers nodes off. No pod starts on another node until an administrator confirms that
// the machine is off, so the measurement starts with the confirmation. If the operator's leader was on
// that node, another replica is the leader by then.
func measureLostNode(ctx context.Context, s *site) {
	a := s.newApplication(ctx, "node-gone", v1.GateBinary, 2, deployment(appsv1.DeploymentStrategy{}))
	var took []time.Duration
	for round := range s.size.lostNodes {
		step("powering off a node, %d of %d", round+1, s.size.lostNodes)
		took = append(took, a.loseNode(ctx))
	}
	s.spread3("from the out-of-service taint to the next start, a standby waits", took, bounds{}, fmt.Sprintf("%d nodes powered off", len(took)))
	s.reportOverlaps([]*application{a})
}

func (a *application) loseNode(ctx context.Context) time.Duration {
	old := a.active()
	check(a.cluster.StopNode(old.Node))
	waitFor(ctx, 3*time.Minute, "the cluster to notice", func() (bool, string) {
		if a.nodeReady(ctx, old.Node) {
			return false, ""
		}
		acts := a.actsOn(ctx)
		return acts != old.Node && acts != "", ""
	})
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	asked := testimony.Now()
	a.changeNode(ctx, old.Node, func(node *corev1.Node) { node.Spec.Taints = append(node.Spec.Taints, taint) })
	_, next := a.next(ctx, old)
	a.recoverNode(ctx, old.Node)
	return time.Duration(next.Start - asked)
}

func (a *application) recoverNode(ctx context.Context, name string) {
	check(a.cluster.StartNode(name))
	waitFor(ctx, 3*time.Minute, name+" to be back", func() (bool, string) { return a.nodeReady(ctx, name), "" })
	a.changeNode(ctx, name, func(node *corev1.Node) {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	})
	a.operatorAvailable(ctx)
	a.settled(ctx)
}
