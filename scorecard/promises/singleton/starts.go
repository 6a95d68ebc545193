package singleton

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// Programs that cannot start.

// neverStarted has images that cannot be pulled, in the two modes in which a single pod may become
// the holder before that is detected. This is a race of the kubelet and the operator. The pod must
// make way in both cases.
func neverStarted(ctx context.Context, c *kit.Cluster) {
	for name, mode := range map[string]v1.GateMode{"stuck": v1.GateBinary, "stuck-init": v1.GateInit} {
		a := newApplication(c, name)
		a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = mode })
		a.change = []podChange{program(func(p *corev1.Container) { p.Image = "localhost/there-is-no-such-image:1" })}
		d := a.deploy(ctx, 1, surge())
		seen := a.says(ctx, "that its pod cannot start", func(s *v1.StatefulSingleton) bool {
			return strings.Contains(s.Status.Message, "cannot start")
		})
		c.Log("mode %s: its active pod is %q", mode, seen.Status.ActivePod)
		kit.Change(ctx, c, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = c.Witness })
		c.During(fmt.Sprintf("mode %s", mode), func() { a.one(ctx) })
	}
}

// noShell runs the script in an image without a shell.
func noShell(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "shellless")
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = v1.GateScript })
	a.deploy(ctx, 1, surge())
	a.says(ctx, "that its script needs a shell", isTrue(v1.ConditionDegraded, v1.ReasonScriptFailing))
	a.none(ctx)
}

// reportsObstacles has the pod of each application kept from running.
func reportsObstacles(ctx context.Context, c *kit.Cluster) {
	c.ReportsAll(ctx, c.Situations(), func(own *kit.Cluster, s kit.Situation) kit.Obstructed {
		set := witnessset.Set{Name: "w7-" + s.Name, Namespace: own.Namespace, Image: own.Image, Grace: 2, Change: []podChange{program(func(k *corev1.Container) {
			k.Command = []string{"/bin/sh", "-c", "trap 'exit 0' TERM" + kit.Idle}
		})}}
		object, d := set.Singleton(), set.Deployment(1, witnessset.Recreate())
		good := d.Spec.Template.Spec
		d.Spec.Template.Spec = kit.Edited(good, s.Edit)
		own.Put(ctx, object)
		own.Put(ctx, d)
		return kit.Obstructed{Object: object, Correct: func(ctx context.Context) {
			kit.Change(ctx, own, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec = good })
		}}
	})
}
