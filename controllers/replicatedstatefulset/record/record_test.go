package record_test

import (
	"slices"
	"strconv"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

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
		{"the first seed", fixture.WorldOf(fixture.FencedSet(1, 1), fixture.Pod(0).Idle().Sequence("3")), "seed", "1", 1},
		{"the next seed", fixture.WorldOf(fixture.FencedSet(1, 1), fixture.EpochWas(41), fixture.Pod(0).Idle().Sequence("3")), "seed", "42", 42},
		{"a promotion", fixture.WorldOf(fixture.FencedSet(2, 1), fixture.EpochWas(4), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9")), "promote", "5", 5},
		{"a secondary", fixture.WorldOf(fixture.FencedSet(2, 1), fixture.EpochWas(4), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4")), "secondary", "4", 4},
		{"an additional primary", fixture.WorldOf(fixture.FencedSet(2, 2), fixture.EpochWas(4), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4")), "primary", "4", 4},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			chain := fixture.LastOf(&p)
			c := chain[len(chain)-1].Command
			if c == nil || c.Name != r.command || c.Argv[1] != "--epoch="+r.told {
				t.Fatalf("sent %+v in %q", c, fixture.Gist(&p))
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

// fromBackup makes the set one that was restored without its status.
var fromBackup = fixture.With(func(w *facts.World) { w.Set.Labels = map[string]string{backup.Label: "monday"} })

// TestEpochAfterARestore tests RS-112: the epochs of a restored set are higher than all its former
// ones, if its commands use the epoch.
func TestEpochAfterARestore(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  int64
	}{
		{"the first epoch after a restore without a recorded one", fixture.WorldOf(fixture.FencedSet(1, 1), fromBackup, fixture.Pod(0).Idle().Sequence("3")), fixture.Noon.Unix() + 1},
		{"the next epoch after a restore", fixture.WorldOf(fixture.FencedSet(1, 1), fromBackup, fixture.EpochWas(fixture.Noon.Unix()-60), fixture.Pod(0).Idle().Sequence("3")), fixture.Noon.Unix() - 59},
		{"the epoch after one that a user set", fixture.WorldOf(fixture.FencedSet(1, 1), fromBackup, fixture.EpochWas(41), fixture.Pod(0).Idle().Sequence("3")), 42},
		{"the first epoch of commands that do not use it", fixture.WorldOf(fixture.SetOf(1, 1), fromBackup, fixture.Pod(0).Idle().Sequence("3")), 1},
		{"the first epoch of a set that was not restored", fixture.WorldOf(fixture.FencedSet(1, 1), fixture.Pod(0).Idle().Sequence("3")), 1},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			chain := fixture.LastOf(&p)
			s := chain[len(chain)-2].Object.(*v1alpha1.ReplicatedStatefulSet).Status
			if s.Epoch != r.want || s.Grants[0].Epoch != r.want {
				t.Errorf("epoch %d and grants %+v are recorded before the command, want %d", s.Epoch, s.Grants, r.want)
			}
			command := chain[len(chain)-1].Command.Argv
			if told := "--epoch=" + strconv.FormatInt(r.want, 10); len(command) > 1 && command[1] != told {
				t.Errorf("sent %q, want %s", command, told)
			}
		})
	}
}

func TestTheRecord(t *testing.T) {
	t.Run("a command is recorded before it is sent, and a start with its grant", func(t *testing.T) {
		w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"))
		p := rules.Decide(w)
		chain := p.Steps[0][0]
		record, c := chain[len(chain)-2], chain[len(chain)-1].Command
		set, ok := record.Object.(*v1alpha1.ReplicatedStatefulSet)
		if !ok || record.Verb != action.PatchStatus || record.From != w.Set || c == nil {
			t.Fatalf("the chain is %q, want the status of the object that was read, then the command", p.Steps.Strings())
		}
		if s := set.Status; len(s.Commands) != 1 || s.Commands[0].ContainerID != "c1" || !s.Commands[0].StartedAt.Time.Equal(c.Decided) || s.Commands[0].Timeout.Duration != c.Timeout ||
			len(s.Grants) != 1 || s.Grants[0].ContainerID != "c1" || s.Grants[0].UID != "u1" || s.Epoch != 1 || s.Grants[0].Epoch != 1 {
			t.Errorf("the record is %+v %+v of epoch %d", s.Commands, s.Grants, s.Epoch)
		}
	})
	t.Run("only a plan of queries is executed on cached objects", func(t *testing.T) {
		asks := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1)))
		starts := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4")))
		deletes := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Failures(2, "secondary", 1, true)))
		if !asks.AsksOnly() || starts.AsksOnly() || deletes.AsksOnly() {
			t.Errorf("asksOnly of %q is %t, of %q %t, of %q %t", fixture.Gist(&asks), asks.AsksOnly(), fixture.Gist(&starts), starts.AsksOnly(), fixture.Gist(&deletes), deletes.AsksOnly())
		}
	})
}
