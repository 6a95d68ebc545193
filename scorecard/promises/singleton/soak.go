package singleton

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// soaking is a run of many random handovers of several applications at the same time. The seed
// determines the acts of each application and their order.
type soaking struct {
	*kit.Cluster
	// gated is false for the run that checks that the witness detects overlaps.
	gated bool
	// fault is held while a node, the webhook or the operator is disturbed. There is one such fault
	// at a time. The other applications continue meanwhile.
	fault sync.Mutex
	// turns limits the number of concurrent handovers: with more, the test would measure this
	// machine.
	turns chan struct{}

	mu   sync.Mutex // guards done
	done []handedOver
}

// handedOver is one handover.
type handedOver struct {
	kind, subject string
	gap           time.Duration
}

// subject is an application that goes through handovers.
type subject struct {
	*application
	soaking *soaking
	// leased is true with fencing by a Lease.
	leased bool
	// workload creates its pods. If it is nil, the test creates them.
	workload client.Object
	replicas int32
	made     int // number of pods that the test created
	chance   *rand.Rand
	acts     []act
}

// soak is `make soak-singleton`. With few handovers it is a part of every test.
func soak(ctx context.Context, c *kit.Cluster) {
	s := &soaking{Cluster: c, gated: true, turns: make(chan struct{}, 3)}
	s.run(ctx, c.Handovers, acts)
	s.report()
}

// soakWithoutGate is the same without the object, and so without the gate. It fails if no programs
// overlap, because then the witness would prove nothing.
func soakWithoutGate(ctx context.Context, c *kit.Cluster) {
	s := &soaking{Cluster: c, turns: make(chan struct{}, 3)}
	simple := slices.DeleteFunc(slices.Clone(acts), func(a act) bool { return a.operator })
	// One act for each application. Several programs of the scaled one are sure to run.
	scaled := slices.DeleteFunc(slices.Clone(acts), func(a act) bool { return a.kind != scale131 })
	s.run(ctx, 6, simple, scaled...)
	s.report()
	byClock, byLock := 0, 0
	for _, p := range c.Probes() {
		p.Folder.Close()
		runs, err := p.Folder.Runs()
		c.Check(err)
		for _, o := range testimony.Overlaps(runs, testimony.Now()) {
			if o.Length > 0 {
				byClock++
			}
			if len(o.Second.Met) > 0 {
				byLock++
			}
		}
	}
	c.Log("without the gate %d pairs of programs overlapped by the clock and %d by their locks", byClock, byLock)
	c.Expect(byClock).NotTo(BeZero(), "the overlap probe reports no overlap although there must be some")
	c.Expect(byLock).NotTo(BeZero(), "the overlap probe reports no overlap although there must be some")
}

func (s *soaking) run(ctx context.Context, handovers int, kinds []act, first ...act) {
	chance := rand.New(rand.NewPCG(s.Seed, 0))
	s.Log("seed %d: %d handovers", s.Seed, handovers)
	subjects := s.subjects(ctx, chance)
	deal(chance, subjects, handovers, kinds, first...)
	s.AtOnce(len(subjects), func(own *kit.Cluster, i int) {
		subjects[i].Cluster = own
		subjects[i].run(ctx)
	})
}

// deal assigns handovers to subjects: first the given ones, then each kind equally often. Each
// handover is assigned to the fitting subject with the fewest.
func deal(chance *rand.Rand, subjects []*subject, handovers int, kinds []act, first ...act) {
	deck := slices.Clone(first)
	for len(deck) < handovers {
		for _, i := range chance.Perm(len(kinds)) {
			deck = append(deck, kinds[i])
		}
	}
	for _, a := range deck[:handovers] {
		fitting := slices.DeleteFunc(slices.Clone(subjects), func(s *subject) bool { return a.fits != nil && !a.fits(s) })
		chance.Shuffle(len(fitting), func(i, j int) { fitting[i], fitting[j] = fitting[j], fitting[i] })
		least := slices.MinFunc(fitting, func(a, b *subject) int { return cmp.Compare(len(a.acts), len(b.acts)) })
		least.acts = append(least.acts, a)
	}
}

// row describes an application.
type row struct {
	name     string
	mode     v1.GateMode
	change   []podChange
	replicas int32
	strategy *appsv1.DeploymentStrategy      // of a Deployment
	set      bool                            // a StatefulSet
	fence    func(*v1.StatefulSingletonSpec) // with fencing by a Lease
}

