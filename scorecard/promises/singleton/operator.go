package singleton

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Behavior while the operator or its object is missing.

// podWebhook is the name of the webhook that adds the gate to pods.
const podWebhook = "mpod.kb.io"

// whileNoWebhook makes the pod webhook unreachable during do, while the operator continues to run.
// It changes the webhook to a Service that does not exist: without endpoints, open connections
// would stay open.
func whileNoWebhook(ctx context.Context, c *kit.Cluster, do func()) {
	var list admissionv1.MutatingWebhookConfigurationList
	c.List(ctx, &list)
	for i := range list.Items {
		configuration := &list.Items[i]
		at := slices.IndexFunc(configuration.Webhooks, func(w admissionv1.MutatingWebhook) bool {
			return w.Name == podWebhook && w.ClientConfig.Service != nil
		})
		if at < 0 {
			continue
		}
		ask := func(ctx context.Context, name string) {
			kit.Change(ctx, c, configuration, func(m *admissionv1.MutatingWebhookConfiguration) { m.Webhooks[at].ClientConfig.Service.Name = name })
		}
		defer ask(context.WithoutCancel(ctx), configuration.Webhooks[at].ClientConfig.Service.Name)
		ask(ctx, "there-is-no-such-service")
		do()
		return
	}
	c.Fail("there is no webhook %s", podWebhook)
}

// webhookDown stops the whole operator. First pods are refused, then the operator starts and must
// create what was refused meanwhile.
func webhookDown(ctx context.Context, c *kit.Cluster) {
	a, _ := startApplication(ctx, c, 1, "outage")
	old := a.one(ctx)
	a.active(ctx, old)
	c.WhileNoOperator(ctx, func() {
		a.refusedInOutage(ctx)
		a.delete(ctx, old)
		a.none(ctx)
	})
	began := time.Now()
	next := a.one(ctx, old)
	c.Log("after the outage the next program started within %s", time.Since(began).Round(100*time.Millisecond))
	a.active(ctx, next)
}

// operatorUpgraded upgrades the operator while a program runs, rolls out a change, and reverts the upgrade.
func operatorUpgraded(ctx context.Context, c *kit.Cluster) {
	a, d := startApplication(ctx, c, 1, "upgraded")
	old := a.one(ctx)
	a.ready(ctx, old)
	var next testimony.Run
	c.WithOperatorImage(ctx, c.OperatorNext, func() {
		a.active(ctx, old)
		a.stays(old)
		next = a.handover(ctx, "a rollout after the upgrade", func(testimony.Run) { a.rollOut(ctx, d) })
		pod := a.podOf(ctx, next)
		images := []string{}
		for _, v := range pod.Spec.Volumes {
			if v.Image != nil {
				images = append(images, v.Image.Reference)
			}
		}
		for _, k := range pod.Spec.InitContainers {
			images = append(images, k.Image)
		}
		c.Expect(images).To(ConsistOf(c.OperatorNext))
		a.ready(ctx, next)
	})
	a.active(ctx, next)
	a.stays(next)
}

func (a *application) refusedInOutage(ctx context.Context) {
	_, err := a.tryPod(ctx, "ours")
	a.Expect(err).To(MatchError(ContainSubstring("StatefulSingleton "+a.Name)), "a matching pod should be refused by the guard with a reason")
	began := time.Now()
	_, err = a.tryPod(ctx, "stranger", func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"app": "stranger"}
		t.Spec.Containers[0].Command = []string{"/note", "stranger"}
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
	})
	a.Log("a pod outside the object was created in %s without the webhook", time.Since(began).Round(time.Millisecond))
	a.During("a pod that does not match", func() { a.Check(err) })
	a.Until(ctx, "the other pod to run", func(context.Context) {
		lines, err := a.Folder.Lines()
		a.Check(err)
		for _, l := range lines {
			if l.What == testimony.Note && l.Text == "stranger" {
				return
			}
		}
		a.Fail("it has not")
	})
}

