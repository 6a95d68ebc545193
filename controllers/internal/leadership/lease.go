// Package leadership reports whether this process may write, and during which time it was able to
// observe the cluster.
//
// The leader election of client-go is not sufficient for either. A leader that was frozen (SIGSTOP, a
// paused machine, a starved node) continues with earlier decisions, until client-go detects that
// another process leads.
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
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// ErrNotLeading is wrapped by the error of a write that was rejected because this process may no longer
// be the leader.
var ErrNotLeading = errors.New("this process may no longer be the leader")

// Timing contains the durations of leader election, as in client-go. LeaseDuration must be longer than
// RenewDeadline, and RenewDeadline longer than 1.2 times RetryPeriod.
type Timing struct {
	// LeaseDuration is how long other processes wait after the last observed renewal before they take
	// the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader may write after its last renewal. The time from RenewDeadline
	// to LeaseDuration is reserved for requests in flight.
	RenewDeadline time.Duration
	// RetryPeriod is the interval between attempts to acquire or renew the lease.
	RetryPeriod time.Duration
}

// Lease is a resource lock for leader election that records the time of its renewals. A nil Lease
// allows every write; it is for tests and for processes that need no lock.
type Lease struct {
	resourcelock.Interface
	timing Timing
	now    func() time.Time
	// ping checks that the API server responds. It is nil if there is a leader election.
	ping func(context.Context) error

	mu sync.Mutex
	// holder is the holder of the lease as of the last read or write.
	holder string
	// renewed is when the last successful renewal was sent; zero while this process does not lead.
	renewed time.Time
	// over is true after this process released its lease, or found that it had not renewed it in time.
	// The process then never leads again, and exits.
	over  bool
	watch Watch
}

// New returns a Lease with the given name. The identity in lock must be unique to this process.
func New(config *rest.Config, namespace, name string, lock resourcelock.ResourceLockConfig, timing Timing) (*Lease, error) {
	inner, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name, lock,
		rest.AddUserAgent(config, "leader-election"), timing.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("create the lock of the leader election: %w", err)
	}
	return &Lease{Interface: inner, timing: timing, now: time.Now}, nil
}

// Alone returns a Lease for a process without leader election. It allows every write, and its Watch
// contains the times when ping failed. It must be added to the manager.
func Alone(ping func(context.Context) error, timing Timing) *Lease {
	l := &Lease{ping: ping, timing: timing, now: time.Now}
	l.renew(l.now()) // as if a ping had succeeded; the time before is unknown
	return l
}

// Start calls ping periodically until ctx ends. The manager calls Start.
func (l *Lease) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, l.timing.RenewDeadline/2)
		defer cancel()
		sent := l.now()
		if err := l.ping(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Failed to reach the API server")
			return
		}
		l.renew(sent)
	}, l.timing.RetryPeriod)
	return nil
}

// Get reads the lease and records its holder. If this process leads but finds another holder, it stops
// leading. This happens if the lease was deleted and another process recreated it.
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

// Create creates the lease, with this process as its holder.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.now()
	if err := l.Interface.Create(ctx, record); err != nil {
		return err
	}
	l.renew(sent)
	return nil
}

// Update acquires, renews or releases the lease. A renewal that is too late fails, so that the process
// exits: another process may have led meanwhile, and earlier decisions must not be written any more.
// Update does not release a lease that another process holds.
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

// release releases the lease. This process must not write from now on, because another process can lead
// as soon as the API server has processed the release. client-go reads the lease before it releases it,
// and would overwrite the record of a new holder. The update is bound to the version that was read, so
// it cannot affect a later holder.
func (l *Lease) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	l.over = true
	holder := l.holder
	l.mu.Unlock()
	// Without it a leader that ends releases the lease, whoever holds it by then.
	if holder != l.Identity() {
		log.FromContext(ctx).Info("The lease has another holder and is not released", "lease", l.Describe(), "holder", holder)
		return nil
	}
	return l.Interface.Update(ctx, record)
}

// mayRenew returns an error if the last renewal of this process is too old.
func (l *Lease) mayRenew(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return fmt.Errorf("%w: its lease expired, and it is shutting down", ErrNotLeading)
	}
	if l.renewed.IsZero() {
		return nil // this process does not lead yet
	}
	if age := elapsed(l.renewed, now); age > l.timing.RenewDeadline {
		l.over = true
		return fmt.Errorf("%w: it did not renew its lease for %s, and is shutting down", ErrNotLeading, age.Round(time.Millisecond))
	}
	return nil
}

// renew records a successful renewal that was sent at the given time.
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

// tolerance is the max time without a response from the API server that does not count as a gap.
func (l *Lease) tolerance() time.Duration { return 3 * l.timing.RetryPeriod }

// Check returns an error that wraps ErrNotLeading if this process must not write: it does not hold the
// lease, released it, or last renewed it more than RenewDeadline ago. Time during which the process was
// frozen counts. Check is called immediately before each write.
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
		return fmt.Errorf("%w: it renewed its lease %s ago, and the max is %s", ErrNotLeading, age.Round(time.Millisecond), l.timing.RenewDeadline)
	}
	return nil
}

// Watch returns the times during which this process was able to observe the cluster. Callers must read
// the clock first, then call Watch, then read the cluster. A freeze between these steps then only
// shortens a measured time.
func (l *Lease) Watch() Watch {
	if l == nil {
		return Watch{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); !l.renewed.IsZero() && elapsed(l.renewed, now) > l.tolerance() {
		return l.watch.with(Gap{From: l.renewed, To: now}) // the gap continues
	}
	return l.watch
}

// elapsed returns the time between two readings of this process's clock. The monotonic clock stops
// while the machine is suspended, and the wall clock may be set back. So elapsed returns the longer of
// both durations, which is the safe one.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
