package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Goals of StatefulSingleton, from the contract's section 4.
var (
	goalBinary     = bounds{p50: atMost(0.3), p99: atMost(1)} // seconds
	goalInit       = bounds{p50: atMost(1.5)}
	goalAdmission  = atMost(5) // ms at p99
	goalOverlap    = atMost(0)
	goalGateIsGone = atMost(0) // processes beside the program
)

type bounds struct{ p50, p99 goal }

// arrangement is one way to have an application, and to make its program hand
// over to the next one.
type arrangement struct {
	name string // of the application and its namespace
	what string
	gate v1.GateMode // "" without a StatefulSingleton
	pods int
	make func(*application) client.Object
	// end makes the program end; after undoes what else it did.
	end, after func(context.Context, *application, testimony.Run) error
	// held is true where the next pod waits at its gate already.
	held bool
	goal bounds
	// asked is true where the time since the request is what is asked for, and
	// not since the old program's end.
	asked bool
	// share of the handovers that are made of this one.
	share int
}

// arrangements take turns, so that whatever else the machine does falls on all
// of them alike.
var arrangements = []arrangement{
	{name: "binary-surge", what: "Binary, rollout with surge", gate: v1.GateBinary, pods: 1, make: deployment(surge()), end: rollOut, held: true, goal: goalBinary, share: 1},
	{name: "binary-standby", what: "Binary, a standby takes over", gate: v1.GateBinary, pods: 2, make: deployment(surge()), end: deletePod, held: true, goal: goalBinary, share: 1},
	{name: "init-surge", what: "Init, rollout with surge", gate: v1.GateInit, pods: 1, make: deployment(surge()), end: rollOut, held: true, goal: goalInit, share: 1},
	{name: "recreate-ours", what: "Recreate Deployment with a StatefulSingleton", gate: v1.GateBinary, pods: 1, make: deployment(recreate()), end: rollOut, share: 1},
	{name: "recreate", what: "Recreate Deployment alone", pods: 1, make: deployment(recreate()), end: rollOut, share: 1},
	{name: "set-ours", what: "StatefulSet of one with a StatefulSingleton", gate: v1.GateBinary, pods: 1, make: setOfOne, end: rollOut, share: 1},
	{name: "set", what: "StatefulSet of one alone", pods: 1, make: setOfOne, end: rollOut, share: 1},
	{name: "delete-standby", what: "delete, a standby waits", gate: v1.GateBinary, pods: 2, make: deployment(surge()), end: deletePod, held: true, asked: true, share: 5},
	{name: "delete", what: "delete, none waits", gate: v1.GateBinary, pods: 1, make: deployment(surge()), end: deletePod, asked: true, share: 5},
	{name: "drain-standby", what: "drain, a standby waits", gate: v1.GateBinary, pods: 2, make: deployment(surge()), end: drain, after: uncordon, held: true, asked: true, share: 5},
	{name: "drain", what: "drain, none waits", gate: v1.GateBinary, pods: 1, make: deployment(surge()), end: drain, after: uncordon, asked: true, share: 5},
}

