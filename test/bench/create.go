package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Goals of the comparisons, from section 4 of the contract.
const (
	goalBuiltIn = 1.2  // times as fast as the StatefulSet controller
	goalPool    = 0.95 // of the speed of the bare pool
	goalWrites  = 2.05 // per member
)

// lap is the result of one contestant in one round.
type lap struct {
	created, ready time.Duration
	writes         []*request // of the operator
}

func measureOneSet(ctx context.Context, s *site) {
	want := shape{1, s.size.members}
	laps := s.compare(ctx, "one", want)
	title := fmt.Sprintf("create 1 × %s members", thousands(s.size.members))
	s.reportCreation(title, laps)
	value := medianOf(laps[ours], func(l lap) float64 { return float64(len(l.writes)) / float64(want.pods()) })
	s.report(figure{title: title, what: "writes per member, events not counted", value: value, digits: 4, goal: atMost(goalWrites),
		detail: "last round: " + tallied(laps[ours][len(laps[ours])-1].writes)})
}

func measureManySets(ctx context.Context, s *site) {
	laps := s.compare(ctx, "many", shape{s.size.sets, setMembers})
	s.reportCreation(fmt.Sprintf("create %d × %d members", s.size.sets, setMembers), laps)
}

func (s *site) reportCreation(title string, laps map[string][]lap) {
	s.comparison(title, "all created", laps, lap.tillCreated, atLeast(goalBuiltIn), atLeast(goalPool))
	s.comparison(title, "all Ready", laps, func(l lap) float64 { return l.ready.Seconds() }, goal{}, goal{})
}

func (l lap) tillCreated() float64 { return l.created.Seconds() }

// compare lets every contestant create the same sets.
func (s *site) compare(ctx context.Context, name string, want shape) map[string][]lap {
	laps := map[string][]lap{}
	inTurns(s.size.rounds, contestants, func(round, turn int, c contestant) {
		within(c.name, func() {
			l := s.lap(ctx, c, fmt.Sprintf("%s-%d-%d", name, round, turn), want)
			laps[c.name] = append(laps[c.name], l)
			fmt.Printf("  round %d, %s: all created after %.2f s, all Ready after %.2f s\n", round, c.name, l.created.Seconds(), l.ready.Seconds())
		})
	})
	return laps
}

func (s *site) lap(ctx context.Context, c contestant, namespace string, want shape) lap {
	s.makeNamespace(ctx, namespace)
	watch := s.spectate(ctx, namespace, ready)
	defer watch.stop()
	stop := c.prepare(ctx, s, namespace)
	defer stop()
	l := s.timeCreate(ctx, c, namespace, want, watch)
	stop()
	s.clearNamespaces(ctx, namespace)
	return l
}

// settle is the time in which the operator may write its last status after all pods are Ready. These
// writes are counted.
const settle = 3 * time.Second

func (s *site) timeCreate(ctx context.Context, c contestant, namespace string, want shape, watch *spectator) lap {
	mark := s.markAudit()
	created := watch.when(func(t tally) bool { return t.pods == want.pods() && t.claims >= want.pods() })
	allReady := watch.when(func(t tally) bool { return t.good == want.pods() && t.claims >= want.pods() })
	asked := make(chan error, 1)
	began := time.Now()
	go func() { asked <- c.create(ctx, s, namespace, want) }()
	createdAt := watch.await(ctx, created, c.name+" creates")
	readyAt := watch.await(ctx, allReady, c.name+" gets Ready")
	check(<-asked)
	pause(ctx, settle)
	if have := watch.now(); have.claims != want.pods() {
		fail("%d claims were created for %d members: some were replaced; see -keep-logs", have.claims, want.pods())
	}
	return lap{created: createdAt.Sub(began), ready: readyAt.Sub(began), writes: s.since(mark, (*request).isChange)}
}

// comparison reports the ratios of the laps' medians.
func (r *results) comparison(title, what string, laps map[string][]lap, of func(lap) float64, against, pool goal) {
	us, them, loop := medianOf(laps[ours], of), medianOf(laps[builtIn], of), medianOf(laps[bare], of)
	detail := fmt.Sprintf("%s %.2f s, %s %.2f s", ours, us, builtIn, them)
	if loop > 0 {
		detail += fmt.Sprintf(", %s %.2f s", bare, loop)
	}
	r.report(figure{title: title, what: what + ", times as fast as StatefulSet", value: them / us, unit: "×", goal: against, detail: detail})
	if loop > 0 {
		r.report(figure{title: title, what: what + ", of the speed of the bare pool", value: loop / us, unit: "×", goal: pool})
	}
}

func measureRollout(ctx context.Context, s *site) {
	laps := map[string][]lap{}
	// The bare pool has no rolling update.
	inTurns(s.size.rounds, contestants[:2], func(round, turn int, c contestant) {
		within(c.name, func() {
			took := s.rollout(ctx, c, fmt.Sprintf("rollout-%d-%d", round, turn), s.size.rollout)
			laps[c.name] = append(laps[c.name], lap{created: took})
			fmt.Printf("  round %d, %s: all replaced and Ready after %.2f s\n", round, c.name, took.Seconds())
		})
	})
	s.comparison(fmt.Sprintf("replace %d members, 25 %% at a time", s.size.rollout), "all replaced and Ready", laps, lap.tillCreated, atLeast(goalBuiltIn), goal{})
}

func (s *site) rollout(ctx context.Context, c contestant, namespace string, members int) time.Duration {
	s.makeNamespace(ctx, namespace)
	old := s.spectate(ctx, namespace, ready)
	defer old.stop()
	stop := c.prepare(ctx, s, namespace)
	defer stop()
	s.timeCreate(ctx, c, namespace, shape{1, members}, old)
	replaced := s.spectate(ctx, namespace, func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Spec.Containers[0].Env[0].Value == "2"
	})
	defer replaced.stop()
	done := replaced.when(func(t tally) bool { return t.good == members && t.pods == members })
	began := time.Now()
	c.change(ctx, s, namespace)
	at := replaced.await(ctx, done, c.name+" replaces")
	stop()
	s.clearNamespaces(ctx, namespace)
	return at.Sub(began)
}
