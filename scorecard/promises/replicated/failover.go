package replicated

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// failover kills the primary's program, and then deletes the primary's pod.
func failover(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "failover", 3)
	for _, act := range []struct {
		what string
		do   func(*corev1.Pod)
	}{
		{"its process exits", func(p *corev1.Pod) { r.killServer(ctx, p) }},
		{"its pod is deleted", func(p *corev1.Pod) { r.Remove(ctx, p) }},
		{"its pod is deleted by force", func(p *corev1.Pod) { r.Remove(ctx, p, client.GracePeriodSeconds(0)) }},
	} {
		old := r.primary(ctx)
		at := testimony.Now()
		act.do(old)
		c.During("after "+act.what, func() {
			r.newPrimary(ctx, at)
			r.goesOnWriting(ctx)
			r.whole(ctx)
		})
	}
	report := r.judge(ctx)
	c.Expect(len(report.Reigns)).To(BeNumerically(">=", 4), "four members should have been primary: %s", report)
}

// lightsOut deletes all pods at once while member 0 does not have the newest copy, because
// replication to it lags.
func lightsOut(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "lights", 3)
	r.switchTo(ctx, "rss-lights-2")
	// A majority suffices for an acknowledgement. Member 0 gets no more entries.
	r.turn("rss-lights-0/replicate", "hang")
	r.goesOnWriting(ctx)
	for range 2 {
		before := r.lives(ctx)
		r.removeAll(ctx)
		for name, l := range before {
			r.anotherPod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: l.uid}})
		}
		r.turn("rss-lights-0/replicate", "")
		r.whole(ctx)
		r.goesOnWriting(ctx)
	}
	r.judge(ctx)
}
