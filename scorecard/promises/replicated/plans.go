package replicated

import (
	"context"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Editable returns a random set that is not created yet: most often ledgers, and otherwise PostgreSQL or Redis.
func Editable(ctx context.Context, c *kit.Cluster, random *rand.Rand) kit.Editable {
	switch random.IntN(6) {
	case 0:
		return editableApplication(ctx, c, postgreSQL(c), random)
	case 1:
		return editableApplication(ctx, c, redisInLines(c), random)
	}
	return editableLedgers(ctx, c, random)
}

// editableApplication returns a set with spec.application, half of the time with fencing by a Lease.
func editableApplication(ctx context.Context, c *kit.Cluster, a application, random *rand.Rand) kit.Editable {
	passwords, set := openSample(c, a.sample, &corev1.Secret{})
	if random.IntN(2) == 0 {
		byLease(set)
	}
	d := &database{replica: &replica{Cluster: c}}
	return kit.Editable{
		Kind: "ReplicatedStatefulSet", Key: client.ObjectKeyFromObject(set),
		Create: func() {
			c.Put(ctx, passwords)
			d.createSample(ctx, set, a.images[0])
			d.whole(ctx)
			c.ReportsNothing(ctx, set)
		},
		Settle: func() {
			d.whole(ctx)
			c.ReportsNothing(ctx, set)
		},
		New: func() client.Object { return &v1alpha1.ReplicatedStatefulSet{} },
		Edits: []kit.Edit{
			editSet("an image", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Image = a.images[1] }),
			editSet("a setting", func(s *v1alpha1.ReplicatedStatefulSet) { a.set(s.Spec.Application) }),
			editSet("fencing", func(s *v1alpha1.ReplicatedStatefulSet) {
				if s.Spec.Fencing != nil {
					s.Spec.Fencing = nil
					return
				}
				byLease(s)
			}),
			editReplicas, editSwitchover,
		},
	}
}

// editSet returns an edit of a set.
func editSet(name string, do func(*v1alpha1.ReplicatedStatefulSet)) kit.Edit {
	return kit.Edit{Name: name, Do: func(_ *rand.Rand, o client.Object) { do(o.(*v1alpha1.ReplicatedStatefulSet)) }}
}

var editReplicas = kit.Edit{Name: "replicas", Do: func(random *rand.Rand, o client.Object) {
	replicas := 1 + random.Int32N(3)
	o.(*v1alpha1.ReplicatedStatefulSet).Spec.Replicas = &replicas
}}

var editSwitchover = editSet("a switchover", func(s *v1alpha1.ReplicatedStatefulSet) {
	if len(s.Status.Members.Secondary) > 0 {
		s.Annotations = map[string]string{v1alpha1.AnnotationSwitchoverTo: s.Status.Members.Secondary[0]}
	}
})

// editableLedgers returns a set of ledgers.
func editableLedgers(ctx context.Context, c *kit.Cluster, random *rand.Rand) kit.Editable {
	r := newLedger(c, "db", 1+random.Int32N(3))
	return kit.Editable{
		Kind: "ReplicatedStatefulSet", Key: client.ObjectKeyFromObject(r.set),
		Create: func() {
			c.Put(ctx, r.set)
			r.whole(ctx)
		},
		Settle: func() { c.ReportsNothing(ctx, r.set) },
		New:    func() client.Object { return &v1alpha1.ReplicatedStatefulSet{} },
		Edits: []kit.Edit{
			editSet("a variable", func(s *v1alpha1.ReplicatedStatefulSet) {
				main := &s.Spec.Pod.Containers[0]
				main.Env = append(main.Env, corev1.EnvVar{Name: "EDITED", Value: "1"})
			}),
			editSet("a request", func(s *v1alpha1.ReplicatedStatefulSet) {
				s.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("7m")
			}),
			editSet("a grace period", func(s *v1alpha1.ReplicatedStatefulSet) {
				grace := int64(6)
				s.Spec.Pod.TerminationGracePeriodSeconds = &grace
			}),
			editReplicas, editSwitchover,
		},
	}
}
