package status_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestARefusalThatIsOver(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonUpdate, "policy", 0), fixture.Refused(facts.ReasonExpand, "no", 0))
	if got := fixture.Says(fixture.Told(w), v1alpha1.ConditionDegraded); got != "False Healthy: no problems detected" {
		t.Errorf("condition Degraded after the refused writes are no longer wanted is %s", got)
	}
}