func measureSingleton(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	var figures []figure
	for _, part := range []func(context.Context, *nodes, sizes) ([]figure, error){
		measureGate, measureHandovers, measureLostNode, measureAdmission,
	} {
		found, err := part(ctx, n, size)
		if figures = append(figures, found...); err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// handover is what was seen of one.
type handover struct {
	gap   time.Duration // between the programs
	asked time.Duration // from the request to the new program's start
	spent stages
}

func measureHandovers(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	applications, err := n.arrange(ctx)
	if err != nil {
		return nil, err
	}
	seen := make([][]handover, len(arrangements))
	failed := takeTurns(ctx, applications, size.handovers, seen)
	var figures []figure // also of what was seen before something failed
	for i, how := range arrangements {
		figures = append(figures, how.figures(seen[i])...)
	}
	return append(figures, overlaps(applications)), failed
}

// takeTurns lets the applications hand over, one after another, so many times.
func takeTurns(ctx context.Context, applications []*application, times int, seen [][]handover) error {
	said := time.Now()
	for round := range times {
		if time.Since(said) > progressInterval {
			said = time.Now()
			step("round %d of %d", round+1, times)
		}
		for i, how := range arrangements {
			if round%how.share != 0 {
				continue
			}
			h, err := applications[i].handOver(ctx, how)
			if err != nil {
				return fmt.Errorf("%s: %w", how.what, err)
			}
			seen[i] = append(seen[i], h)
		}
	}
	return nil
}

func (n *nodes) arrange(ctx context.Context) ([]*application, error) {
	step("starting %d applications", len(arrangements))
	var applications []*application
	for _, how := range arrangements {
		a, err := n.newApplication(ctx, how.name, how.gate, how.pods, how.make)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", how.name, err)
		}
		applications = append(applications, a)
	}
	return applications, nil
}

// breath is left between handovers for what still follows the last one.
const breath = time.Second

// handOver makes one handover, and waits until all is as before.
func (a *application) handOver(ctx context.Context, how arrangement) (handover, error) {
	old, one, err := a.alive()
	if err != nil || !one {
		return handover{}, fmt.Errorf("not one program runs: %w", err)
	}
	mark, err := markLog(a.cluster.AuditLog())
	if err != nil {
		return handover{}, err
	}
	asked := testimony.Now()
	if err := how.end(ctx, a, old); err != nil {
		return handover{}, err
	}
	old, next, err := a.next(ctx, old)
	if err != nil {
		return handover{}, err
	}
	h := handover{gap: time.Duration(next.Start - old.End), asked: time.Duration(next.Start - asked)}
	if how.after != nil {
		if err := how.after(ctx, a, old); err != nil {
			return h, err
		}
	}
	if err := a.settled(ctx); err != nil {
		return h, err
	}
	if how.gate != "" {
		requests, err := readSince(a.cluster.AuditLog(), mark, request.isOfHandover)
		if err != nil {
			return h, err
		}
		h.spent = stagesOf(requests, a.name, old, next)
	}
	return h, pause(ctx, breath)
}

func (how arrangement) figures(seen []handover) []figure {
	title, lengths := "gap, "+how.what, make([]float64, 0, len(seen))
	for _, h := range seen {
		length := h.gap
		if how.asked {
			length = h.asked
		}
		lengths = append(lengths, length.Seconds())
	}
	if how.asked {
		title = "from the request to the next start, " + how.what
	}
	detail := fmt.Sprintf("%d handovers", len(seen))
	if how.held {
		detail += "; " + medianStages(seen)
	}
	return spread3(title, lengths, how.goal, detail)
}

// spread3 are the usual three figures of a time that varies.
func spread3(title string, seconds []float64, want bounds, detail string) []figure {
	if len(seconds) == 0 {
		return nil
	}
	slices.Sort(seconds)
	return []figure{
		{title: title, what: "p50", value: quantile(seconds, 0.5), unit: " s", goal: want.p50, detail: detail},
		{title: title, what: "p99", value: quantile(seconds, 0.99), unit: " s", goal: want.p99},
		{title: title, what: "max", value: seconds[len(seconds)-1], unit: " s"},
	}
}

// overlaps counts the programs of ours that ran beside another one.
func overlaps(applications []*application) figure {
	found, runs := 0, 0
	for _, a := range applications {
		if a.gate == "" {
			continue
		}
		all, err := a.folder.Runs()
		if err != nil {
			return figure{title: "overlaps", what: err.Error(), value: -1}
		}
		runs += len(all)
		found += len(testimony.Overlaps(all, testimony.Now()))
	}
	return figure{title: "overlaps", what: "programs that ran beside another one", value: float64(found), digits: -1, goal: goalOverlap,
		detail: fmt.Sprintf("%d programs", runs)}
}

// measureLostNode powers a node off. Nothing starts elsewhere until a person
// says that the machine is off, so the clock starts with that word. By then the
// operator, if it acted from that node, acts from another.
func measureLostNode(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	a, err := n.newApplication(ctx, "node-gone", v1.GateBinary, 2, deployment(appsv1.DeploymentStrategy{}))
	if err != nil {
		return nil, err
	}
	var seconds []float64
	for round := range size.lostNodes {
		step("powering off a node, %d of %d", round+1, size.lostNodes)
		took, err := a.loseNode(ctx)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, took.Seconds())
	}
	found := spread3("from the out-of-service taint to the next start, a standby waits", seconds, bounds{}, fmt.Sprintf("%d nodes powered off", len(seconds)))
	return append(found, overlaps([]*application{a})), nil
}

func (a *application) loseNode(ctx context.Context) (time.Duration, error) {
	old, one, err := a.alive()
	if err != nil || !one {
		return 0, fmt.Errorf("not one program runs: %w", err)
	}
	if err := a.cluster.StopNode(old.Node); err != nil {
		return 0, err
	}
	err = waitFor(ctx, 3*time.Minute, "the cluster to notice", func() (bool, string, error) {
		ready, err := a.nodeReady(ctx, old.Node)
		if err != nil || ready {
			return false, "", err
		}
		acts, err := a.actsOn(ctx)
		return acts != old.Node && acts != "", "", err
	})
	if err != nil {
		return 0, err
	}
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	asked := testimony.Now()
	if err := a.changeNode(ctx, old.Node, func(node *corev1.Node) { node.Spec.Taints = append(node.Spec.Taints, taint) }); err != nil {
		return 0, err
	}
	_, next, err := a.next(ctx, old)
	if err != nil {
		return 0, err
	}
	return time.Duration(next.Start - asked), a.recoverNode(ctx, old.Node)
}

func (a *application) recoverNode(ctx context.Context, name string) error {
	if err := a.cluster.StartNode(name); err != nil {
		return err
	}
	err := waitFor(ctx, 3*time.Minute, name+" to be back", func() (bool, string, error) {
		ready, err := a.nodeReady(ctx, name)
		return ready, "", err
	})
	if err != nil {
		return err
	}
	err = a.changeNode(ctx, name, func(node *corev1.Node) {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	})
	if err != nil {
		return err
	}
	if err := a.operatorAvailable(ctx); err != nil {
		return err
	}
	return a.settled(ctx)
}
