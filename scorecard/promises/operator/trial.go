package operator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/freeze"
)

// freezing is a scenario and the moment at which its leader is frozen: at a write, at a renewal of
// the lease, or before the scenario begins. By default the leader is not frozen.
type freezing struct {
	scenario kit.Scenario
	trap     *freeze.Trap
	renewal  bool
	asleep   bool
}

// freezeTrial is one run of a scenario with its own two operators. The first one leads in the
// beginning.
type freezeTrial struct {
	*kit.Cluster
	freezing
	first, second *freeze.Operator
	leader        string // identity of the first operator in the lease
	election      *freeze.Election
	run           kit.Step
	woken         time.Time
}

// runTrial runs a scenario in its own namespace.
func runTrial(ctx context.Context, c *kit.Cluster, f freezing) (got outcome, err error) {
	err = c.Kept(func(c *kit.Cluster) {
		t := &freezeTrial{Cluster: c.Another(ctx), freezing: f}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		lease := "freeze-" + strings.TrimPrefix(t.Namespace, "promise-")
		defer t.removeLease(context.WithoutCancel(ctx), lease)
		var wrong error
		t.election, wrong = freeze.Watch(ctx, c.Kube, c.Operator.Namespace, lease)
		t.Check(wrong)
		t.Check(t.start(ctx, lease))
		defer t.first.Kill()
		defer t.second.Kill()
		var judge kit.Step
		t.During("before the scenario", func() { judge = t.begin(ctx) })
		if wrong = t.goThrough(ctx); wrong == nil {
			wrong = t.Caught(func() {
				judge(ctx)
				t.stable(ctx, &got)
			})
		}
		got.writes, got.made = t.first.Proxy.Counted(), t.made()
		for _, w := range t.first.Proxy.Writes(func(w freeze.Write) bool { return w.Held }) {
			got.frozen = w.String()
		}
		wrong = errors.Join(wrong, t.Overlaps())
		c.Check(errors.Join(wrong, t.wroteNothing(), t.oneSuccessor())) // the trial's own cluster may still be in use
	})
	return got, err
}

// start starts both operators. The second starts when the first leads.
func (t *freezeTrial) start(ctx context.Context, lease string) (err error) {
	options := freeze.Options{Program: t.Program, Config: t.Config, Lease: lease, Namespace: t.Operator.Namespace, Kind: t.scenario.Kind}
	if t.scenario.Kind != singletons {
		options.Watch = t.Namespace
	} // otherwise the operator would block pods of other namespaces that have no guard
	logs := filepath.Join("build", "freeze", lease)
	options.Log = logs + "-first.log"
	if t.first, err = freeze.Start(options); err != nil {
		return err
	}
	waiting, stop := context.WithTimeout(ctx, kit.Patience)
	defer stop()
	if t.leader, err = t.election.AwaitLeader(waiting); err != nil {
		t.first.Kill()
		return err
	}
	options.Log = logs + "-second.log"
	if t.second, err = freeze.Start(options); err != nil {
		t.first.Kill()
	}
	return err
}

func (t *freezeTrial) removeLease(ctx context.Context, name string) {
	_ = t.Client.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.Operator.Namespace}})
}

// begin prepares the scenario and sets the trap.
func (t *freezeTrial) begin(ctx context.Context) (judge kit.Step) {
	t.run, judge = t.scenario.Begin(ctx, t.Cluster)
	if t.trap == nil {
		t.trap = &freeze.Trap{} // this trap only counts writes
	}
	t.trap.Matches = t.counts
	if t.renewal {
		t.trap.Matches = freeze.Write.Lease
	}
	t.trap.Freeze = t.first.Freeze
	t.first.Proxy.Set(t.trap)
	return judge
}

// counts reports whether the leader can be frozen at a write: the write belongs to this trial, and
// is not a query.
func (t *freezeTrial) counts(w freeze.Write) bool {
	return w.Namespace == t.Namespace && !w.Lease() && !asks(w)
}

