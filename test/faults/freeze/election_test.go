package freeze

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestLeaderHasRenewed verifies that a holder without a renewal is not yet the leader. If the first
// response was lost, it is not aware of its lease. A rival that is started at this time would become
// leader, and the first one's trap would never be sprung.
func TestLeaderHasRenewed(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop() // so that each condition is checked only once
	e := &Election{}
	says := func(holder string) {
		e.see(watch.Event{Type: watch.Modified, Object: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}})
	}
	leads := func(want string) {
		t.Helper()
		if got, err := e.AwaitLeader(ended); err == nil != (want != "") || want != "" && got != want {
			t.Errorf("want leader %q, got %q (%v)", want, got, err)
		}
	}
	leads("")
	says("one")
	leads("")
	says("one")
	leads("one")
	says("two")
	leads("")
	says("two")
	leads("two")
}
