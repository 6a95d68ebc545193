package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

func TestW9TheDeleteIsTriedFirst(t *testing.T) {
	p := rules.Decide(fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), fixture.Pod(2).Secondary().Sequence("9"), fixture.Lost(5*time.Minute)))
	lines := strings.Join(p.Steps.Strings(), "\n")
	if !strings.Contains(lines, "try pod rss-db-1: Trial, dry run before the pod is recreated > delete pod rss-db-1") {
		t.Errorf("the plan is\n%s", lines)
	}
}
