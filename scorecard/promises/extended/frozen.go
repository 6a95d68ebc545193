package extended

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// An operator that is stopped in the middle of an upgrade, and continues later.

// frozenCanary stops all operators once the canary has pods, for longer than the canary may take.
// The canary becomes Ready after the operators were resumed.
func frozenCanary(ctx context.Context, c *kit.Cluster) {
	const watchTime = 40 * time.Second
	pods := c.LookOut(ctx)
	x := newFixture(c, "frozen", 2, coexist, patiently, minReady(probation))
	x.create(ctx)
	capacity := pods.Hold(least("frozen", 2))
	x.edit(ctx, inVersion("2"), probed(notReady), watchFor(watchTime, kit.Patience))
	x.triesNext(ctx)
	x.Read(ctx, x.set)
	u := x.set.Status.Update
	c.Expect(u).NotTo(BeNil(), "%s", describe(x.set))
	c.Expect(u.CanaryAt).NotTo(BeNil(), "%s", describe(x.set))
	began := x.set.Status.Update.CanaryAt.Time
	whileFrozen(ctx, c, func() { kit.Sleep(ctx, time.Until(began.Add(watchTime+5*time.Second))) })
	c.Leader(ctx)
	// An operator that has observed this edit has decided about the canary.
	x.edit(ctx, watchFor(watchTime, kit.Patience+time.Second))
	x.says(ctx, "something", func(v1alpha1.ExtendedStatefulSetStatus) bool { return true })
	for i := range 2 {
		x.letGo(ctx, fmt.Sprintf("%s-%d", x.child(2), i))
	}
	x.serves(ctx, 2)
	c.Check(capacity.Kept())
}

// letGo makes a pod of version 2 Ready.
func (x *fixture) letGo(ctx context.Context, pod string) {
	x.Until(ctx, pod+" to be reported as Ready", func(ctx context.Context) {
		x.Read(ctx, x.set)
		x.Expect(x.set.Status.Phase).NotTo(Equal(v1alpha1.PhaseStale), "it was rolled back: %s", describe(x.set))
		_, err := x.TryExec(ctx, client.ObjectKey{Namespace: x.Namespace, Name: pod}, "keeper", "/bin/sh", "-c", beReady)
		x.Expect(err).NotTo(HaveOccurred(), "%s", describe(x.set))
	})
}

// whileFrozen calls do while the programs of all operators are stopped.
func whileFrozen(ctx context.Context, c *kit.Cluster, do func()) {
	var pods corev1.PodList
	c.List(ctx, &pods, client.InNamespace(c.Operator.Namespace), c.OperatorPods())
	thaw := c.Freeze(pods.Items...)
	defer thaw()
	do()
}
