package statefulcluster

import (
	"context"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Editable returns a random set that is not created yet.
func Editable(ctx context.Context, c *kit.Cluster, random *rand.Rand) kit.Editable {
	set := newSet(c, 1+random.Int32N(4), func(s *v1alpha1.StatefulCluster) {
		if random.IntN(2) == 0 {
			s.Spec.VolumeClaimTemplates, s.Spec.Template.Spec.Containers[0].VolumeMounts = nil, nil
			s.Spec.Template.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "trap 'exit 0' TERM" + kit.Idle}
		}
	})
	edit := func(name string, do func(*v1alpha1.StatefulCluster)) kit.Edit {
		return kit.Edit{Name: name, Do: func(_ *rand.Rand, o client.Object) { do(o.(*v1alpha1.StatefulCluster)) }}
	}
	return kit.Editable{
		Kind: "StatefulCluster", Key: client.ObjectKeyFromObject(set),
		Create: func() { create(ctx, c, set) },
		Settle: func() { c.ReportsNothing(ctx, set) },
		New:    func() client.Object { return &v1alpha1.StatefulCluster{} },
		Edits: []kit.Edit{
			edit("a variable", func(s *v1alpha1.StatefulCluster) {
				main := &s.Spec.Template.Spec.Containers[0]
				main.Env = append(main.Env, corev1.EnvVar{Name: "EDITED", Value: "1"})
			}),
			edit("an image", func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = c.OtherImage }),
			edit("a label of pods", func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Labels["edited"] = "1" }),
			edit("a request", func(s *v1alpha1.StatefulCluster) {
				s.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("12m")
			}),
			{Name: "replicas", Do: func(random *rand.Rand, o client.Object) {
				replicas := random.Int32N(5)
				o.(*v1alpha1.StatefulCluster).Spec.Replicas = &replicas
			}},
			{Name: "replicas and a variable", Do: func(random *rand.Rand, o client.Object) {
				s, replicas := o.(*v1alpha1.StatefulCluster), 1+random.Int32N(4)
				s.Spec.Replicas = &replicas
				s.Spec.Template.Spec.Containers[0].Env = append(s.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "EDITED", Value: "2"})
			}},
		},
	}
}
