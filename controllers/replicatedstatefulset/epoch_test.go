package replicatedstatefulset

import (
	"slices"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// fencedSet returns a set with the epoch in each of its commands.
func fencedSet(replicas, primaries int32) *v1alpha1.ReplicatedStatefulSet {
	set := setOf(replicas, primaries)
	for name := range set.Spec.Pod.Commands {
		set.Spec.Pod.Commands[name] = v1alpha1.Command{Command: []string{"/" + name, "--epoch=$(RSS_EPOCH)"}}
	}
	return set
}

// epochWas sets the epoch in the status.
func epochWas(n int64) thing { return with(func(w *facts.World) { w.Set.Status.Epoch = n }) }

// TestEpoch tests RS-87: a new primary gets a higher epoch than any before it. The epoch is on
// record before the command is sent. All other commands get the current epoch.
func TestEpoch(t *testing.T) {
	for _, r := range []struct {
		name    string
		world   *facts.World
		command string
		told    string
		stored  int64
	}{
		{"the first seed", worldOf(fencedSet(1, 1), pod(0).idle().sequence("3")), "seed", "1", 1},
		{"the next seed", worldOf(fencedSet(1, 1), epochWas(41), pod(0).idle().sequence("3")), "seed", "42", 42},
		{"a promotion", worldOf(fencedSet(2, 1), epochWas(4), pod(0).crashed(), pod(1).secondary().sequence("9")), "promote", "5", 5},
		{"a secondary", worldOf(fencedSet(2, 1), epochWas(4), pod(0).primary(), pod(1).idle().sequence("4")), "secondary", "4", 4},
		{"an additional primary", worldOf(fencedSet(2, 2), epochWas(4), pod(0).primary(), pod(1).idle().sequence("4")), "primary", "4", 4},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			chain := lastOf(&p)
			c := chain[len(chain)-1].Command
			if c == nil || c.Name != r.command || c.Argv[1] != "--epoch="+r.told {
				t.Fatalf("sent %+v in %q", c, gist(&p))
			}
			record := chain[len(chain)-2].Object.(*v1alpha1.ReplicatedStatefulSet)
			if record.Status.Epoch != r.stored {
				t.Errorf("epoch %d is recorded before the command", record.Status.Epoch)
			}
			if i := slices.IndexFunc(record.Status.Grants, func(g v1alpha1.Grant) bool { return g.Pod == c.Pod.Name }); spec.StartsPrimary(c.Name) && record.Status.Grants[i].Epoch != r.stored {
				t.Errorf("the epoch of the grant is %d", record.Status.Grants[i].Epoch)
			}
		})
	}
}

// lastOf returns the last chain of a plan.
func lastOf(p *rules.Plan) action.Chain {
	step := p.Steps[len(p.Steps)-1]
	return step[len(step)-1]
}

// TestEpochOfQuestions tests RS-87: a query gets the current epoch.
func TestEpochOfQuestions(t *testing.T) {
	p := rules.Decide(worldOf(fencedSet(1, 1), epochWas(7), pod(0)))
	chain := lastOf(&p)
	if c := chain[0].Command; c == nil || !slices.Equal(c.Argv, []string{"/status", "--epoch=7"}) {
		t.Errorf("the query is %+v in %q", c, gist(&p))
	}
}

func TestWithEpoch(t *testing.T) {
	said := []string{"/x", "$(RSS_EPOCH)", "RSS_EPOCH=$(RSS_EPOCH)/$(RSS_EPOCH)", "$$(RSS_EPOCH)", "$(OTHER)", "$RSS_EPOCH"}
	want := []string{"/x", "12", "RSS_EPOCH=12/12", "$(RSS_EPOCH)", "$(OTHER)", "$RSS_EPOCH"}
	before := slices.Clone(said)
	if got := spec.WithEpoch(said, 12); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(said, before) {
		t.Error("the spec was modified")
	}
}
