package status_test

import (
	"strings"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

func TestW19APersonIsToldOfBothWays(t *testing.T) {
	s := fixture.BeforeUpdate(fixture.Started)
	s.W.Jobs, s.W.Set.Status.Update.PreJob.Result = nil, v1alpha1.JobUnknown
	f, p := fixture.Decided(s.W)
	c := status.Degraded(f, p)
	for _, want := range []string{`-p '{"spec":{"updateStrategy":{"preUpdateJob":{"onFailure":"Continue"}}}}'`, `-p '{"spec":{"updateStrategy":{"retryCount":1}}}'`} {
		if c.Reason != v1alpha1.ReasonJobResultUnknown || !strings.Contains(c.Message, want) {
			t.Errorf("got %s: %s", c.Reason, c.Message)
		}
	}
}