// operatorDiesInHandover kills the operator while an old program shuts down. It then removes a
// condition that only the operator sets.
func operatorDiesInHandover(ctx context.Context, c *kit.Cluster) {
	a, d := startApplication(ctx, c, 1, "succeeded", grace(30), behave("WITNESS_STOP_AFTER", "4s"))
	var next testimony.Run
	for range 2 {
		old := a.one(ctx)
		a.active(ctx, old)
		a.rollOut(ctx, d)
		a.says(ctx, "that a handover is in progress", func(s *v1.StatefulSingleton) bool { return s.Status.Phase == v1.PhaseTransitioning })
		next = a.handover(ctx, "operator killed in a rollout", func(testimony.Run) { c.KillOperators(ctx) })
		a.active(ctx, next)
		a.rolledOut(ctx, d)
	}
	a.ready(ctx, next)
	c.Until(ctx, "the gate's condition to be removed", func(ctx context.Context) {
		pod := a.podOf(ctx, next)
		for i := range pod.Status.Conditions {
			if condition := &pod.Status.Conditions[i]; condition.Type == v1.ReadinessGate {
				condition.Status = corev1.ConditionFalse
			}
		}
		c.Check(c.Client.Status().Update(ctx, pod))
	})
	a.ready(ctx, next)
	a.stays(next)
}

// objectDeleted deletes the object while one pod runs and another waits, and recreates it.
func objectDeleted(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "deleted")
	a.hold(ctx)
	a.pod(ctx, "first")
	first := a.one(ctx)
	a.pod(ctx, "second")
	a.held(ctx, 1)
	wrapper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapWrapper, Namespace: c.Namespace}}
	c.Read(ctx, wrapper)
	s := a.singleton(ctx)
	c.Remove(ctx, s)
	a.says(ctx, "that pods are released", func(s *v1.StatefulSingleton) bool {
		found := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionProgressing)
		return s.DeletionTimestamp != nil && found != nil && found.Reason == v1.ReasonReleasing
	})
	a.stays(first)
	second := a.handover(ctx, "deletion with the object deleted", func(old testimony.Run) { a.delete(ctx, old) })
	c.Gone(ctx, s)
	c.Gone(ctx, wrapper)
	a.stays(second)
	a.hold(ctx)
	a.active(ctx, second)
	a.stays(second)
}

// deletedInRollout deletes the object after the operator has deleted the old pod, which needs time
// to stop. Its ReplicaSet recreates the pod meanwhile.
func deletedInRollout(ctx context.Context, c *kit.Cluster) {
	a, d := startApplication(ctx, c, 1, "midway", grace(30), behave("WITNESS_STOP_AFTER", "6s"))
	s := a.singleton(ctx)
	old := a.one(ctx)
	next := a.handover(ctx, "rollout whose object is deleted", func(old testimony.Run) {
		a.rollOut(ctx, d)
		a.Until(ctx, "the operator to delete "+old.Pod, func(ctx context.Context) {
			a.Expect(a.podOf(ctx, old).DeletionTimestamp).NotTo(BeNil())
		})
		c.Remove(ctx, s)
	})
	a.oldStopped(old)
	c.Gone(ctx, s)
	a.stays(next)
}

// releaseNow lets two programs run together on request. Their witnesses use separate folders.
func releaseNow(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "released")
	b := newApplication(c, "beside")
	a.hold(ctx)
	a.pod(ctx, "first")
	first := a.one(ctx)
	apart := func(t *corev1.PodTemplateSpec) { t.Labels = a.set().Labels() }
	b.pod(ctx, "second", apart)
	a.held(ctx, 1)
	live := b.living()
	c.Expect(live).To(BeEmpty(), "%d programs run together with the first", len(live))
	s := a.singleton(ctx)
	kit.Change(ctx, c, s, func(s *v1.StatefulSingleton) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[v1.AnnotationReleaseNow] = v1.True
	})
	c.Remove(ctx, s)
	second := b.one(ctx)
	c.Gone(ctx, s)
	a.stays(first)
	b.stays(second)
	pods := a.pods(ctx)
	for i := range pods {
		if len(pods[i].Finalizers) > 0 {
			c.Fail("%s keeps finalizers %v", pods[i].Name, pods[i].Finalizers)
		}
	}
}

func namespaceDeleted(ctx context.Context, c *kit.Cluster) {
	other := c.Another(ctx)
	a := newApplication(other, "leaving")
	c.AddProbe(a.Probe)
	a.hold(ctx)
	for _, name := range []string{"first", "second"} {
		a.pod(ctx, name)
	}
	a.one(ctx)
	a.held(ctx, 1)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}
	c.Read(ctx, ns)
	c.Remove(ctx, ns)
	c.Gone(ctx, ns)
	a.none(ctx)
}
