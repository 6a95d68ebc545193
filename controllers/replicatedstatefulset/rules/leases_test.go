package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// leaseLines returns the chains of a plan that write Leases, or the rights on them.
func leaseLines(p *rules.Plan) []string {
	var lines []string
	for _, line := range p.Steps.Strings() {
		if strings.Contains(line, ": Lease") || strings.Contains(line, ": Expired") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func TestWritesOfLeases(t *testing.T) {
	old, fresh := fixture.LeaseSeconds*time.Second, (fixture.LeaseSeconds-1)*time.Second
	primary := func(age time.Duration) *fixture.PodFixture {
		return fixture.Pod(0).Leased(4).Holds(age).Renewed().Primary().InEpoch(4)
	}
	second := func() *fixture.PodFixture { return fixture.Pod(1).Leased(0).Secondary().Sequence("9") }
	const took = "patch lease rss-db-0.member: Expired, rss-db-0 has not renewed it for 30s"
	for _, r := range []struct {
		name   string
		things []fixture.Thing
		want   []string
	}{
		{"a Lease that is renewed", []fixture.Thing{primary(fresh), second()}, nil},
		{"a Lease that is not renewed", []fixture.Thing{primary(old), second()}, []string{took}},
		{"of a start that has not begun", []fixture.Thing{fixture.Pod(0).Leased(4).Holds(old).Status(7).WithGranted().InEpoch(4).Began("seed", 40*time.Second), second()}, []string{took}},
		{"of a primary whose process 1 has not begun to renew it", []fixture.Thing{fixture.Pod(0).Leased(4).Holds(old).Primary().InEpoch(4), second()}, nil},
		{"a recreated Lease of a primary that renewed it before", []fixture.Thing{fixture.Pod(0).Leased(4).Holds(old).Primary().InEpoch(4).But(func(w *facts.World) {
			w.Set.Status.Grants[0].LeaseRenewed = true
		}), second()}, []string{took}},
		{"a primary without an assignment", []fixture.Thing{fixture.Pod(0).Leased(4).Primary().InEpoch(5), second()},
			[]string{"patch lease rss-db-0.member: Lease, names rss-db-0, epoch 5"}},
		{"a Lease of a member that is not primary", []fixture.Thing{primary(fresh), second().Holds(fresh)},
			[]string{"patch lease rss-db-1.member: Lease, rss-db-1 is not primary"}},
		{"the Lease of a grant in the stored status", []fixture.Thing{fixture.Pod(0).Leased(4).Holds(fresh).Renewed().Idle().WithGranted().InEpoch(4), second()}, nil},
		{"a missing Lease", []fixture.Thing{primary(fresh), fixture.Pod(1).Unleased().Secondary().Sequence("9")},
			[]string{"create lease rss-db-1.member: Lease", "patch role rss-db.member: Lease"}},
		{"the Lease of a removed member", []fixture.Thing{primary(fresh), fixture.With(func(w *facts.World) {
			gone := w.LeaseOf(w.Members[0]).DeepCopy()
			gone.Name, gone.Spec.HolderIdentity = "rss-db-7.member", nil
			w.Fencing.Leases["rss-db-7"] = gone
		})}, []string{"delete lease rss-db-7.member: Lease, no member uses it"}},
		{"the Lease of a recreated pod without one", []fixture.Thing{primary(fresh), second().But(func(w *facts.World) {
			w.Members[1].Pod.Spec.Containers[0].Command = nil
			w.Fencing.Role = nil
		})}, []string{"create role rss-db.member: Lease", "delete lease rss-db-1.member: Lease, no member uses it"}},
		{"a missing Lease whose name another client uses", []fixture.Thing{primary(fresh), fixture.Pod(1).Unleased().Secondary().Sequence("9"), fixture.With(func(w *facts.World) {
			w.Fencing.Foreign = map[string]*coordinationv1.Lease{"rss-db-1": {}}
		})}, []string{"patch role rss-db.member: Lease"}},
		{"a Role that another client has changed", []fixture.Thing{primary(fresh), second(), fixture.With(func(w *facts.World) {
			w.Fencing.Role.Rules[0].Verbs = []string{"*"}
		})}, []string{"patch role rss-db.member: Lease"}},
		{"a RoleBinding of another Role", []fixture.Thing{primary(fresh), second(), fixture.With(bindsAnother)},
			[]string{"delete rolebinding rss-db.member: Lease, it binds another Role > create rolebinding rss-db.member: Lease"}},
		{"a RoleBinding of another Role, and no member uses it", []fixture.Thing{fixture.Pod(0).Leased(4), fixture.With(bindsAnother), fixture.With(func(w *facts.World) {
			w.Members[0].Pod.Spec.Containers[0].Command = nil
			w.Fencing.Role, w.Fencing.Leases = nil, map[string]*coordinationv1.Lease{}
		})}, []string{"delete rolebinding rss-db.member: Lease, no member uses it"}},
		{"a RoleBinding of another Role and owner", []fixture.Thing{primary(fresh), second(), fixture.With(bindsAnother), fixture.With(func(w *facts.World) {
			w.Fencing.RoleBinding.OwnerReferences = nil
		})}, nil},
		{"no right to use Leases", []fixture.Thing{primary(old), second(), fixture.With(func(w *facts.World) {
			w.Fencing.Problem = facts.Notice{Reason: v1alpha1.ReasonFencingNotPermitted, Message: "not permitted"}
		})}, nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), r.things...))
			if got := leaseLines(&p); !slices.Equal(got, r.want) {
				t.Errorf("writes\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(r.want, "\n  "))
			}
		})
	}
}

