package extended

import (
	"context"
	"math/rand/v2"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Editable returns a random set of keepers that is not created yet.
func Editable(ctx context.Context, c *kit.Cluster, random *rand.Rand) kit.Editable {
	var changes []specChange
	if random.IntN(2) == 0 {
		changes = append(changes, onClaims)
	}
	f := newFixture(c, "books", 1+random.Int32N(3), changes...)
	edit := func(name string, do func(*rand.Rand, *v1alpha1.ExtendedStatefulSetSpec)) kit.Edit {
		return kit.Edit{Name: name, Do: func(random *rand.Rand, o client.Object) { do(random, &o.(*v1alpha1.ExtendedStatefulSet).Spec) }}
	}
	replicas := func(random *rand.Rand, s *v1alpha1.ExtendedStatefulSetSpec) {
		n := 1 + random.Int32N(3)
		s.Template.Spec.Replicas = &n
	}
	version := func(_ *rand.Rand, s *v1alpha1.ExtendedStatefulSetSpec) {
		for i, v := range keeperOf(s).Env {
			if v.Name == versionVariable {
				keeperOf(s).Env[i].Value = "2"
			}
		}
	}
	return kit.Editable{
		Kind: "ExtendedStatefulSet", Key: client.ObjectKeyFromObject(f.set),
		Create: func() {
			c.Put(ctx, f.set)
			c.ReportsNothing(ctx, f.set)
		},
		Settle: func() { c.ReportsNothing(ctx, f.set) },
		New:    func() client.Object { return &v1alpha1.ExtendedStatefulSet{} },
		Edits: []kit.Edit{
			edit("a version", version),
			edit("replicas", replicas),
			edit("replicas and a version", func(random *rand.Rand, s *v1alpha1.ExtendedStatefulSetSpec) {
				replicas(random, s)
				version(random, s)
			}),
		},
	}
}
