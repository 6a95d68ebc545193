package leadership

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// stored is a lease in a fake API server: a record and its version.
type stored struct {
	record  resourcelock.LeaderElectionRecord
	version int
}

// lock is one process's view of the stored lease, as in client-go.
type lock struct {
	resourcelock.Interface
	name string
	at   *stored
	read int
}

func (l *lock) Identity() string { return l.name }
func (l *lock) Describe() string { return "operators/stateful-operator" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.read = l.at.version
	record := l.at.record
	return &record, nil, nil
}

func (l *lock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.at.record, l.at.version = record, 1
	l.read = 1
	return nil
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.read != l.at.version {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "stateful-operator", errors.New("another client updated it"))
	}
	l.at.record = record
	l.at.version++
	l.read = l.at.version
	return nil
}

// process is a candidate, with a clock that the test sets.
type process struct {
	*Lease
	t    *testing.T
	time time.Time
}

func candidate(t *testing.T, name string, at *stored) *process {
	p := &process{t: t, time: noon}
	p.Lease = &Lease{Interface: &lock{name: name, at: at}, now: func() time.Time { return p.time },
		timing: Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}}
	return p
}

// take reads and then writes the lease, as client-go does to acquire or renew it.
func (p *process) take() error {
	if _, _, err := p.Get(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return p.Update(p.t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: p.Identity()})
}

// giveUp does the same as client-go at the end of an election.
func (p *process) giveUp() {
	p.t.Helper()
	if _, _, err := p.Get(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	if err := p.Update(p.t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) passes(d time.Duration) { p.time = p.time.Add(d) }

func (p *process) mayWrite(what string, want bool) {
	p.t.Helper()
	err := p.Check()
	if got := err == nil; got != want {
		p.t.Errorf("%s: the write returned %v, want allowed: %t", what, err, want)
	}
	if err != nil && !errors.Is(err, ErrNotLeading) {
		p.t.Errorf("%s: %v cannot be distinguished from other errors", what, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestV2OnlyWhoRenewedItsLeaseWrites(t *testing.T) {
	a := candidate(t, "a", &stored{})
	a.mayWrite("before it becomes leader", false)
	must(t, a.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}))
	a.mayWrite("while it is leader", true)
	a.passes(10 * time.Second)
	a.mayWrite("at its renewal deadline", true)
	a.passes(time.Millisecond)
	a.mayWrite("after it was frozen", false)
	if err := a.take(); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a late renewal returned %v", err)
	}
	a.mayWrite("it cannot become leader again", false)

	b := candidate(t, "b", &stored{})
	must(t, b.take())
	for range 10 {
		b.passes(9 * time.Second)
		must(t, b.take())
	}
	b.mayWrite("it renewed in time several times", true)
}

func TestV2ARenewalCountsFromWhenItWasSent(t *testing.T) {
	a := candidate(t, "a", &stored{})
	must(t, a.take())
	slow := a.Interface.(*lock)
	a.Interface = slowly{slow, func() { a.passes(9 * time.Second) }}
	must(t, a.take())
	a.mayWrite("9 s after the renewal was sent", true)
	a.passes(2 * time.Second)
	a.mayWrite("11 s after the renewal was sent", false)
}

// slowly is a lock with delayed responses.
type slowly struct {
	*lock
	wait func()
}

func (s slowly) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	s.wait()
	return s.lock.Update(ctx, record)
}

func TestV2ASuspendedMachineHasTimeToo(t *testing.T) {
	// The monotonic clock was stopped, and the wall clock was set afterwards.
	before := time.Now()
	after := before.Round(0).Add(time.Hour)
	if got := elapsed(before, after); got != time.Hour {
		t.Errorf("duration %s, want 1h", got)
	}
	// The wall clock was set back.
	if got := elapsed(before, before.Add(time.Minute)); got != time.Minute {
		t.Errorf("duration %s, want 1m", got)
	}
}

func TestV3AWokenLeaderLeavesTheLeaseOfAnotherAlone(t *testing.T) {
	at := &stored{}
	a, b := candidate(t, "a", at), candidate(t, "b", at)
	must(t, a.take())
	must(t, b.take()) // a is frozen
	a.giveUp()
	if at.record.HolderIdentity != "b" {
		t.Errorf("the lease is held by %q, want b", at.record.HolderIdentity)
	}
	a.mayWrite("the leader election ended", false)
	b.mayWrite("while it is leader", true)

	b.giveUp()
	if at.record.HolderIdentity != "" {
		t.Errorf("the lease is held by %q after its holder released it", at.record.HolderIdentity)
	}
	b.mayWrite("the lease was released", false)
	if err := b.take(); !errors.Is(err, ErrNotLeading) {
		t.Errorf("the former leader acquires its lease again: %v", err)
	}
}

// The lease was deleted, and another process recreates it before the leader renews it.
func TestV2WhoReadsOfAnotherHolderLeadsNoMore(t *testing.T) {
	at := &stored{}
	a, b := candidate(t, "a", at), candidate(t, "b", at)
	must(t, a.take())
	a.mayWrite("the leader", true)
	at.record = resourcelock.LeaderElectionRecord{}
	must(t, b.take())
	if _, _, err := a.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.mayWrite("a process that observed another leader", false)
	b.giveUp()
	if err := a.take(); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a new leader term uses decisions of the former one: %v", err)
	}
}

