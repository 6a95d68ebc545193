// Package leadership says whether this process may write, and in which time it
// could look at the cluster.
//
// client-go's leader election alone answers neither. A leader that was frozen
// (SIGSTOP, a paused machine, a starved node) goes on with what it had decided
// before, for as long as client-go takes to notice that another process leads.
package leadership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ErrNotLeading is in the error of a write that was refused because this process
// may no longer be the leader.
var ErrNotLeading = errors.New("this process may no longer be the leader")

// Timing is that of leader election, as in client-go. LeaseDuration must be longer
// than RenewDeadline, and that longer than 1.2 times RetryPeriod.
type Timing struct {
	// LeaseDuration is how long other processes wait after the last renewal that
	// they saw before they take the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long after its last renewal a leader may write. Between
	// it and LeaseDuration is the time for requests that are on their way.
	RenewDeadline time.Duration
	// RetryPeriod is how often the lease is renewed or asked for.
	RetryPeriod time.Duration
}

// Lease is the lock of a leader election that remembers when it was renewed. A nil
// Lease is for tests and for processes that need no lock: it allows every write.
type Lease struct {
	resourcelock.Interface
	timing Timing
	now    func() time.Time
	// ping asks the API server for a sign of life; nil where there is an election.
	ping func(context.Context) error

	mu sync.Mutex
	// holder is who held the lease when it was read or written last.
	holder string
	// renewed is when the last successful renewal was sent; zero while this process
	// does not lead.
	renewed time.Time
	// over is true from the moment on in which this process gave its lease up, or
	// found that it had not renewed it in time. It leads no more then, and ends.
	over  bool
	watch Watch
}

// New makes the Lease of that name. Identity must be that of this process alone.
func New(config *rest.Config, namespace, name string, lock resourcelock.ResourceLockConfig, timing Timing) (*Lease, error) {
	inner, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name, lock,
		rest.AddUserAgent(config, "leader-election"), timing.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("making the lock of the leader election: %w", err)
	}
	return &Lease{Interface: inner, timing: timing, now: time.Now}, nil
}

// Alone makes a Lease for a process without an election: it allows every write, and
// its Watch knows when ping failed. It must be added to the manager.
func Alone(ping func(context.Context) error, timing Timing) *Lease {
	l := &Lease{ping: ping, timing: timing, now: time.Now}
	l.renew(l.now()) // as if it had looked; of the time before it knows nothing
	return l
}

// Start pings until ctx ends. It is what a manager calls.
func (l *Lease) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, l.timing.RenewDeadline/2)
		defer cancel()
		sent := l.now()
		if err := l.ping(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Ask the API server for a sign of life")
			return
		}
		l.renew(sent)
	}, l.timing.RetryPeriod)
	return nil
}

// Get reads the lease, and notes who holds it. A leader that finds another holder, as
// when somebody deleted the lease and another process made it anew, leads no more.
func (l *Lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.mu.Lock()
		l.holder = record.HolderIdentity
		if !l.renewed.IsZero() && l.holder != "" && l.holder != l.Identity() {
			l.over = true
		}
		l.mu.Unlock()
	}
	return record, raw, err
}

// Create makes the lease, with this process as its holder.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.now()
	if err := l.Interface.Create(ctx, record); err != nil {
		return err
	}
	l.renew(sent)
	return nil
}

// Update takes, renews or releases the lease. It fails for a renewal that comes too
// late, so that the process ends: another may have led meanwhile, and what was
// decided before must not be written after. The release of a lease that another
// process holds does nothing.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record)
	}
	sent := l.now()
	if err := l.mayRenew(sent); err != nil {
		return err
	}
	if err := l.Interface.Update(ctx, record); err != nil {
		return err
	}
	l.renew(sent)
	return nil
}

// release gives the lease up. No write may leave this process from here on, since
// another may lead as soon as the API server has the answer. client-go reads the
// lease right before, and would overwrite the record of whoever holds it by then;
// the record is bound to that read, so a later holder is safe from this write.
func (l *Lease) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	l.over = true
	holder := l.holder
	l.mu.Unlock()
	// Without it a leader that ends releases the lease, whoever holds it by then.
	if holder != l.Identity() {
		ctrl.LoggerFrom(ctx).Info("The lease has another holder and is left alone", "lease", l.Describe(), "holder", holder)
		return nil
	}
	return l.Interface.Update(ctx, record)
}

// mayRenew refuses a renewal by a process whose last one is too long ago.
func (l *Lease) mayRenew(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return fmt.Errorf("%w: its lease is over, and it ends", ErrNotLeading)
	}
	if l.renewed.IsZero() {
		return nil // it does not lead yet
	}
	if age := elapsed(l.renewed, now); age > l.timing.RenewDeadline {
		l.over = true
		return fmt.Errorf("%w: it did not renew its lease for %s, and ends", ErrNotLeading, age.Round(time.Millisecond))
	}
	return nil
}

// renew notes a renewal that the API server took, and was sent at that time.
func (l *Lease) renew(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ping == nil {
		l.holder = l.Identity()
	}
	if l.renewed.IsZero() {
		l.watch = Watch{Since: sent}
	} else if elapsed(l.renewed, sent) > l.tolerance() {
		l.watch = l.watch.with(Gap{From: l.renewed, To: sent})
	}
	l.renewed = sent
}

// tolerance is how long nothing may be heard of the API server before that time
// counts as one in which this process could not look.
func (l *Lease) tolerance() time.Duration { return 3 * l.timing.RetryPeriod }

// Check returns an error that wraps ErrNotLeading when this process must not write:
// it does not hold the lease, gave it up, or renewed it longer than RenewDeadline
// ago. Time counts while the process is frozen. It is asked right before each write.
func (l *Lease) Check() error {
	if l == nil || l.ping != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.renewed.IsZero() {
		return fmt.Errorf("%w: it holds no lease", ErrNotLeading)
	}
	if age := elapsed(l.renewed, l.now()); age > l.timing.RenewDeadline {
		return fmt.Errorf("%w: it renewed its lease %s ago, and %s is the most", ErrNotLeading, age.Round(time.Millisecond), l.timing.RenewDeadline)
	}
	return nil
}

// Watch says in which time this process could look. Whoever measures with it reads
// the clock first, then this, then the cluster: then a freeze between two of these
// makes a time look shorter, never longer.
func (l *Lease) Watch() Watch {
	if l == nil {
		return Watch{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); !l.renewed.IsZero() && elapsed(l.renewed, now) > l.tolerance() {
		return l.watch.with(Gap{From: l.renewed, To: now}) // it goes on
	}
	return l.watch
}

// elapsed is the time between two readings of this process's clock. The monotonic
// clock stands still while the machine is suspended, and the wall clock may be set
// back: the longer of the two is the safe one.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
