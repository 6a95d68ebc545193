package replicated

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgerset"
)

// behind returns a fault. The first member is a secondary, and replication to it is late or
// stopped: only the others have the acknowledged entries. Then happens is called, which disturbs
// the others. Replication is restored after a while.
func behind(happens func(ctx context.Context, t *trial, first string)) func(context.Context, *trial) {
	return func(ctx context.Context, t *trial) {
		first, second := fmt.Sprintf("rss-%s-0", t.set.Name), fmt.Sprintf("rss-%s-1", t.set.Name)
		t.recovers(ctx)
		if t.set.Status.Members.Primary[0] == first {
			t.switchTo(ctx, second)
			t.recovers(ctx)
			if t.set.Status.Members.Primary[0] == first {
				return // a fault of another run interfered
			}
		}
		late, how := first+"/replicate", "hang"
		if t.chance.IntN(3) == 0 {
			how = "lag 4s"
		}
		func() {
			defer t.release(context.WithoutCancel(ctx))
			defer t.turn(late, "")
			t.turn(late, how)
			t.pause(ctx, 5*time.Second)
			happens(ctx, t, first)
			t.pause(ctx, 20*time.Second)
		}()
		t.Read(ctx, t.set)
		t.resize(ctx, *t.set.Spec.Replicas)
		t.resize(ctx, 3)
	}
}

// staysAlone scales down to the member that is behind.
func staysAlone(ctx context.Context, t *trial, _ string) {
	t.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(1)) })
}

// runsOnAlone kills the programs of the other members at once.
func runsOnAlone(ctx context.Context, t *trial, first string) {
	others := t.others(ctx, first)
	var all sync.WaitGroup
	for i := range others {
		// A program that does not run cannot be killed.
		all.Go(func() { _ = t.Kept(func(own *kit.Cluster) { _ = t.on(own).kill(ctx, &others[i]) }) })
	}
	all.Wait()
}

// held is a finalizer that keeps a pod, so that it is not recreated.
const held = "test.stateful-operator/held"

// comesFirst deletes all pods, and prevents the recreation of the others.
func comesFirst(ctx context.Context, t *trial, first string) {
	for _, pod := range t.others(ctx, first) {
		t.hold(ctx, &pod, controllerutil.AddFinalizer)
	}
	t.removeAll(ctx)
}

// release removes the finalizer from all held pods.
func (t *trial) release(ctx context.Context) {
	for _, pod := range t.pods(ctx) {
		t.hold(ctx, &pod, controllerutil.RemoveFinalizer)
	}
}

// hold adds or removes the finalizer. It retries if the API server is not yet ready.
func (t *trial) hold(ctx context.Context, pod *corev1.Pod, change func(client.Object, string) bool) {
	t.Until(ctx, "the finalizer of "+pod.Name+" to be changed", func(ctx context.Context) {
		now, err := t.find(ctx, pod.Name)
		t.Check(client.IgnoreNotFound(err))
		if was := now.DeepCopy(); now.UID == pod.UID && change(now, held) {
			t.Check(client.IgnoreNotFound(t.Client.Patch(ctx, now, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))))
		}
	})
}

// others returns all pods except that one.
func (t *trial) others(ctx context.Context, name string) []corev1.Pod {
	return slices.DeleteFunc(t.pods(ctx), func(p corev1.Pod) bool { return p.Name == name })
}

// lateStart makes the next promote command take effect late, if the member still lives: after the
// operator has stopped waiting for it. Meanwhile a user requests another primary. Nothing else
// changes before that, because another change would hide two primaries.
func lateStart(ctx context.Context, t *trial) {
	t.Read(ctx, t.set)
	epoch := t.set.Status.Epoch
	// It depends on the container runtime whether the process is killed at its timeout.
	how := []string{"lag %s", "late %s\nthen hang"}[t.chance.IntN(2)]
	after := ledgerset.Timeout + 15*time.Second
	late := "once\n" + fmt.Sprintf(how, after)
	t.turn("promote", late)
	t.turn("seed", late)
	t.onPrimary(ctx, t.kill)
	other := ""
	t.Until(ctx, "a member to be promoted", func(ctx context.Context) {
		t.Read(ctx, t.set)
		t.Expect(t.set.Status.Epoch).NotTo(Equal(epoch), "%s", describe(t.set))
		for _, c := range t.set.Status.Commands {
			if c.Name != v1alpha1.CommandPromote && c.Name != v1alpha1.CommandSeed {
				continue
			}
			secondaries := t.set.Status.Members.Secondary
			if i := slices.IndexFunc(secondaries, func(name string) bool { return name != c.Pod }); i >= 0 {
				other = secondaries[i]
			}
		}
	})
	if other != "" {
		t.ask(ctx, v1alpha1.AnnotationSwitchoverTo, other)
		kit.Sleep(ctx, after+5*time.Second)
	}
}

// earlyEnd makes the next promote or seed command report success at once, but take effect much
// later. Meanwhile a user requests one primary after another. An operator that trusts the first
// report ends up with two.
func earlyEnd(ctx context.Context, t *trial) {
	late := []string{"late 20s", "late 40s"}[t.chance.IntN(2)]
	t.turn("promote", late)
	t.turn("seed", late)
	t.onPrimary(ctx, t.kill)
	for i := range 3 {
		t.pause(ctx, 3*time.Second)
		t.ask(ctx, v1alpha1.AnnotationSwitchoverTo, fmt.Sprintf("rss-%s-%d", t.set.Name, i))
	}
	t.pause(ctx, 10*time.Second)
	t.turn("promote", "")
	t.turn("seed", "")
}
