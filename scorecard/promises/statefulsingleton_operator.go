package promises

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Behavior while the operator or its object is missing.

// podWebhook is the name of the webhook that adds the gate to pods.
const podWebhook = "mpod.kb.io"

// whileNoWebhook makes the pod webhook unreachable during do, while the operator continues to run.
// It changes the webhook to a Service that does not exist: without endpoints, open connections
// would stay open.
func (c *Cluster) whileNoWebhook(ctx context.Context, do func()) {
	var list admissionv1.MutatingWebhookConfigurationList
	c.list(ctx, &list)
	for i := range list.Items {
		configuration := &list.Items[i]
		at := slices.IndexFunc(configuration.Webhooks, func(w admissionv1.MutatingWebhook) bool {
			return w.Name == podWebhook && w.ClientConfig.Service != nil
		})
		if at < 0 {
			continue
		}
		ask := func(ctx context.Context, name string) {
			change(ctx, c, configuration, func(m *admissionv1.MutatingWebhookConfiguration) { m.Webhooks[at].ClientConfig.Service.Name = name })
		}
		defer ask(context.WithoutCancel(ctx), configuration.Webhooks[at].ClientConfig.Service.Name)
		ask(ctx, "there-is-no-such-service")
		do()
		return
	}
	c.fail("there is no webhook %s", podWebhook)
}

// operatorParts returns the Deployments that reconcile objects and serve webhooks. The installer is
// not one of them: its objects stay without it.
func (c *Cluster) operatorParts() []*appsv1.Deployment {
	webhooks := strings.TrimSuffix(c.Operator.Name, "controller-manager") + "webhook"
	return []*appsv1.Deployment{
		{ObjectMeta: metav1.ObjectMeta{Namespace: c.Operator.Namespace, Name: c.Operator.Name}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: c.Operator.Namespace, Name: webhooks}},
	}
}

// operatorPods selects the pods that reconcile objects and serve webhooks.
func (c *Cluster) operatorPods() client.MatchingLabelsSelector {
	selector, err := labels.Parse("control-plane in (controller-manager, webhook)")
	c.check(err)
	return client.MatchingLabelsSelector{Selector: selector}
}

// whileNoOperator calls do while nothing reconciles objects or serves webhooks.
func (c *Cluster) whileNoOperator(ctx context.Context, do func()) {
	for _, d := range c.operatorParts() {
		c.read(ctx, d)
		replicas := *d.Spec.Replicas
		defer func() { c.awaitScale(context.WithoutCancel(ctx), d, replicas) }()
		defer func() { c.scale(context.WithoutCancel(ctx), d, replicas) }()
		c.scale(ctx, d, 0)
		c.awaitScale(ctx, d, 0)
	}
	do()
}

