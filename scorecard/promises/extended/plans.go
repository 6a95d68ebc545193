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
	changes := []specChange{patiently}
	if random.IntN(2) == 0 {
		changes = append(changes, onClaims)
	}
	if random.IntN(3) == 0 {
		changes = append(changes, withJobs)
	}
	if random.IntN(3) == 0 {
		_, label := zoned(ctx, c, 2)
		changes = append(changes, inZones(label, "a", "b"))
	}
	if random.IntN(3) == 0 {
		createObjects(ctx, c)
		changes = append(changes, configured(v1alpha1.TrackByIndex))
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
			{Name: "a version that waits for approval", Do: byHandVersion(version), Settle: func() { f.awaitsApproval(ctx, 2) }},
			{Name: "a version that is approved", Approved: true, Do: byHandVersion(version), Settle: func() {
				f.awaitsApproval(ctx, 2)
				f.edit(ctx, approving(f.set.Status.UpdateRevision))
				f.serves(ctx, 2)
				c.ReportsNothing(ctx, f.set)
			}},
		},
	}
}

// byHandVersion returns an edit to another version that requires an approval.
func byHandVersion(version func(*rand.Rand, *v1alpha1.ExtendedStatefulSetSpec)) func(*rand.Rand, client.Object) {
	return func(random *rand.Rand, o client.Object) {
		spec := &o.(*v1alpha1.ExtendedStatefulSet).Spec
		byHand(spec)
		version(random, spec)
	}
}
