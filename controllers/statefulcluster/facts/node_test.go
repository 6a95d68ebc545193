package facts_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestNodesThatAreMissing(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "W2 a member is kept while its Node has been missing for less than 40 seconds",
			World: fixture.Seen(fixture.Set("db"), fixture.A().NodeMissingFor(40*time.Second-1), fixture.B(), fixture.C()), Wait: 1},
		{Name: "W2 a member is replaced when its Node has been missing for 40 seconds",
			World: fixture.Seen(fixture.Set("db"), fixture.A().NodeMissingFor(40*time.Second), fixture.B(), fixture.C()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}},
	})
}