// subjects creates the applications: each workload kind, each mode of the gate, fencing by a Lease, and
// programs that stop at once, slowly, or not at all.
func (s *soaking) subjects(ctx context.Context, chance *rand.Rand) []*subject {
	stubborn := []podChange{behave("WITNESS_IGNORE_TERM", "true"), grace(1)}
	slow := []podChange{behave("WITNESS_STOP_AFTER", "700ms")}
	forks := []podChange{behave("WITNESS_FORK", "true"), func(t *corev1.PodTemplateSpec) { t.Spec.ShareProcessNamespace = new(true) }}
	withShell := program(func(p *corev1.Container) { p.Image = s.WitnessShell })
	rows := []row{
		{name: "surge", change: slow, replicas: 1, strategy: new(surge())},
		{name: "init", mode: v1.GateInit, replicas: 1, strategy: new(surge())},
		{name: "script", mode: v1.GateScript, change: []podChange{withShell}, replicas: 1, strategy: new(surge())},
		{name: "recreate", change: stubborn, replicas: 1, strategy: new(witnessset.Recreate())},
		{name: "forks", change: forks, replicas: 1, strategy: new(witnessset.Rolling(0, 1))},
		{name: "set", change: slow, replicas: 1, set: true},
		{name: "bare", replicas: 2},
		{name: "standby", change: stubborn, replicas: 2, strategy: new(witnessset.Rolling(1, 1))},
	}
	if s.gated {
		s.PermitFencing(ctx)
		rows = append(rows,
			row{name: "leased", change: slow, replicas: 1, strategy: new(surge()), fence: byLease},
			row{name: "leased-standby", change: stubborn, replicas: 2, strategy: new(witnessset.Rolling(1, 1)), fence: handsOver})
	}
	var subjects []*subject
	for _, row := range rows {
		if !s.gated && row.replicas > 1 {
			continue // all of them would run forever
		}
		a := newApplication(s.Cluster, row.name, row.change...)
		sub := &subject{application: a, soaking: s, leased: row.fence != nil, replicas: row.replicas, chance: rand.New(rand.NewPCG(chance.Uint64(), 0))}
		if s.gated {
			a.hold(ctx, func(spec *v1.StatefulSingletonSpec) {
				spec.GateMode = row.mode
				if row.fence != nil {
					row.fence(spec)
				}
			})
		}
		switch {
		case row.strategy != nil:
			sub.workload = a.deploy(ctx, row.replicas, *row.strategy)
		case row.set:
			sub.workload = a.statefulSet(ctx)
		default:
			sub.makePod(ctx)
		}
		subjects = append(subjects, sub)
	}
	return subjects
}

func (s *subject) makePod(ctx context.Context) {
	s.made++
	s.pod(ctx, fmt.Sprint("bare-", s.made))
}

func (s *subject) run(ctx context.Context) {
	for _, a := range s.acts {
		s.During(a.kind+" of "+s.Name, func() { s.handOver(ctx, a) })
	}
}

// handOver runs one act for the subject, and waits until exactly one program runs again.
func (s *subject) handOver(ctx context.Context, a act) {
	s.soaking.turns <- struct{}{}
	defer func() { <-s.soaking.turns }()
	old := s.one(ctx)
	s.prepare(ctx)
	if a.fault {
		s.soaking.fault.Lock()
		defer s.soaking.fault.Unlock()
	}
	last := a.do(ctx, s, old)
	next := s.one(ctx, last)
	s.note(a.kind, next)
	if s.chance.IntN(4) == 0 {
		return // the next act begins before everything of this one has settled
	}
	s.settle(ctx)
}

// prepare creates a pod that can take over, if no workload creates one.
func (s *subject) prepare(ctx context.Context) {
	if s.workload != nil {
		return
	}
	pods := s.pods(ctx)
	if len(slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })) > 1 {
		return
	}
	s.makePod(ctx)
	if s.soaking.gated && s.chance.IntN(3) != 0 {
		s.held(ctx, 1)
	}
}

// settle waits until the status matches the witness, and the number of pods is right. The act may
// end the program once more.
func (s *subject) settle(ctx context.Context) {
	s.Until(ctx, s.Name+" to settle", func(ctx context.Context) {
		live := s.living()
		s.Expect(len(live)).To(Equal(1), "%d programs run", len(live))
		if s.soaking.gated {
			o := s.singleton(ctx)
			s.Expect(o.Status.Phase).To(Equal(v1.PhaseRunning), "%s runs, and the status lists %s", live[0].Pod, describe(o))
			s.Expect(o.Status.ActivePod).To(Equal(live[0].Pod), "%s runs, and the status lists %s", live[0].Pod, describe(o))
		}
		pods := s.pods(ctx)
		s.Expect(s.workload != nil && len(pods) != int(s.replicas)).To(BeFalse(), "%d pods exist, want %d", len(pods), s.replicas)
	})
}

func (s *subject) note(kind string, next testimony.Run) {
	runs := s.runs()
	gaps := testimony.Gaps(runs)
	i := slices.IndexFunc(gaps, func(g testimony.Gap) bool { return g.After.ID == next.ID })
	s.Expect(i).To(BeNumerically(">=", 0), "no run was before that of %s", next.Pod)
	s.soaking.mu.Lock()
	defer s.soaking.mu.Unlock()
	s.soaking.done = append(s.soaking.done, handedOver{kind, s.Name, gaps[i].Length})
	s.Log("%3d %-16s %-9s gap %s", len(s.soaking.done), kind, s.Name, gaps[i].Length.Round(time.Millisecond))
}

// report prints the gaps by kind, and the total overlap.
func (s *soaking) report() {
	byKind := map[string][]time.Duration{}
	for _, d := range s.done {
		byKind[d.kind] = append(byKind[d.kind], d.gap)
		byKind["all"] = append(byKind["all"], d.gap)
	}
	var overlap time.Duration
	for _, p := range s.Probes() {
		runs, err := p.Folder.Runs()
		s.Check(err)
		for _, o := range testimony.Overlaps(runs, testimony.Now()) {
			overlap += o.Length
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d: %d handovers, overlap %d ms\n%-16s %5s %9s %9s %9s", s.Seed, len(s.done), overlap.Milliseconds(), "kind", "count", "p50", "p99", "max")
	kinds := make([]string, 0, len(byKind))
	for kind := range byKind {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		at := func(share float64) time.Duration {
			return testimony.Percentile(byKind[kind], share).Round(time.Millisecond)
		}
		fmt.Fprintf(&text, "\n%-16s %5d %9s %9s %9s", kind, len(byKind[kind]), at(0.5), at(0.99), at(1))
	}
	s.Log("%s", text.String())
}
