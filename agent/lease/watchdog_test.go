package lease

import (
	"testing"
	"time"
)

func newTestWatchdog(t *testing.T) (*watchdog, chan time.Duration) {
	t.Helper()
	barked := make(chan time.Duration, 1)
	w, err := newWatchdog(func() { barked <- sinceBoot() })
	if err != nil {
		t.Fatal(err)
	}
	return w, barked
}

func TestTheWatchdogExpiresAtItsTime(t *testing.T) {
	w, barked := newTestWatchdog(t)
	first := sinceBoot() + time.Hour
	at := sinceBoot() + 50*time.Millisecond
	for _, at := range []time.Duration{first, at} {
		if err := w.arm(at); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-barked; got < at {
		t.Errorf("it expires %s too early", at-got)
	}
}

func TestAPastTimeExpiresAtOnce(t *testing.T) {
	for _, at := range []time.Duration{-1, 0, 1} {
		w, barked := newTestWatchdog(t)
		if err := w.arm(at); err != nil {
			t.Fatal(err)
		}
		<-barked
	}
}

func TestADisarmedWatchdogDoesNotExpire(t *testing.T) {
	w, barked := newTestWatchdog(t)
	other, otherBarked := newTestWatchdog(t)
	at := sinceBoot() + 50*time.Millisecond
	if err := w.arm(at); err != nil {
		t.Fatal(err)
	}
	if err := w.disarm(); err != nil {
		t.Fatal(err)
	}
	if err := other.arm(at + 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-otherBarked
	select {
	case <-barked:
		t.Error("it expires")
	default:
	}
}
