package facts_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestLeaseDuration(t *testing.T) {
	long := func(name string) *fixture.MemberFixture {
		m := fixture.Leased(name)
		m.Pod.Spec.Containers[0].Command[3] = "--duration=600s"
		return m
	}
	object := fixture.HeldByLease
	for name, row := range map[string]struct {
		w    *facts.World
		want time.Duration
	}{
		"that of the Lease":                                {fixture.LeasedBy(fixture.WorldOf(object(), fixture.Leased("a"), long("b")), "a", 1, 0, ""), 15 * time.Second},
		"that of the holder, before its first renewal":     {fixture.LeasedBy(fixture.WorldOf(object(), long("a")), "a", 1, 0, ""), 600 * time.Second},
		"the longest one of all pods without a Lease":      {fixture.WorldOf(object(), fixture.Leased("a"), long("b")), 600 * time.Second},
		"the longest one of all pods with a recreated one": {fixture.LeasedBy(fixture.WorldOf(object(), fixture.Leased("a"), long("b")), "", 0, 0, ""), 600 * time.Second},
		"at least 10 s": {fixture.WorldWith(fixture.LeasedBy(fixture.WorldOf(object()), "x", 1, 0, ""), func(w *facts.World) {
			w.Lease.Spec.LeaseDurationSeconds = ptr.To(int32(1))
		}), 10 * time.Second},
		"at most 600 s": {fixture.WorldWith(fixture.LeasedBy(fixture.WorldOf(object()), "x", 1, 0, ""), func(w *facts.World) {
			w.Lease.Spec.LeaseDurationSeconds = ptr.To(int32(1e6))
		}), 600 * time.Second},
	} {
		if got := row.w.LeaseDuration(); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestUsesLease(t *testing.T) {
	for name, row := range map[string]struct {
		w    *facts.World
		want bool
	}{
		"an object without fencing":          {fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), false},
		"an object with fencing":             {fixture.WorldOf(fixture.Singleton("db").Leased()), true},
		"a pod from before the mode changed": {fixture.WorldOf(fixture.Held(), fixture.Leased("a")), true},
		"a holder from before it":            {fixture.WorldOf(fixture.HeldByLease().With(func(s *v1.StatefulSingleton) { s.Spec.Fencing = nil })), true},
		"a leased pod whose object is gone":  {fixture.WorldOf(nil, fixture.Leased("a")), true},
		"another pod whose object is gone":   {fixture.WorldOf(nil, fixture.Waiting("a")), false},
	} {
		if got := row.w.UsesLease(); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestHolderNames(t *testing.T) {
	w := fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease()), "b", 2, 0, "")
	if got := w.HolderNames(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("the holders are %v, want those of the status and the Lease", got)
	}
	named, other := fixture.Leased("b"), fixture.Leased("c")
	if !w.NamesHolder(named.Pod) || w.NamesHolder(other.Pod) {
		t.Error("the Lease names b alone")
	}
	named.Pod.UID = "another"
	if w.NamesHolder(named.Pod) {
		t.Error("the Lease does not name a later pod of the same name")
	}
}

// TestS50AnUnknownLease tests who may run while the Lease is missing or was recreated.
func TestS50AnUnknownLease(t *testing.T) {
	for name, row := range map[string]struct {
		object *fixture.SingletonFixture
		pod    *fixture.MemberFixture
		since  time.Duration
		want   bool
	}{
		"no pod was started by it":             {fixture.Singleton("db").Leased(), fixture.Leased("b"), 0, false},
		"a pod was started by it":              {fixture.HeldByLease(), fixture.Leased("b"), 14 * time.Second, true},
		"but it has expired":                   {fixture.HeldByLease(), fixture.Leased("b"), 15 * time.Second, false},
		"the pod is older than the object":     {fixture.Singleton("db").Leased(), older(fixture.Leased("b")), 14 * time.Second, true},
		"the pod is older, but it has expired": {fixture.Singleton("db").Leased(), older(fixture.Leased("b")), 15 * time.Second, false},
	} {
		missing := fixture.WorldOf(row.object, row.pod)
		missing.LeaseSince = fixture.Noon.Add(-row.since)
		recreated := fixture.LeasedBy(fixture.WorldOf(row.object, row.pod), "", 0, row.since, "")
		for _, w := range []*facts.World{missing, recreated} {
			if got := w.MayRun(w.Pods[0]); got != row.want {
				t.Errorf("%s: it may run: %t, want %t", name, got, row.want)
			}
		}
	}
}

func older(m *fixture.MemberFixture) *fixture.MemberFixture {
	m.Pod.Annotations[v1.AnnotationSingletonUID] = "uid-of-an-earlier-object"
	return m
}

func TestNotRenewed(t *testing.T) {
	world := func(unchanged time.Duration, members ...*fixture.MemberFixture) *facts.World {
		return fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease(), members...), "a", 1, unchanged, "")
	}
	restarted := func() *fixture.MemberFixture { return fixture.Leased("a").StartedFor(time.Second).Restarted(1) }
	const third = 5 * time.Second
	for name, row := range map[string]struct {
		w     *facts.World
		want  bool
		again time.Duration
	}{
		"a Lease that is renewed":                     {world(7*time.Second, fixture.Leased("a")), false, 0},
		"a renewal that is late":                      {world(8*time.Second, fixture.Leased("a")), false, 2 * time.Second},
		"no renewal until the agent ends the program": {world(10*time.Second, fixture.Leased("a")), true, third},
		"a Lease that has expired":                    {world(time.Minute, fixture.Leased("a")), true, third},
		"a container that the agent has ended":        {world(10*time.Second, restarted().LastExit(fencing.ExitFenced)), true, third},
		"a container whose program has ended":         {world(10*time.Second, restarted()), false, 0},
		"a pod that is being deleted":                 {world(10*time.Second, fixture.Leased("a").Deleted()), false, 0},
		"a pod on an unreachable node":                {world(10*time.Second, fixture.Leased("a").OnNode(fixture.Unresponsive)), false, 0},
		"another pod":                                 {world(10*time.Second, fixture.Leased("b")), false, 0},
		"a Lease without a holder":                    {fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease(), fixture.Leased("a")), "", 1, time.Minute, ""), false, 0},
		"a Lease that this process has not seen":      {fixture.WorldWith(world(0, fixture.Leased("a")), func(w *facts.World) { w.LeaseSince = time.Time{} }), false, 0},
		"a Lease that cannot be read":                 {fixture.WorldWith(world(time.Minute, fixture.Leased("a")), func(w *facts.World) { w.LeaseProblem.Message = "forbidden" }), false, 0},
	} {
		f := facts.Derive(row.w)
		if got := f.NotRenewed(); (got != nil) != row.want {
			t.Errorf("%s: %v", name, got)
		}
		if row.again > 0 && !slices.Contains(f.RequeueDelays(), row.again) {
			t.Errorf("%s: the next pass is after %v, want %s", name, f.RequeueDelays(), row.again)
		}
	}
}
