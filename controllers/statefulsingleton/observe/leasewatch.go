package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// LeaseWatch watches the Leases of StatefulSingletons. It triggers a pass when the holder changes, and when a Lease
// with a holder is not renewed. A renewal triggers none.
type LeaseWatch struct {
	now  func() time.Time
	pods *PodWatch

	mu sync.Mutex
	// followed are the namespaces with a watch.
	followed map[string]bool
	leases   map[types.NamespacedName]*watchedLease
}

// watchedLease is a Lease as it was last seen.
type watchedLease struct {
	sighting
	holder   string
	duration time.Duration
	// due is when to trigger the next pass, since the sighting.
	due time.Duration
}

// leaseTick is the interval in which the ages of the Leases are checked.
const leaseTick = 500 * time.Millisecond

// NewLeaseWatch returns a LeaseWatch.
func NewLeaseWatch(now func() time.Time, pods *PodWatch) *LeaseWatch {
	return &LeaseWatch{now: now, pods: pods, followed: map[string]bool{}, leases: map[types.NamespacedName]*watchedLease{}}
}

// Start checks the ages of the Leases until the context ends.
func (l *LeaseWatch) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, key := range l.due() {
			l.pods.requeue(key)
		}
	}, leaseTick)
	return nil
}

// due returns the objects whose Leases have not been renewed, after half of the duration, after all of it, and then
// in growing intervals.
func (l *LeaseWatch) due() []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []types.NamespacedName
	for key, lease := range l.leases {
		if lease.holder == "" || l.now().Sub(lease.at) < lease.due {
			continue
		}
		keys = append(keys, key)
		lease.due = max(lease.duration, lease.due*2)
	}
	return keys
}

// Follow starts to watch the Leases of a namespace, unless it already does. The right to do so must exist.
func (l *LeaseWatch) Follow(ctx context.Context, namespace string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followed[namespace] {
		return nil
	}
	selector, err := labels.Parse(v1.LabelSingleton)
	if err != nil {
		return err
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: l.see, UpdateFunc: func(_, lease any) { l.see(lease) }, DeleteFunc: l.forget}
	// It ends with the manager.
	if _, err = l.pods.watch(ctx, cache.Options{
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&coordinationv1.Lease{}: {Label: selector}},
	}, handler, &coordinationv1.Lease{}); err != nil {
		return fmt.Errorf("watch Leases in %s: %w", namespace, err)
	}
	l.followed[namespace] = true
	return nil
}

// keyOf returns the object of a Lease.
func keyOf(lease *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: lease.Namespace, Name: lease.Labels[v1.LabelSingleton]}
}

// see records a version of a Lease, and triggers a pass if its holder has changed.
func (l *LeaseWatch) see(obj any) {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return
	}
	key, holder := keyOf(lease), ptr.Deref(lease.Spec.HolderIdentity, "")
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	l.mu.Lock()
	before := l.leases[key]
	if before == nil || before.version != lease.ResourceVersion {
		l.leases[key] = &watchedLease{sighting: sighting{lease.ResourceVersion, l.now()}, holder: holder, duration: duration, due: duration / 2}
	}
	changed := before == nil || before.holder != holder
	l.mu.Unlock()
	if changed {
		l.pods.requeue(key)
	}
}

// forget forgets a Lease that was deleted, and triggers a pass.
func (l *LeaseWatch) forget(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return
	}
	l.mu.Lock()
	delete(l.leases, keyOf(lease))
	l.mu.Unlock()
	l.pods.requeue(keyOf(lease))
}

// seenAt returns when a version of the Lease was seen; zero if it is not the last one that was seen.
func (l *LeaseWatch) seenAt(key types.NamespacedName, version string) time.Time {
	if l == nil {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease := l.leases[key]; lease != nil && lease.version == version {
		return lease.at
	}
	return time.Time{}
}
