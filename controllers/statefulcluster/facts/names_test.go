package facts_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// The names on record after a pass in which every write had that result.
func TestNamesLeaveTheRecord(t *testing.T) {
	exists := apierrors.NewAlreadyExists(corev1.Resource("pods"), "db-f1")
	quota := apierrors.NewForbidden(corev1.Resource("pods"), "db-f1", errors.New("quota"))
	two := func(things ...fixture.Thing) *facts.World {
		return fixture.Seen(fixture.Set("db"), append(things, fixture.A(), fixture.B())...)
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		err   error
		want  []string
	}{
		{"V2 a name is removed when its pod was created", two(fixture.Creating("f1")), nil, nil},
		{"V2 SC-18 a name is kept while the create of its pod is refused", two(fixture.Creating("f1")), quota, []string{"db-f1"}},
		{"V2 a name is removed if another pod has it", two(fixture.Creating("f1")), exists, nil},
		{"V2 a name is not recorded if the write was refused", two(fixture.OffRecord), quota, nil},
		{"V2 a name is removed when its pod is observed", two(fixture.Creating("c"), fixture.C()), nil, nil},
		{"V2 SC-39 a name is removed when its pod was observed and deleted", two(fixture.Creating("c"), fixture.C().Going(), fixture.Pod("d").On("n4").Ready()), nil, nil},
		{"V2 SC-39 a name is removed when its claim exists without a pod",
			two(fixture.Creating("c"), fixture.LooseClaimOf("c"), fixture.Pod("d").On("n4").Ready()), nil, nil},
		{"V2 a name is removed after a scale-down", fixture.Seen(fixture.Set("db").Replicas(2), fixture.Creating("f1"), fixture.A(), fixture.B()), nil, nil},
		{"V2 a name is kept for an empty slot while creates are refused",
			two(fixture.Creating("f1", "f2"), fixture.Refused(facts.ReasonMissing, "quota", time.Minute)), nil, []string{"db-f1"}},
		{"V2 SC-18 the name of a replacement is kept while creates are refused",
			fixture.Seen(fixture.Set("db"), fixture.Creating("f1"), fixture.A().NodeNotReadyFor(time.Hour), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonReplaced, "quota", time.Minute)), nil, []string{"db-f1"}},
		{"V2 names are kept while the spec is invalid",
			fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.Selector = nil }), fixture.Creating("f1")), nil, []string{"db-f1"}},
	} {
		p := fixture.PlanOf(r.world)
		var outcomes []action.Outcome
		for _, step := range p.Steps {
			for _, chain := range step {
				o := action.Outcome{Action: chain[0], Err: r.err}
				if r.err == nil {
					o.Answer = chain[0].Object.DeepCopyObject().(client.Object)
				}
				outcomes = append(outcomes, o)
			}
			if r.err != nil {
				break
			}
		}
		if got := fixture.StatusOf(r.world, &p, outcomes).Creating; !slices.Equal(got, r.want) {
			t.Errorf("%s: recorded names are %q, want %q", r.name, got, r.want)
		}
	}
}
