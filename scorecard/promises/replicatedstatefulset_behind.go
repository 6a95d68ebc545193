package promises

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
	"github.com/stateful-operator/stateful-operator/test/faults/ledgerset"
)

// behind has the first member not be the primary, and get the entries late, or none:
// what is acknowledged meanwhile the others have. Then something happens to these.
// After a while all is as it was.
func behind(happens func(ctx context.Context, t *trial, first string)) func(context.Context, *trial) {
	return func(ctx context.Context, t *trial) {
		first, second := fmt.Sprintf("rss-%s-0", t.set.Name), fmt.Sprintf("rss-%s-1", t.set.Name)
		t.recovers(ctx)
		if t.set.Status.Members.Primary[0] == first {
			t.switchTo(ctx, second)
			t.recovers(ctx)
			if t.set.Status.Members.Primary[0] == first {
				return // a fault of another run was in the way
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
		t.read(ctx, t.set)
		t.resize(ctx, *t.set.Spec.Replicas)
		t.resize(ctx, 3)
	}
}

// staysAlone scales down to the member that is behind.
func staysAlone(ctx context.Context, t *trial, _ string) {
	t.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(1)) })
}

// runsOnAlone kills the programs of the others at once.
func runsOnAlone(ctx context.Context, t *trial, first string) {
	others := t.others(ctx, first)
	var all sync.WaitGroup
	for i := range others {
		// One that does not run cannot be killed.
		all.Go(func() { _ = t.Kept(func(own *Cluster) { _ = t.on(own).kill(ctx, &others[i]) }) })
	}
	all.Wait()
}

// held keeps a pod, so that none takes its place.
const held = "test.stateful-operator/held"

// comesFirst deletes all pods, and lets those of the others not be made anew.
func comesFirst(ctx context.Context, t *trial, first string) {
	for _, pod := range t.others(ctx, first) {
		t.hold(ctx, &pod, controllerutil.AddFinalizer)
	}
	t.removeAll(ctx)
}

// release lets all pods go that are held.
func (t *trial) release(ctx context.Context) {
	for _, pod := range t.pods(ctx) {
		t.hold(ctx, &pod, controllerutil.RemoveFinalizer)
	}
}

// hold changes a finalizer. What an API server that begins refuses is tried again.
func (t *trial) hold(ctx context.Context, pod *corev1.Pod, change func(client.Object, string) bool) {
	t.until(ctx, "the finalizer of "+pod.Name+" to be changed", func(ctx context.Context) {
		now, err := t.find(ctx, pod.Name)
		t.check(client.IgnoreNotFound(err))
		if was := now.DeepCopy(); now.UID == pod.UID && change(now, held) {
			t.check(client.IgnoreNotFound(t.Client.Patch(ctx, now, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))))
		}
	})
}

// others are the pods but for that one.
func (t *trial) others(ctx context.Context, name string) []corev1.Pod {
	return slices.DeleteFunc(t.pods(ctx), func(p corev1.Pod) bool { return p.Name == name })
}

// lateStart has whoever is told to become primary next do so, if it lives, after the
// operator has given up to wait for the command's end. Meanwhile a person wants another
// one. Nothing else happens before that: another change would hide two primaries.
func lateStart(ctx context.Context, t *trial) {
	t.read(ctx, t.set)
	epoch := t.set.Status.Epoch
	// Whether its process is killed when its time is up is the container runtime's matter.
	how := []string{"lag %s", "late %s\nthen hang"}[t.chance.IntN(2)]
	after := ledgerset.Timeout + 15*time.Second
	late := "once\n" + fmt.Sprintf(how, after)
	t.turn("promote", late)
	t.turn("seed", late)
	t.onPrimary(ctx, t.kill)
	other := ""
	t.until(ctx, "somebody to be told to become primary", func(ctx context.Context) {
		t.read(ctx, t.set)
		t.Expect(t.set.Status.Epoch).NotTo(Equal(epoch), "%s", tellSet(t.set))
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
		sleep(ctx, after+5*time.Second)
	}
}

// earlyEnd has whoever is told to become primary say at once that all is well, and do so
// long after. Meanwhile a person wants one after another: who takes the word of the first
// has two in the end.
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
