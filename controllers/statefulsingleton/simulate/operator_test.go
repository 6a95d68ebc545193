package simulate

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// TestPassesAreDue checks that a pass is made only after an event, or when the key is requeued.
func TestPassesAreDue(t *testing.T) {
	c, made := run(t, nil, newDeployment("shop", 1))
	o := made.(*Operator)
	if passed := o.Pass(); passed.Acted || passed.Err != nil || len(o.Events) == 0 || len(o.Plans) == 0 {
		t.Errorf("the pass at rest is %v; events %q", passed, o.Events)
	}
	o.Due = c.Now.Add(time.Minute)
	if passed := o.Pass(); passed.Wait != time.Minute || o.Queued() {
		t.Errorf("the delay is %s", passed.Wait)
	}
	c.Now = c.Now.Add(time.Minute)
	if !o.Queued() {
		t.Error("the key is not requeued")
	}
	o.Pass()
	o.Due = time.Time{}
	c.Delete(Every[corev1.Pod](c)[0])
	if o.Queued() {
		t.Error("an event is seen before the cache shows it")
	}
	if o.Look(); !o.Queued() {
		t.Error("an event does not queue the key")
	}
}

// TestRenewalsDoNotWake checks that only a change of the holder of a Lease queues the key.
func TestRenewalsDoNotWake(t *testing.T) {
	o := New(newCluster(), shop).Start("a")
	lease := func(holder string, second int64) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(second, 0)))}}
	}
	if o.wakes(lease("a", 1), lease("a", 2)) || !o.wakes(lease("a", 1), lease("b", 1)) || !o.wakes(lease("a", 1), nil) {
		t.Error("a renewal queues the key, or another change does not")
	}
}

// TestAKilledOperatorWritesNothing checks that a process that is killed at a write starts again.
func TestAKilledOperatorWritesNothing(t *testing.T) {
	c := newCluster(newObject(), newDeployment("shop", 1))
	s := New(c, shop)
	o := s.Start("a")
	killed := 0
	c.Interfere = func(int, action.Action) (before, after error) {
		killed++
		return simulation.ErrKilled, nil
	}
	before := o.Reconciler
	if passed := o.Pass(); passed.Err != nil || killed != 1 || o.Reconciler == before || !o.Queued() {
		t.Errorf("the pass is %v after %d attempts", passed, killed)
	}
	if len(present(c).Finalizers) > 0 {
		t.Error("the killed process has written")
	}
	c.Interfere = nil
	o.Step() // up to the first read
	if present(c).Finalizers != nil || !o.Finish() || len(present(c).Finalizers) == 0 {
		t.Error("the pass does not continue where it has paused")
	}
}

// TestAMissingGuardIsStillMissing checks that the guard is missing if the object reports it.
func TestAMissingGuardIsStillMissing(t *testing.T) {
	c, _ := run(t, nil, newDeployment("shop", 1))
	c = copied(c)
	for range 2 {
		s := New(c, shop)
		s.unguarded.Reason, s.unguarded.Message = "PolicyNotInstalled", "the policy is missing"
		settle(t, c, s.Start("a"))
		if !has(present(c), v1.ConditionGuardMissing) {
			t.Fatal("the guard is not reported as missing")
		}
		writes := c.Writes()
		if settle(t, c, Kind{}.Start(c, shop)); c.Writes() != writes || !has(present(c), v1.ConditionGuardMissing) {
			t.Error("the guard is no longer missing")
		}
	}
}

// has reports whether a condition of an object is True.
func has(s *v1.StatefulSingleton, kind string) bool {
	for _, c := range s.Status.Conditions {
		if c.Type == kind {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}
