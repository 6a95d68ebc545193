package promises

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/faults/freeze"
)

// Freeze are promises of the operator, whatever the kind: a leader that is frozen
// for longer than its lease, and wakes, changes nothing of what its successor has
// done. See freeze_trial.go for how one is frozen, and freeze_scenarios.go for what
// goes on meanwhile.
var Freeze = []Promise{
	{Name: "V3 SC-33 a leader that was frozen leaves the lease to its successor", Faults: true, Keep: parked(leavesTheLease)},
	{Name: "V2 SC-33 SC-36 a leader that was frozen at any write makes nothing twice", Faults: true, Keep: parked(makesNothingTwice)},
}

// parked keeps a promise while the operator of the cluster serves webhooks and does
// not act, so that those that the promise starts do.
func parked(keep func(context.Context, *Cluster) error) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) (err error) {
		if c.Program, err = c.BuildOperator(ctx); err != nil {
			return err
		}
		before, err := c.operatorRestarts(ctx)
		if err != nil {
			return err
		}
		holder, giveBack, err := freeze.Park(ctx, c.Kube, c.Operator.Namespace, operatorLease)
		if err != nil {
			return err
		}
		defer func() {
			ctx := context.WithoutCancel(ctx)
			err = errors.Join(err, giveBack(ctx), c.operatorActs(ctx))
		}()
		// One that has lost its lease ends, and its container is started again.
		err = until(ctx, "the operator to serve webhooks only", func(ctx context.Context) error {
			now, err := c.operatorRestarts(ctx)
			leader, _, _ := strings.Cut(holder, "_")
			if was, there := before[leader]; err == nil && there && now[leader] == was {
				err = fmt.Errorf("%s may act still", leader)
			}
			return err
		})
		if err != nil {
			return err
		}
		return keep(ctx, c)
	}
}

// operatorRestarts says how often the operator's containers were started again, by the
// names of their pods. All of them must be Ready.
func (c *Cluster) operatorRestarts(ctx context.Context) (map[string]int32, error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(c.Operator.Namespace)); err != nil {
		return nil, err
	}
	restarts := map[string]int32{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !podCondition(p, corev1.PodReady) {
			return nil, fmt.Errorf("%s is not Ready", p.Name)
		}
		restarts[p.Name] = p.Status.ContainerStatuses[0].RestartCount
	}
	return restarts, nil
}

// operatorLease is the name of the operator's lease, in its own namespace.
const operatorLease = "stateful-operator"

// leavesTheLease freezes leaders when they renew their lease, in each mode, and others
// when they do nothing.
func leavesTheLease(ctx context.Context, c *Cluster) error {
	var all errgroup.Group
	all.SetLimit(len(freeze.Modes))
	for _, mode := range freeze.Modes {
		all.Go(func() error {
			f := freezing{scenario: nothing, renewal: true, trap: &freeze.Trap{At: 3, Mode: mode}}
			if _, err := c.freeze(ctx, f); err != nil {
				return fmt.Errorf("frozen at a renewal %s: %w", mode, err)
			}
			return nil
		})
	}
	for range 3 {
		all.Go(func() error {
			if _, err := c.freeze(ctx, freezing{scenario: nothing, asleep: true}); err != nil {
				return fmt.Errorf("frozen between two renewals: %w", err)
			}
			return nil
		})
	}
	return all.Wait()
}

// makesNothingTwice goes through the scenarios of each kind, those of different kinds
// beside each other: first undisturbed, and then with freezes.
func makesNothingTwice(ctx context.Context, c *Cluster) error {
	chosen := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !strings.Contains(s.name, c.Fault) })
	byKind := map[string][]scenario{}
	for _, s := range chosen {
		byKind[s.kind] = append(byKind[s.kind], s)
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no scenario has %q in its name", c.Fault)
	}
	c.Log("seed %d", c.Seed)
	var all errgroup.Group
	for i, kind := range slices.Sorted(maps.Keys(byKind)) {
		chance := rand.New(rand.NewPCG(c.Seed, uint64(i)))
		all.Go(func() error {
			if c.Freezes > 0 {
				return c.freezeSome(ctx, byKind[kind], chance)
			}
			return c.freezeAll(ctx, byKind[kind])
		})
	}
	return all.Wait()
}