// bindsAnother makes the RoleBinding of the members grant another Role.
func bindsAnother(w *facts.World) { w.Fencing.RoleBinding.RoleRef.Name = "other" }

// written returns the Lease that a plan writes for a reason. It returns nil if there is none.
func written(p *rules.Plan, reason string) *coordinationv1.Lease {
	for _, chain := range slices.Concat(p.Steps...) {
		for _, a := range chain {
			if lease, ok := a.Object.(*coordinationv1.Lease); ok && a.Reason == reason {
				return lease
			}
		}
	}
	return nil
}

func TestATakenOverLeaseNamesTheContainerThatHasEnded(t *testing.T) {
	for name, r := range map[string]struct {
		pod  *fixture.PodFixture
		want string
	}{
		"a container that has renewed it": {fixture.Pod(0).Leased(4).Holds(time.Minute).Renewed().Primary().InEpoch(4), "c0"},
		"a start that has not begun":      {fixture.Pod(0).Leased(4).Holds(time.Minute).Status(7).WithGranted().InEpoch(4).Began("seed", 40*time.Second), ""},
	} {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(1, 1), r.pod))
		lease := written(&p, facts.ReasonExpired)
		if lease == nil {
			t.Fatalf("%s: the Lease is not taken over: %q", name, p.Steps.Strings())
		}
		if got := lease.Annotations[v1alpha1.AnnotationFenced]; got != r.want || lease.Spec.HolderIdentity != nil {
			t.Errorf("%s: container %q, holder %v; want container %q and no holder", name, got, lease.Spec.HolderIdentity, r.want)
		}
	}
}

func TestAMissingLeaseOfAPrimaryNamesItAgain(t *testing.T) {
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Unleased().Primary().InEpoch(4)))
	lease := written(&p, facts.ReasonLease)
	if lease == nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "rss-db-0_u0" || *lease.Spec.LeaseTransitions != 4 {
		t.Errorf("the plan %q creates %+v", p.Steps.Strings(), lease)
	}
}

