package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Goals of the comparisons, from the contract's section 4.
const (
	goalBuiltIn = 1.2  // times as fast as the StatefulSet controller
	goalPool    = 0.95 // of the speed of the bare pool
	goalWrites  = 2.05 // per member
)

// lap is what one contestant took in one round.
type lap struct {
	created, ready time.Duration
	writes         []request // of the operator
}

func measureOneSet(ctx context.Context, s *site, size sizes) ([]figure, error) {
	want := shape{1, size.members}
	laps, err := s.compare(ctx, "one", want, size.rounds)
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("create 1 × %s members", thousands(size.members))
	return append(comparison(title, laps), writesPerMember(title, want, laps[ours])...), nil
}

func measureManySets(ctx context.Context, s *site, size sizes) ([]figure, error) {
	want := shape{size.sets, setMembers}
	laps, err := s.compare(ctx, "many", want, size.rounds)
	if err != nil {
		return nil, err
	}
	return comparison(fmt.Sprintf("create %d × %d members", size.sets, setMembers), laps), nil
}

// compare lets every contestant create the same, in every round in another
// order, because who comes first finds a younger API server.
func (s *site) compare(ctx context.Context, name string, want shape, rounds int) (map[string][]lap, error) {
	laps := map[string][]lap{}
	for round := range rounds {
		for turn := range contestants {
			c := contestants[(turn+round)%len(contestants)]
			l, err := s.lap(ctx, c, fmt.Sprintf("%s-%d-%d", name, round+1, turn+1), want)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			laps[c.name] = append(laps[c.name], l)
			fmt.Printf("  round %d, %s: all created after %.2f s, all Ready after %.2f s\n",
				round+1, c.name, l.created.Seconds(), l.ready.Seconds())
		}
	}
	return laps, nil
}

func (s *site) lap(ctx context.Context, c contestant, namespace string, want shape) (lap, error) {
	if err := s.makeNamespace(ctx, namespace); err != nil {
		return lap{}, err
	}
	watch, err := s.spectate(ctx, namespace, ready)
	if err != nil {
		return lap{}, err
	}
	defer watch.stop()
	stop, err := c.prepare(ctx, s, namespace)
	if err != nil {
		return lap{}, err
	}
	l, err := s.timeCreate(ctx, c, namespace, want, watch)
	stop()
	if err != nil {
		return lap{}, err
	}
	return l, s.clearNamespaces(ctx, namespace)
}

// settle is how long the operator may still write its last status after all
// pods are Ready. Those writes count.
const settle = 3 * time.Second

func (s *site) timeCreate(ctx context.Context, c contestant, namespace string, want shape, watch *spectator) (lap, error) {
	mark, err := s.markAudit()
	if err != nil {
		return lap{}, err
	}
	created := watch.when(func(t tally) bool { return t.pods == want.pods() && t.claims >= want.pods() })
	allReady := watch.when(func(t tally) bool { return t.good == want.pods() && t.claims >= want.pods() })
	asked := make(chan error, 1)
	began := time.Now()
	go func() {
		if err := c.create(ctx, s, namespace, want); err != nil {
			asked <- err
		}
		close(asked)
	}()
	createdAt, err := watch.await(ctx, created, c.name+" creates")
	if err != nil {
		return lap{}, err
	}
	readyAt, err := watch.await(ctx, allReady, c.name+" gets Ready")
	if err != nil {
		return lap{}, err
	}
	if err := <-asked; err != nil {
		return lap{}, err
	}
	if err := pause(ctx, settle); err != nil {
		return lap{}, err
	}
	if have := watch.now(); have.claims != want.pods() {
		return lap{}, fmt.Errorf("%d claims were created for %d members: some were replaced; see -keep-logs", have.claims, want.pods())
	}
	writes, err := s.writesSince(mark)
	changes, _ := byOperator(writes)
	return lap{created: createdAt.Sub(began), ready: readyAt.Sub(began), writes: changes}, err
}

// comparison turns laps into ratios of medians.
func comparison(title string, laps map[string][]lap) []figure {
	created := func(l lap) float64 { return l.created.Seconds() }
	allReady := func(l lap) float64 { return l.ready.Seconds() }
	var figures []figure
	for _, each := range []struct {
		what string
		of   func(lap) float64
		goal bool
	}{{"all created", created, true}, {"all Ready", allReady, false}} {
		seconds := map[string]float64{}
		for name, l := range laps {
			seconds[name] = medianOf(l, each.of)
		}
		detail := fmt.Sprintf("%s %.2f s, %s %.2f s", ours, seconds[ours], builtIn, seconds[builtIn])
		if seconds[bare] > 0 {
			detail += fmt.Sprintf(", %s %.2f s", bare, seconds[bare])
		}
		against := figure{title: title, what: each.what + ", times as fast as StatefulSet", value: seconds[builtIn] / seconds[ours], unit: "×", detail: detail}
		pool := figure{title: title, what: each.what + ", of the speed of the bare pool", value: seconds[bare] / seconds[ours], unit: "×"}
		if each.goal {
			against.goal, pool.goal = atLeast(goalBuiltIn), atLeast(goalPool)
		}
		figures = append(figures, against)
		if seconds[bare] > 0 {
			figures = append(figures, pool)
		}
	}
	return figures
}

func writesPerMember(title string, want shape, laps []lap) []figure {
	value := medianOf(laps, func(l lap) float64 { return float64(len(l.writes)) / float64(want.pods()) })
	return []figure{{title: title, what: "writes per member, events not counted", value: value, digits: 4, goal: atMost(goalWrites),
		detail: "last round: " + tallied(laps[len(laps)-1].writes)}}
}

func measureRollout(ctx context.Context, s *site, size sizes) ([]figure, error) {
	laps := map[string][]lap{}
	rivals := contestants[:2] // a bare loop has no rolling update
	for round := range size.rounds {
		for turn := range rivals {
			c := rivals[(turn+round)%len(rivals)]
			took, err := s.rollout(ctx, c, fmt.Sprintf("rollout-%d-%d", round+1, turn+1), size.rollout)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			laps[c.name] = append(laps[c.name], lap{created: took})
			fmt.Printf("  round %d, %s: all replaced and Ready after %.2f s\n", round+1, c.name, took.Seconds())
		}
	}
	found := comparison(fmt.Sprintf("replace %d members, 25 %% at a time", size.rollout), laps)[:1]
	found[0].what = "all replaced and Ready, times as fast as StatefulSet"
	return found, nil
}

func (s *site) rollout(ctx context.Context, c contestant, namespace string, members int) (time.Duration, error) {
	if err := s.makeNamespace(ctx, namespace); err != nil {
		return 0, err
	}
	old, err := s.spectate(ctx, namespace, ready)
	if err != nil {
		return 0, err
	}
	defer old.stop()
	stop, err := c.prepare(ctx, s, namespace)
	if err != nil {
		return 0, err
	}
	defer stop()
	if _, err := s.timeCreate(ctx, c, namespace, shape{1, members}, old); err != nil {
		return 0, err
	}
	replaced, err := s.spectate(ctx, namespace, func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Spec.Containers[0].Env[0].Value == "2"
	})
	if err != nil {
		return 0, err
	}
	defer replaced.stop()
	done := replaced.when(func(t tally) bool { return t.good == members && t.pods == members })
	began := time.Now()
	if err := c.change(ctx, s, namespace); err != nil {
		return 0, err
	}
	at, err := replaced.await(ctx, done, c.name+" replaces")
	if err != nil {
		return 0, err
	}
	stop()
	return at.Sub(began), s.clearNamespaces(ctx, namespace)
}