// freezeSome goes through one scenario of a kind, with so many freezes.
func (c *Cluster) freezeSome(ctx context.Context, of []scenario, chance *rand.Rand) error {
	s := of[chance.IntN(len(of))]
	calm, err := c.freeze(ctx, freezing{scenario: s})
	if err != nil {
		return fmt.Errorf("%s, undisturbed: %w", s.name, err)
	}
	c.Log("%s: undisturbed it took %s", s.name, calm)
	if calm.writes == 0 {
		return fmt.Errorf("%s: the operator wrote nothing", s.name)
	}
	for range c.Freezes {
		mode := freeze.Modes[chance.IntN(len(freeze.Modes))]
		// Not every run takes as many writes.
		for at := 1 + chance.IntN(calm.writes); at > 0; {
			got, err := c.freezeAt(ctx, s, calm, at, mode)
			if err != nil {
				return err
			}
			if got.frozen != "" {
				break
			}
			at = min(at-1, got.writes)
		}
	}
	return c.freezeAsleep(ctx, s, calm)
}

// besideEachOther is how many freezes of a kind are tried at one time where all are.
const besideEachOther = 4

// freezeAll goes through all scenarios of a kind, with a freeze at each write in each
// mode. What it finds does not end it.
func (c *Cluster) freezeAll(ctx context.Context, of []scenario) error {
	var found error
	for _, s := range of {
		calm, err := c.freeze(ctx, freezing{scenario: s})
		if err != nil {
			found = errors.Join(found, fmt.Errorf("%s, undisturbed: %w", s.name, err))
			continue
		}
		c.Log("%s: undisturbed it took %s", s.name, calm)
		var all errgroup.Group
		limit := besideEachOther
		if s.kind == singletons {
			limit = 1 // an operator of one trial would act in those of others
		}
		all.SetLimit(limit)
		var mu sync.Mutex
		try := func(trial func() error) {
			all.Go(func() error {
				err := trial()
				mu.Lock()
				defer mu.Unlock()
				found = errors.Join(found, err)
				return nil
			})
		}
		for at := 1; at <= calm.writes; at++ {
			for _, mode := range freeze.Modes {
				try(func() error {
					_, err := c.freezeAt(ctx, s, calm, at, mode)
					return err
				})
			}
		}
		try(func() error { return c.freezeAsleep(ctx, s, calm) })
		_ = all.Wait() // what the trials found is in found
	}
	return found
}

// freezeAt freezes the leader at one write of a scenario.
func (c *Cluster) freezeAt(ctx context.Context, s scenario, calm outcome, at int, mode freeze.Mode) (outcome, error) {
	trap := &freeze.Trap{At: at, Mode: mode}
	got, err := c.freeze(ctx, freezing{scenario: s, trap: trap})
	what := fmt.Sprintf("%s, frozen at write %d of %d, %s", s.name, at, calm.writes, mode)
	return got, c.compare(what, calm, got, err)
}

// freezeAsleep freezes the leader before a scenario begins, and wakes it as it does.
func (c *Cluster) freezeAsleep(ctx context.Context, s scenario, calm outcome) error {
	got, err := c.freeze(ctx, freezing{scenario: s, asleep: true})
	return c.compare(s.name+", frozen before it and woken as it begins", calm, got, err)
}

// compare says in what a scenario with a freeze ended otherwise than without.
func (c *Cluster) compare(what string, calm, got outcome, err error) error {
	if !maps.Equal(calm.made, got.made) {
		err = errors.Join(err, fmt.Errorf("the operators made %v, and undisturbed %v", got.made, calm.made))
	}
	if len(got.left) > 0 && !maps.Equal(calm.left, got.left) {
		err = errors.Join(err, fmt.Errorf("in the end there are %v, and undisturbed %v", got.left, calm.left))
	}
	c.Log("%s (%s): %s", what, got.frozen, got)
	if err != nil {
		return fmt.Errorf("%s (%s): %w", what, got.frozen, err)
	}
	return nil
}

// outcome is what came of a scenario.
type outcome struct {
	// writes is how many the first leader made from its begin on, as far as a
	// freeze may be at them.
	writes int
	// made is how many objects the operators created, by their resource, and left
	// how many objects there are in the end.
	made, left map[string]int
	// frozen is the write that the leader was frozen at, and its answer.
	frozen string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d writes; made %v; there are %v", o.writes, o.made, o.left)
}

// inventory counts what a namespace has.
func (c *Cluster) inventory(ctx context.Context) (map[string]int, error) {
	lists := map[string]client.ObjectList{
		"pods": &corev1.PodList{}, "claims": &corev1.PersistentVolumeClaimList{}, "services": &corev1.ServiceList{},
		"statefulsets": &appsv1.StatefulSetList{}, "jobs": &batchv1.JobList{}, "revisions": &appsv1.ControllerRevisionList{},
	}
	found := map[string]int{}
	for name, list := range lists {
		if err := c.Client.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
			return nil, err
		}
		found[name] = lengthOf(list)
	}
	return found, nil
}
