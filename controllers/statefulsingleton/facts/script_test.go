package facts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestAScriptWithoutAShellIsNamed(t *testing.T) {
	crashed := func(m *fixture.MemberFixture) *fixture.MemberFixture {
		m.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		return m
	}
	for name, r := range map[string]struct {
		m    *fixture.MemberFixture
		want string
	}{
		"a script that ended before its turn": {crashed(fixture.Waiting("a").Scripted()), v1.ReasonScriptFailing},
		"a program that ended":                {crashed(fixture.Granted("a", 1).Scripted()), v1.ReasonPodFailing},
		"the gate of another mode that ended": {crashed(fixture.Waiting("a")), v1.ReasonPodFailing},
	} {
		if got := status.Degraded(facts.Derive(fixture.WorldOf(fixture.Held(), r.m))).Reason; got != r.want {
			t.Errorf("%s: %s, want %s", name, got, r.want)
		}
	}
}