// asks reports whether a command is a query that changes nothing: the ledger's status and sequence,
// and the probe of active pods.
func asks(w freeze.Write) bool {
	return w.Method == freeze.Exec && slices.ContainsFunc(w.Command, func(word string) bool {
		return word == "status" || word == "sequence" || strings.HasPrefix(word, "test ")
	})
}

// goThrough runs the action of the scenario, with or without a freeze, until it has ended and the
// frozen leader has exited.
func (t *freezeTrial) goThrough(ctx context.Context) error {
	if t.asleep {
		if err := errors.Join(t.first.Freeze(), t.succeeds(ctx), t.wake()); err != nil {
			return err
		}
		return errors.Join(t.Caught(func() { t.run(ctx) }), t.ends(ctx))
	}
	ran := make(chan error, 1)
	go func() { ran <- t.Caught(func() { t.run(ctx) }) }() // no other goroutine uses the cluster meanwhile
	if t.trap.At == 0 {
		return <-ran
	}
	select {
	case <-t.trap.Sprung():
	case err := <-ran:
		if err != nil {
			return err
		}
		if !t.renewal && t.first.Proxy.Disarm() {
			return nil // this run has fewer writes than the undisturbed one, so the leader was not frozen
		}
		if err := t.springs(ctx); err != nil {
			return err
		}
		ran <- nil
	}
	if err := errors.Join(t.trap.Err(), t.succeeds(ctx)); err != nil {
		return err
	}
	if err := <-ran; err != nil {
		return err
	}
	return errors.Join(t.trap.LetGo(ctx), t.wake(), t.ends(ctx))
}

// springs waits until the leader reaches the write at which it is frozen.
func (t *freezeTrial) springs(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, kit.Patience)
	defer stop()
	select {
	case <-t.trap.Sprung():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not reach the write at which it should be frozen: %w", t.leader, ctx.Err())
	}
}

// succeeds waits until the second operator leads.
func (t *freezeTrial) succeeds(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, kit.Patience)
	defer stop()
	return t.election.AwaitSuccessor(ctx, t.leader)
}

func (t *freezeTrial) wake() error {
	t.woken = time.Now()
	return t.first.Wake()
}

// ends waits until the resumed operator has noticed that it no longer leads.
func (t *freezeTrial) ends(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, kit.Patience)
	defer stop()
	return t.first.AwaitEnd(ctx)
}

// wroteNothing fails if the resumed leader changed something. The request that was in flight when
// it was frozen is sent, but must find that it is already done or no longer valid. Queries are
// allowed.
func (t *freezeTrial) wroteNothing() error {
	if t.woken.IsZero() {
		return nil
	}
	late := t.first.Proxy.Writes(func(w freeze.Write) bool {
		return w.At.After(t.woken) && !w.Lease() && !asks(w) && (t.asleep || w.Changed())
	})
	if len(late) > 0 {
		return fmt.Errorf("the resumed leader wrote %d times, and another one was leading: %v", len(late), late)
	}
	return nil
}

// oneSuccessor fails if the lease had holders other than the first operator and, after a freeze,
// the second.
func (t *freezeTrial) oneSuccessor() error {
	holders, err := t.election.Holders()
	want := 1
	if !t.woken.IsZero() {
		want = 2
	}
	if len(holders) != want || slices.Contains(holders, "") {
		err = errors.Join(err, fmt.Errorf("%q held the lease one after another; want %d", holders, want))
	}
	return err
}

// made counts the objects that both operators created in the namespace.
func (t *freezeTrial) made() map[string]int {
	found := map[string]int{}
	for _, o := range []*freeze.Operator{t.first, t.second} {
		for _, w := range o.Proxy.Writes(freeze.Write.Created) {
			if w.Namespace == t.Namespace {
				found[w.Resource]++
			}
		}
	}
	return found
}

// stable waits until the objects no longer change, and stores the number that is left.
func (t *freezeTrial) stable(ctx context.Context, got *outcome) {
	t.Until(ctx, "all deleted objects to be gone", func(ctx context.Context) {
		before := inventory(ctx, t.Cluster)
		kit.Sleep(ctx, 2*time.Second)
		got.left = inventory(ctx, t.Cluster)
		t.Expect(got.left).To(Equal(before), "it became the first primary")
	})
}
