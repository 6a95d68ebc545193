package freeze

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestLeaderHasRenewed: one whose first answer was lost holds the lease and does not know it.
// A rival that was started then would come to lead, and the trap of the first would never spring.
func TestLeaderHasRenewed(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop() // so that each question is asked once
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
