package application_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// config decodes the configuration of the agent, as the agent does.
func config(t *testing.T, c *corev1.Container) settings.Config {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == settings.Variable })
	if i < 0 {
		t.Fatalf("the variable is missing in %v", c.Env)
	}
	decoded, err := settings.Decode(c.Env[i].Value)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestTheAgentGivesUpBeforeItsCommandTimesOut(t *testing.T) {
	set := filled(fixture.PostgreSQL())
	limit := config(t, &set.Spec.Pod.Containers[0]).CommandSeconds
	for _, name := range []string{"seed", "primary", "secondary", "promote", "demote", "stop"} {
		if timeout := spec.TimeoutOf(set.Spec.Pod.Commands[name]); timeout.Seconds() <= float64(limit) {
			t.Errorf("the timeout of %s is %s, and the agent gives up after %d s", name, timeout, limit)
		}
	}
}

func TestASetOfPostgreSQLHasOnePrimary(t *testing.T) {
	if p := filled(fixture.PostgreSQL()).Spec.Primaries; p == nil || *p != 1 {
		t.Errorf("the number of primaries is %v", p)
	}
}
