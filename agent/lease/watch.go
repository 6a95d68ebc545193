package lease

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// change is a change of the Lease, or the end of the watch.
type change struct {
	version, holder string
	deleted         bool
	ended           error
}

var errWatchClosed = errors.New("the API server has closed the watch")

// watcher watches the Lease while it is started. Only the runner uses it.
type watcher struct {
	client  *client
	changes chan change // nil if there is no watch
	cancel  context.CancelFunc
	// reported is the version of the last change.
	reported string
	failures int
}

// start watches changes after a version, and ends an earlier watch.
func (w *watcher) start(version string) {
	w.stop()
	ctx, cancel := context.WithCancel(context.Background())
	changes := make(chan change)
	w.changes, w.cancel, w.reported = changes, cancel, version
	go func() {
		err := w.client.stream(ctx, version, changes)
		send(ctx, changes, change{ended: err})
	}()
}

func (w *watcher) isActive() bool { return w.changes != nil }

func (w *watcher) stop() {
	if w.isActive() {
		w.cancel()
		w.changes = nil
	}
}

// take records a change. If the watch has ended, it returns the pause before the next one.
func (w *watcher) take(c change) (pause time.Duration) {
	if c.ended == nil {
		w.reported, w.failures = c.version, 0
		return 0
	}
	w.stop()
	pause = min(minWaitPause<<min(w.failures, 10), maxWaitPause)
	w.failures++
	return pause
}

func send(ctx context.Context, changes chan<- change, c change) bool {
	select {
	case changes <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream sends changes until the watch ends, and returns the reason.
func (c *client) stream(ctx context.Context, version string, changes chan<- change) error {
	events, err := c.watch(ctx, version)
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		l := c.leaseOf(object)
		if !send(ctx, changes, change{version: l.Version, holder: l.Holder, deleted: event.Type == watch.Deleted}) {
			return ctx.Err()
		}
	}
	return errWatchClosed
}
