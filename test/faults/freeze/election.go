package freeze

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

// Election is what a lease said, from its first word on and without a gap.
type Election struct {
	mu      sync.Mutex
	holders []string // one after another, each once; "" is nobody
	err     error
}

// Watch follows a lease, which need not be there yet, until the context ends.
func Watch(ctx context.Context, kube kubernetes.Interface, namespace, name string) (*Election, error) {
	source := cache.NewListWatchFromClient(kube.CoordinationV1().RESTClient(), "leases", namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	list, err := source.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	leases, ok := list.(*coordinationv1.LeaseList)
	if !ok {
		return nil, fmt.Errorf("a list of leases was expected, and %T came", list)
	}
	e := &Election{}
	for i := range leases.Items {
		e.see(watch.Event{Type: watch.Added, Object: &leases.Items[i]})
	}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, leases.ResourceVersion, source)
	if err != nil {
		return nil, err
	}
	go func() {
		for change := range changes.ResultChan() {
			e.see(change)
		}
	}()
	return e, nil
}

func (e *Election) see(change watch.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if change.Type == watch.Bookmark {
		return
	}
	lease, ok := change.Object.(*coordinationv1.Lease)
	if !ok {
		e.err = errors.Join(e.err, fmt.Errorf("the watch on the lease broke: %w", apierrors.FromObject(change.Object)))
		return
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if n := len(e.holders); n == 0 || e.holders[n-1] != holder {
		e.holders = append(e.holders, holder)
	}
}

// Holders are all that held the lease, in their order.
func (e *Election) Holders() ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.holders), e.err
}

// AwaitHolder waits until another one holds the lease than any of those before.
func (e *Election) AwaitHolder(ctx context.Context, before ...string) (holder string, err error) {
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		holders, err := e.Holders()
		if n := len(holders); n > 0 {
			holder = holders[n-1]
		}
		return holder != "" && !slices.Contains(before, holder), err
	})
	if err != nil {
		holders, _ := e.Holders()
		err = fmt.Errorf("nobody else came to hold the lease, which %q held: %w", holders, err)
	}
	return holder, err
}

// Parked is who holds a lease that nobody is to act under.
const Parked = "parked-by-a-test"

// parkedFor is how long a lease stays so when nobody renews it.
const parkedFor = 2 * time.Minute

// Park takes a lease over, so that none of its candidates acts, and keeps it until
// the context ends or it is given back.
func Park(ctx context.Context, kube kubernetes.Interface, namespace, name string) (was string, giveBack func(context.Context) error, err error) {
	ctx, stop := context.WithCancel(ctx)
	if was, err = hold(ctx, kube, namespace, name, Parked, parkedFor); err != nil {
		stop()
		return "", nil, err
	}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			_, _ = hold(ctx, kube, namespace, name, Parked, parkedFor) // it is tried again long before it ends
		}, parkedFor/20)
	}()
	return was, func(ctx context.Context) error {
		stop()
		<-kept
		_, err := hold(ctx, kube, namespace, name, "", time.Second)
		return err
	}, nil
}

// hold writes a holder into a lease, whoever held it.
func hold(ctx context.Context, kube kubernetes.Interface, namespace, name, holder string, d time.Duration) (was string, err error) {
	leases := kube.CoordinationV1().Leases(namespace)
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		was = ptr.Deref(lease.Spec.HolderIdentity, "")
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &metav1.MicroTime{Time: time.Now()}
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(d / time.Second))
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		err = fmt.Errorf("writing %q into lease %s: %w", holder, strings.Join([]string{namespace, name}, "/"), err)
	}
	return was, err
}
