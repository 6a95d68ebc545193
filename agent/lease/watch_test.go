package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/lease/leasetest"
)

func TestWatch(t *testing.T) {
	server := leasetest.New(t, other)
	w := &watcher{client: newTestClient(t, server)}
	w.start(server.Lease().ResourceVersion)
	t.Cleanup(w.stop)
	server.Assign(self)
	c := <-w.changes
	if w.take(c); c.holder != self || w.reported != server.Lease().ResourceVersion {
		t.Errorf("the change is %+v, and the watch %+v", c, w)
	}
	server.Delete()
	if c := <-w.changes; !c.deleted {
		t.Errorf("the change is %+v", c)
	}
	server.CloseClientConnections()
	c = <-w.changes
	if pause := w.take(c); !errors.Is(c.ended, errWatchClosed) || pause != minWaitPause || w.isActive() {
		t.Errorf("the end is %+v, and the pause %s", c, pause)
	}
}

func TestTheNextWatchIsLater(t *testing.T) {
	w := &watcher{}
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
		if got := w.take(change{ended: errWatchClosed}); got != want*time.Millisecond {
			t.Errorf("the pause is %s, want %d ms", got, want)
		}
	}
	w.take(change{version: "1"})
	if got := w.take(change{ended: errWatchClosed}); got != minWaitPause {
		t.Errorf("after a change, the pause is %s", got)
	}
}

func TestARefusedWatch(t *testing.T) {
	server := leasetest.New(t, other)
	server.Fail(leasetest.Refused)
	w := &watcher{client: newTestClient(t, server)}
	w.start("1")
	t.Cleanup(w.stop)
	if c := <-w.changes; c.ended == nil {
		t.Errorf("the change is %+v", c)
	}
}
