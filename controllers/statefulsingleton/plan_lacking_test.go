package statefulsingleton

import (
	"strings"
	"testing"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestAPodThatLacksAContainerIsNamed(t *testing.T) {
	lacks := func(m *memberFixture) *memberFixture {
		m.Lacks = []string{"db", "web"}
		return m
	}
	for name, r := range map[string]struct {
		m    *memberFixture
		want string
	}{
		"a waiting pod":                 {lacks(waiting("a")), v1.ReasonContainersMissing},
		"a running pod":                 {lacks(granted("a", 1)), v1.ReasonContainersMissing},
		"a pod without the gate":        {lacks(ungated("a")), v1.ReasonHealthy},
		"a pod that has ended":          {lacks(granted("a", 1)).ended(), v1.ReasonHealthy},
		"a pod that has all containers": {granted("a", 1), v1.ReasonHealthy},
	} {
		if got := status.Degraded(facts.Derive(worldOf(held(), r.m))); got.Reason != r.want || got.Reason == v1.ReasonContainersMissing && !strings.HasPrefix(got.Message, "pod a has no container db, web, which") {
			t.Errorf("%s: %s, %q; want %s", name, got.Reason, got.Message, r.want)
		}
	}
}