func (c *Cluster) scale(ctx context.Context, d *appsv1.Deployment, replicas int32) {
	change(ctx, c, d, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
}

// awaitScale waits until that many pods of a Deployment run.
func (c *Cluster) awaitScale(ctx context.Context, d *appsv1.Deployment, replicas int32) {
	c.until(ctx, "the operator to be scaled", func(ctx context.Context) {
		var pods corev1.PodList
		c.list(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		unready := slices.DeleteFunc(slices.Clone(pods.Items), func(p corev1.Pod) bool { return podCondition(&p, corev1.PodReady) })
		c.Expect(unready).To(BeEmpty(), "%d of %d pods are not Ready, and %d are wanted", len(unready), len(pods.Items), replicas)
		c.Expect(pods.Items).To(HaveLen(int(replicas)), "%d of %d pods are not Ready, and %d are wanted", len(unready), len(pods.Items), replicas)
	})
}

// webhookDown stops the whole operator. First pods are refused, then the operator starts and must
// create what was refused meanwhile.
func webhookDown(ctx context.Context, c *Cluster) {
	a, _ := c.running(ctx, 1, "outage")
	old := a.one(ctx)
	a.active(ctx, old)
	c.whileNoOperator(ctx, func() {
		a.refusedInOutage(ctx)
		a.delete(ctx, old)
		a.none(ctx)
	})
	began := time.Now()
	next := a.one(ctx, old)
	c.Log("after the outage the next program started within %s", time.Since(began).Round(100*time.Millisecond))
	a.active(ctx, next)
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
	a.during("a pod that does not match", func() { a.check(err) })
	a.until(ctx, "the other pod to run", func(context.Context) {
		lines, err := a.Folder.Lines()
		a.check(err)
		for _, l := range lines {
			if l.What == testimony.Note && l.Text == "stranger" {
				return
			}
		}
		a.fail("it has not")
	})
}

// operatorDiesInHandover kills the operator while an old program shuts down. It then removes a
// condition that only the operator sets.
func operatorDiesInHandover(ctx context.Context, c *Cluster) {
	a, d := c.running(ctx, 1, "succeeded", grace(30), behave("WITNESS_STOP_AFTER", "4s"))
	var next testimony.Run
	for range 2 {
		old := a.one(ctx)
		a.active(ctx, old)
		a.rollOut(ctx, d)
		a.says(ctx, "that a handover is in progress", func(s *v1.StatefulSingleton) bool { return s.Status.Phase == v1.PhaseTransitioning })
		next = a.handover(ctx, "operator killed in a rollout", func(testimony.Run) { c.killOperators(ctx) })
		a.active(ctx, next)
		a.rolledOut(ctx, d)
	}
	a.ready(ctx, next)
	c.until(ctx, "the gate's condition to be removed", func(ctx context.Context) {
		pod := a.podOf(ctx, next)
		for i := range pod.Status.Conditions {
			if condition := &pod.Status.Conditions[i]; condition.Type == v1.ReadinessGate {
				condition.Status = corev1.ConditionFalse
			}
		}
		c.check(c.Client.Status().Update(ctx, pod))
	})
	a.ready(ctx, next)
	a.stays(next)
}

// objectDeleted deletes the object while one pod runs and another waits, and recreates it.
func objectDeleted(ctx context.Context, c *Cluster) {
	a := c.application("deleted")
	a.hold(ctx)
	a.pod(ctx, "first")
	first := a.one(ctx)
	a.pod(ctx, "second")
	a.held(ctx, 1)
	wrapper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapWrapper, Namespace: c.Namespace}}
	c.read(ctx, wrapper)
	s := a.singleton(ctx)
	c.remove(ctx, s)
	a.says(ctx, "that pods are released", func(s *v1.StatefulSingleton) bool {
		found := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionProgressing)
		return s.DeletionTimestamp != nil && found != nil && found.Reason == v1.ReasonReleasing
	})
	a.stays(first)
	second := a.handover(ctx, "deletion with the object deleted", func(old testimony.Run) { a.delete(ctx, old) })
	c.gone(ctx, s)
	c.gone(ctx, wrapper)
	a.stays(second)
	a.hold(ctx)
	a.active(ctx, second)
	a.stays(second)
}

// deletedInRollout deletes the object after the operator has deleted the old pod, which needs time
// to stop. Its ReplicaSet recreates the pod meanwhile.
func deletedInRollout(ctx context.Context, c *Cluster) {
	a, d := c.running(ctx, 1, "midway", grace(30), behave("WITNESS_STOP_AFTER", "6s"))
	s := a.singleton(ctx)
	old := a.one(ctx)
	next := a.handover(ctx, "rollout whose object is deleted", func(old testimony.Run) {
		a.rollOut(ctx, d)
		a.until(ctx, "the operator to delete "+old.Pod, func(ctx context.Context) {
			a.Expect(a.podOf(ctx, old).DeletionTimestamp).NotTo(BeNil())
		})
		c.remove(ctx, s)
	})
	a.oldStopped(old)
	c.gone(ctx, s)
	a.stays(next)
}

// releaseNow lets two programs run together on request. Their witnesses use separate folders.
func releaseNow(ctx context.Context, c *Cluster) {
	a := c.application("released")
	b := c.application("beside")
	a.hold(ctx)
	a.pod(ctx, "first")
	first := a.one(ctx)
	apart := func(t *corev1.PodTemplateSpec) { t.Labels = a.set().Labels() }
	b.pod(ctx, "second", apart)
	a.held(ctx, 1)
	live := b.living()
	c.Expect(live).To(BeEmpty(), "%d programs run together with the first", len(live))
	s := a.singleton(ctx)
	change(ctx, c, s, func(s *v1.StatefulSingleton) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[v1.AnnotationReleaseNow] = v1.True
	})
	c.remove(ctx, s)
	second := b.one(ctx)
	c.gone(ctx, s)
	a.stays(first)
	b.stays(second)
	pods := a.pods(ctx)
	for i := range pods {
		if len(pods[i].Finalizers) > 0 {
			c.fail("%s keeps finalizers %v", pods[i].Name, pods[i].Finalizers)
		}
	}
}

func namespaceDeleted(ctx context.Context, c *Cluster) {
	other := c.another(ctx)
	a := other.application("leaving")
	c.addProbe(a.probe)
	a.hold(ctx)
	for _, name := range []string{"first", "second"} {
		a.pod(ctx, name)
	}
	a.one(ctx)
	a.held(ctx, 1)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}
	c.read(ctx, ns)
	c.remove(ctx, ns)
	c.gone(ctx, ns)
	a.none(ctx)
}
