package singleton

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

func firstPod(ctx context.Context, c *kit.Cluster) {
	a, _ := startApplication(ctx, c, 1, "first")
	run := a.one(ctx)
	a.ready(ctx, run)
	a.active(ctx, run)
	s := a.says(ctx, "that it is available", isTrue(v1.ConditionAvailable, v1.ReasonActive))
	h := s.Status.Holder
	c.Expect(h).NotTo(BeNil(), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(h.Name).To(Equal(run.Pod), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(string(h.UID)).To(Equal(run.UID), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(h.Node).To(Equal(run.Node), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(h.Epoch).To(BeNumerically(">=", 1), "%+v holds, and %s runs", h, run.Pod)
	a.event(ctx, v1.EventPodStarted)
}

func surgeRollout(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "surge", behave("WITNESS_STOP_AFTER", "4s"), grace(30))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace},
		Spec: corev1.ServiceSpec{Selector: a.set().Labels(), Ports: []corev1.ServicePort{{Port: 80}}}}
	a.hold(ctx)
	c.Put(ctx, service)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	a.ready(ctx, old)
	a.rollOut(ctx, d)
	a.waitsForOld(ctx, old)
	next := a.one(ctx, old)
	a.active(ctx, next)
	a.rolledOut(ctx, d)
	s := a.singleton(ctx)
	c.Expect(s.Status.TransitionTimestamp).To(BeNil(), "the handover is over, and the status has start time %v", s.Status.TransitionTimestamp)
	a.event(ctx, v1.EventPodTransition)
	a.oldStopped(old)
}

// waitsForOld checks the pod that waits while the old one shuts down.
func (a *application) waitsForOld(ctx context.Context, old testimony.Run) {
	s := a.says(ctx, "that a handover is in progress", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseTransitioning && s.Status.TransitionTimestamp != nil && len(s.Status.Waiting) > 0 &&
			meta.IsStatusConditionTrue(s.Status.Conditions, v1.ConditionProgressing)
	})
	pods := a.held(ctx, len(s.Status.Waiting))
	waiting := &pods[0]
	a.Expect(kit.PodCondition(waiting, corev1.PodReady)).To(BeFalse(), "%s waits and is Ready", waiting.Name)
	log := a.log(ctx, waiting)
	a.Expect(!strings.Contains(log, "StatefulSingleton: waiting for the start signal") || strings.Contains(log, "witness:")).To(BeFalse(), "the log of %s, which waits, contains %q", waiting.Name, log)
	a.noEndpoint(ctx, waiting.Name)
	live := a.living()
	a.Expect(live).To(HaveLen(1), "the old program ended before its successor was checked")
	a.Expect(live[0].ID).To(Equal(old.ID), "the old program ended before its successor was checked")
}

// noEndpoint checks that a pod is not a Ready endpoint of the application's Service.
func (a *application) noEndpoint(ctx context.Context, pod string) {
	var slices discoveryv1.EndpointSliceList
	a.List(ctx, &slices, client.InNamespace(a.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: a.Name})
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			a.Expect(e.TargetRef != nil && e.TargetRef.Name == pod && (e.Conditions.Ready == nil || *e.Conditions.Ready)).To(BeFalse(), "%s waits and gets requests", pod)
		}
	}
}

func drained(ctx context.Context, c *kit.Cluster) {
	a, _ := startApplication(ctx, c, 1, "drained")
	old := a.one(ctx)
	a.Cordon(ctx, old.Node, true)
	defer a.Cordon(context.WithoutCancel(ctx), old.Node, false)
	next := a.handover(ctx, "drain", func(old testimony.Run) { a.evict(ctx, old) })
	c.Expect(next.Node).NotTo(Equal(old.Node), "%s is on the drained node", next.Pod)
	a.active(ctx, next)
}

func otherOwners(ctx context.Context, c *kit.Cluster) {
	for name, strategy := range map[string]appsv1.DeploymentStrategy{"recreate": witnessset.Recreate(), "nosurge": witnessset.Rolling(0, 1)} {
		a := newApplication(c, name)
		a.hold(ctx)
		d := a.deploy(ctx, 1, strategy)
		a.handover(ctx, "rollout with strategy "+name, func(testimony.Run) { a.rollOut(ctx, d) })
		a.rolledOut(ctx, d)
	}
	a := newApplication(c, "set")
	a.hold(ctx)
	set := a.statefulSet(ctx)
	next := a.handover(ctx, "rollout of a StatefulSet", func(testimony.Run) { a.rollOut(ctx, set) })
	a.ready(ctx, next)
	a.active(ctx, next)
}

func noPods(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "nobody")
	a.hold(ctx)
	a.says(ctx, "that there are no pods", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseRunning && s.Status.Message == "No pods found" && s.Status.ActivePod == ""
	})
}
