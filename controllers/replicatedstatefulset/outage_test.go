package replicatedstatefulset

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestV13WhoDoesNotAnswerIsOnRecord tests that an unanswered status is remembered after a restart
// of the operator, until the member answers or its container changes.
func TestV13WhoDoesNotAnswerIsOnRecord(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(20 * time.Second)
	hang("rss-db-0 status")(s)
	for end := s.Now.Add(3 * time.Minute); s.Now.Before(end) && !s.degraded(); s.Now = s.Now.Add(time.Second) {
		s.round()
	}
	record := s.Set().Status.Unanswered
	if len(record) != 1 || record[0].Pod != "rss-db-0" || !s.degraded() {
		t.Fatalf("V13: Degraded is %t, and the record is %v", s.degraded(), record)
	}
	s.restart()
	for range 20 { // it has not been asking for long enough
		s.round()
		s.Now = s.Now.Add(500 * time.Millisecond)
		if !s.degraded() || !slices.Equal(s.Set().Status.Unanswered, record) {
			t.Fatalf("V13: status.unanswered changed after a restart of the operator: %v", s.Set().Status.Unanswered)
		}
	}
	unhang(s)
	s.settle(20 * time.Second)
	if s.degraded() || len(s.Set().Status.Unanswered) > 0 {
		t.Errorf("V13: after an answer Degraded is %t, and the record is %v", s.degraded(), s.Set().Status.Unanswered)
	}
}

// round is a pass, followed by the steps of the cluster and the commands.
func (s *stage) round() {
	s.Look()
	s.pass()
	s.check()
	for _, move := range append(s.Machines(), s.db.Moves()...) {
		move()
	}
}

func (s *stage) degraded() bool {
	return meta.IsStatusConditionTrue(s.Set().Status.Conditions, v1alpha1.ConditionDegraded)
}

// TestV13NoMemberIsBlamedWhilePaused tests V13: while a set is paused no query is sent, so no
// member counts as unresponsive.
func TestV13NoMemberIsBlamedWhilePaused(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(20 * time.Second)
	hang("rss-db-0 status")(s)
	for s.command("rss-db-0 status") == nil {
		s.round()
		s.Now = s.Now.Add(time.Second)
	}
	pause(true)(s)
	for range 90 {
		s.round()
		s.Now = s.Now.Add(time.Second)
	}
	if s.degraded() || len(s.Set().Status.Unanswered) > 0 {
		t.Errorf("a member of a paused set counts as unresponsive: %v", s.Set().Status.Unanswered)
	}
}