func TestAStartWithALease(t *testing.T) {
	world := func(pod *fixture.PodFixture) *facts.World {
		return fixture.WorldOf(fixture.SetOf(1, 1), pod.Idle().Sequence("9"))
	}
	p := rules.Decide(world(fixture.Pod(0).Leased(4)))
	var chain action.Chain
	for _, c := range slices.Concat(p.Steps...) {
		if c[len(c)-1].Verb == action.Exec && c[len(c)-1].Command.Name == v1alpha1.CommandSeed {
			chain = c
		}
	}
	if len(chain) != 3 || chain[0].Verb != action.PatchStatus || chain[1].String() != "patch lease rss-db-0.member: Lease, names rss-db-0, epoch 5" {
		t.Fatalf("the plan is %q", p.Steps.Strings())
	}
	if argv := chain[2].Command.Argv; !slices.Equal(argv[:4], []string{fixture.AgentPath, "fenced", "--epoch=5", "--"}) {
		t.Errorf("the command is %q", argv)
	}
	recorded := chain[0].Object.(*v1alpha1.ReplicatedStatefulSet).Status.Grants
	if len(recorded) != 1 || recorded[0].LeaseEpoch != 5 {
		t.Errorf("the grants are %+v", recorded)
	}
	if lease := chain[1].Object.(*coordinationv1.Lease); lease.Spec.RenewTime != nil || !chain[1].Unchanged {
		t.Errorf("the Lease is renewed at %v, and the write is bound: %t", lease.Spec.RenewTime, chain[1].Unchanged)
	}

	for name, w := range map[string]*facts.World{
		"without a Lease":          world(fixture.Pod(0).Unleased()),
		"at the highest epoch":     world(fixture.Pod(0).Leased(fencing.MaxEpoch)),
		"without the rights on it": world(fixture.Pod(0).Leased(4).But(func(w *facts.World) { w.Fencing.RoleBinding = nil })),
		"while it is released":     world(fixture.Pod(0).Leased(4).Holds(time.Second)),
	} {
		p := rules.Decide(w)
		if lines := strings.Join(p.Steps.Strings(), "\n"); strings.Contains(lines, "Seed") || p.Waiting.Message == "" {
			t.Errorf("%s: the plan is %q, waiting for %q", name, lines, p.Waiting.Message)
		}
	}
}

func TestAGrantEndsWithItsLease(t *testing.T) {
	lost := func() *fixture.PodFixture { return fixture.Pod(0).OnNode(fixture.Off) }
	for name, pod := range map[string]*fixture.PodFixture{
		"another process has taken it over": lost().Leased(4).Status(8).WithGranted().InEpoch(4),
		"it has a later epoch":              lost().Leased(5).Holds(time.Second).Status(8).WithGranted().InEpoch(4),
		"a start is under way":              lost().Leased(4).WithGranted().InEpoch(4).Began("promote", 40*time.Second),
	} {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), pod, fixture.Pod(1).Leased(0).Secondary().Sequence("9")))
		if p.Record.HasGrants() || len(p.Record.Commands) > 0 {
			t.Errorf("%s: grants %+v, commands %+v", name, p.Record.Granted, p.Record.Commands)
		}
	}
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), lost().Leased(4).Holds(time.Second).Status(8).WithGranted().InEpoch(4),
		fixture.Pod(1).Leased(0).Secondary().Sequence("9")))
	if !p.Record.HasGrants() {
		t.Error("the grant of a member whose Lease names it has ended")
	}
}

func TestASecondaryReplacesAFencedPrimary(t *testing.T) {
	fenced := fixture.Pod(0).Leased(4)
	fenced.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "c0", ExitCode: 125}}
	for name, pod := range map[string]*fixture.PodFixture{
		"on an unreachable Node":        fenced.OnNode(fixture.Off),
		"on a Node that is still Ready": fixture.Pod(0).Leased(4).Crashed(),
	} {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(3, 1), pod, fixture.Pod(1).Leased(0).Secondary().Sequence("9"), fixture.Pod(2).Leased(0).Secondary().Sequence("8")))
		if lines := strings.Join(fixture.Gist(&p), "\n"); !strings.Contains(lines, "1: Promote") {
			t.Errorf("%s: the plan is %q, waiting for %q", name, lines, p.Waiting.Message)
		}
	}
}