func TestV3NothingIsWrittenWhileTheLeaseIsReleased(t *testing.T) {
	a := candidate(t, "a", &stored{})
	must(t, a.take())
	inner := a.Interface.(*lock)
	a.Interface = slowly{inner, func() { a.mayWrite("while it releases its lease", false) }}
	a.giveUp()
}

func TestV5TheWatchKnowsWhenNobodyLooked(t *testing.T) {
	a := candidate(t, "a", &stored{})
	if got := a.Watch(); !got.Since.IsZero() {
		t.Errorf("observing since %s, before it became leader", got.Since)
	}
	must(t, a.take())
	for range 5 {
		a.passes(2 * time.Second)
		must(t, a.take())
	}
	if got := a.Watch().Elapsed(noon, a.time); got != 10*time.Second {
		t.Errorf("counted %s, want 10s: a renewal every 2 s leaves no gap", got)
	}
	a.passes(9 * time.Second)
	if got := a.Watch().Elapsed(noon, a.time); got != 10*time.Second {
		t.Errorf("counted %s while the API server was unreachable for 9 s, want 10s", got)
	}
	must(t, a.take())
	a.passes(2 * time.Second)
	if got := a.Watch().Elapsed(noon, a.time); got != 12*time.Second {
		t.Errorf("counted %s after the gap, want 12s", got)
	}
	if got := a.Watch().Elapsed(noon.Add(-time.Hour), a.time); got != 12*time.Second {
		t.Errorf("counted %s of the time before it became leader, want 12s", got)
	}
}

func TestWithoutALeaseEverythingIsAllowed(t *testing.T) {
	var none *Lease
	if err := none.Check(); err != nil {
		t.Error(err)
	}
	if got := none.Watch().Elapsed(at(0), at(60)); got != time.Minute {
		t.Errorf("counted %s, want 1m", got)
	}
}

func TestWithoutAnElectionTheWatchKnowsOutages(t *testing.T) {
	p := candidate(t, "", nil)
	ctx, cancel := context.WithCancel(t.Context())
	pings := 0
	p.ping = func(context.Context) error {
		if pings++; pings == 2 {
			cancel()
			return errors.New("no route to host")
		}
		return nil
	}
	p.timing.RetryPeriod = time.Microsecond
	must(t, p.Start(ctx))
	p.timing.RetryPeriod = 2 * time.Second
	p.passes(6 * time.Second)
	if got := p.Watch().Elapsed(noon, p.time); got != 6*time.Second {
		t.Errorf("counted %s, want 6s", got)
	}
	p.passes(time.Minute)
	if got := p.Watch().Elapsed(noon, p.time); got != 0 {
		t.Errorf("counted %s of an outage, want none", got)
	}
	p.mayWrite("a process without leader election", true)
}

func TestV5WithoutAnElectionTheTimeBeforeTheFirstAnswerIsNoneInWhichItLooked(t *testing.T) {
	l := Alone(func(context.Context) error { return errors.New("no route to host") }, Timing{RetryPeriod: 2 * time.Second})
	started := time.Now()
	l.now = func() time.Time { return started.Add(time.Minute) }
	if got := l.Watch().Elapsed(started.Add(-time.Hour), l.now()); got > time.Second {
		t.Errorf("counted %s before the API server responded, want none", got)
	}
}

// By the monotonic clock, both ends of the gap are the same time.
func TestV5AGapIsAsLongAsTheWallClockSays(t *testing.T) {
	from := time.Now()
	suspended := from.Round(0).Add(time.Hour)
	w := Watch{}.with(Gap{From: from, To: suspended})
	if g := w.Gaps[0]; g.From != from.Round(0) || g.To != suspended {
		t.Errorf("%v has a monotonic clock reading", g)
	}
}
