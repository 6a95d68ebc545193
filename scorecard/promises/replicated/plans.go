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

// Editable returns a random set of ledgers that is not created yet.
func Editable(ctx context.Context, c *kit.Cluster, random *rand.Rand) kit.Editable {
	r := newLedger(c, "db", 1+random.Int32N(3))
	edit := func(name string, do func(*v1alpha1.ReplicatedStatefulSet)) kit.Edit {
		return kit.Edit{Name: name, Do: func(_ *rand.Rand, o client.Object) { do(o.(*v1alpha1.ReplicatedStatefulSet)) }}
	}
	return kit.Editable{
		Kind: "ReplicatedStatefulSet", Key: client.ObjectKeyFromObject(r.set),
		Create: func() {
			c.Put(ctx, r.set)
			r.whole(ctx)
		},
		Settle: func() { c.ReportsNothing(ctx, r.set) },
		New:    func() client.Object { return &v1alpha1.ReplicatedStatefulSet{} },
		Edits: []kit.Edit{
			edit("a variable", func(s *v1alpha1.ReplicatedStatefulSet) {
				main := &s.Spec.Pod.Containers[0]
				main.Env = append(main.Env, corev1.EnvVar{Name: "EDITED", Value: "1"})
			}),
			edit("a request", func(s *v1alpha1.ReplicatedStatefulSet) {
				s.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("7m")
			}),
			edit("a grace period", func(s *v1alpha1.ReplicatedStatefulSet) {
				grace := int64(6)
				s.Spec.Pod.TerminationGracePeriodSeconds = &grace
			}),
			{Name: "replicas", Do: func(random *rand.Rand, o client.Object) {
				replicas := 1 + random.Int32N(3)
				o.(*v1alpha1.ReplicatedStatefulSet).Spec.Replicas = &replicas
			}},
			{Name: "a switchover", Do: func(_ *rand.Rand, o client.Object) {
				s := o.(*v1alpha1.ReplicatedStatefulSet)
				if len(s.Status.Members.Secondary) > 0 {
					s.Annotations = map[string]string{v1alpha1.AnnotationSwitchoverTo: s.Status.Members.Secondary[0]}
				}
			}},
		},
	}
}
