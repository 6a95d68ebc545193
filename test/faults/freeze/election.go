package freeze

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// Election is the history of a lease from its creation, without gaps.
type Election struct {
	mu      sync.Mutex
	holders []string // in order, without repetitions; "" is no holder
	renewed bool     // the last holder has renewed the lease
	err     error
}

// Watch watches a lease, which may not exist yet, until the context ends.
func Watch(ctx context.Context, kube kubernetes.Interface, namespace, name string) (*Election, error) {
	e := &Election{}
	return e, Follow(ctx, cache.NewListWatchFromClient(kube.CoordinationV1().RESTClient(), "leases", namespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, name)), e.see)
}

// Follow calls see for every object and then for every change, in order and without gaps, until the
// context ends. Errors are events of type Error.
func Follow(ctx context.Context, source *cache.ListWatch, see func(watch.Event)) error {
	list, err := source.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		see(watch.Event{Type: watch.Added, Object: object})
		return nil
	})
	if err != nil {
		return err
	}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, about.GetResourceVersion(), source)
	if err != nil {
		return err
	}
	go func() {
		for change := range changes.ResultChan() {
			if change.Type != watch.Bookmark {
				see(change)
			}
		}
	}()
	return nil
}

func (e *Election) see(change watch.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lease, ok := change.Object.(*coordinationv1.Lease)
	if !ok {
		e.err = errors.Join(e.err, fmt.Errorf("the watch on the lease failed: %w", apierrors.FromObject(change.Object)))
		return
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	n := len(e.holders)
	same := n > 0 && e.holders[n-1] == holder
	if !same {
		e.holders = append(e.holders, holder)
	}
	e.renewed = same && change.Type == watch.Modified
}

// Holders returns all holders of the lease, in order.
func (e *Election) Holders() ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.holders), e.err
}

// AwaitLeader waits until a holder has renewed the lease. Before the first renewal the holder may not
// be aware of its lease: the response to its first write may have been lost.
func (e *Election) AwaitLeader(ctx context.Context) (leader string, err error) {
	err = e.await(ctx, "hold and renew the lease", func() bool {
		if n := len(e.holders); n > 0 {
			leader = e.holders[n-1]
		}
		return leader != "" && e.renewed
	})
	return leader, err
}

// AwaitSuccessor waits until another process than leader holds the lease.
func (e *Election) AwaitSuccessor(ctx context.Context, leader string) error {
	return e.await(ctx, "succeed "+leader+" in the lease", func() bool {
		n := len(e.holders)
		return n > 0 && e.holders[n-1] != "" && e.holders[n-1] != leader
	})
}

// await waits until a condition for the lease's history is true.
func (e *Election) await(ctx context.Context, what string, isSo func() bool) error {
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return isSo(), e.err
	})
	if err != nil {
		holders, _ := e.Holders()
		return fmt.Errorf("no process came to %s; holders of the lease: %q: %w", what, holders, err)
	}
	return nil
}

// Parked is the holder of a lease while all its candidates must be inactive.
const Parked = "parked-by-a-test"

// parkedFor is the lease duration of a parked lease.
const parkedFor = 2 * time.Minute

// Park takes a lease over, so that its candidates are inactive, and renews it until the context ends or
// giveBack is called.
func Park(ctx context.Context, kube kubernetes.Interface, namespace, name string) (was string, giveBack func(context.Context) error, err error) {
	if was, err = hold(ctx, kube, namespace, name, Parked, parkedFor); err != nil {
		return "", nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			_, _ = hold(ctx, kube, namespace, name, Parked, parkedFor) // retried long before it expires
		}, parkedFor/20)
	})
	return was, func(ctx context.Context) error {
		stop()
		keeping.Wait()
		_, err := hold(ctx, kube, namespace, name, "", time.Second)
		return err
	}, nil
}

// hold writes a holder into a lease, regardless of the current holder.
func hold(ctx context.Context, kube kubernetes.Interface, namespace, name, holder string, d time.Duration) (was string, err error) {
	leases := kube.CoordinationV1().Leases(namespace)
	often := wait.Backoff{Duration: 50 * time.Millisecond, Steps: 600}
	err = retry.RetryOnConflict(often, func() error {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		was = ptr.Deref(lease.Spec.HolderIdentity, "")
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &metav1.MicroTime{Time: time.Now()}
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(d / time.Second))
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		err = fmt.Errorf("write %q to lease %s/%s: %w", holder, namespace, name, err)
	}
	return was, err
}
