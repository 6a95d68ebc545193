package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// What holds while the operator is away, and when its object is.

// podWebhook is the name of the webhook that puts the gate into pods.
const podWebhook = "mpod.kb.io"

// cutWebhook has the API server find no pod webhook any more; the result ends
// that. The operator runs on. It asks for a Service that is not there: taking
// away the endpoints would leave connections that are open already.
func (c *Cluster) cutWebhook(ctx context.Context) (restore func(context.Context) error, err error) {
	var list admissionv1.MutatingWebhookConfigurationList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		configuration := &list.Items[i]
		at := slices.IndexFunc(configuration.Webhooks, func(w admissionv1.MutatingWebhook) bool {
			return w.Name == podWebhook && w.ClientConfig.Service != nil
		})
		if at < 0 {
			continue
		}
		name := configuration.Webhooks[at].ClientConfig.Service.Name
		ask := func(ctx context.Context, name string) error {
			return change(ctx, c, configuration, func(m *admissionv1.MutatingWebhookConfiguration) { m.Webhooks[at].ClientConfig.Service.Name = name })
		}
		return func(ctx context.Context) error { return ask(ctx, name) }, ask(ctx, "there-is-no-such-service")
	}
	return nil, errors.New("there is no webhook " + podWebhook)
}

// scaleOperator sets the operator's replicas and waits until that many run. It
// returns how many there were.
func (c *Cluster) scaleOperator(ctx context.Context, replicas int32) (was int32, err error) {
	var d appsv1.Deployment
	d.Namespace, d.Name = c.Operator.Namespace, c.Operator.Name
	err = change(ctx, c, &d, func(d *appsv1.Deployment) { was, d.Spec.Replicas = *d.Spec.Replicas, &replicas })
	if err != nil {
		return was, err
	}
	return was, until(ctx, "the operator to be scaled", func(ctx context.Context) error {
		var pods corev1.PodList
		err := c.Client.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		if err != nil {
			return err
		}
		ready := 0
		for i := range pods.Items {
			if podCondition(&pods.Items[i], corev1.PodReady) {
				ready++
			}
		}
		if ready != int(replicas) || len(pods.Items) != int(replicas) {
			return fmt.Errorf("%d of %d pods are Ready, and %d are wanted", ready, len(pods.Items), replicas)
		}
		return nil
	})
}

// webhookDown takes the whole operator away: first nothing answers, then it
// comes back and must see to what was refused meanwhile.
func webhookDown(ctx context.Context, c *Cluster) (err error) {
	a, err := c.application("outage")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.active(ctx, old); err != nil {
		return err
	}
	was, err := c.scaleOperator(ctx, 0)
	defer func() {
		_, back := c.scaleOperator(context.WithoutCancel(ctx), was)
		err = errors.Join(err, back)
	}()
	if err != nil {
		return err
	}
	if err := a.refusedInOutage(ctx); err != nil {
		return err
	}
	if err := a.delete(ctx, old); err != nil {
		return err
	}
	if err := a.none(ctx); err != nil {
		return err
	}
	if _, err := c.scaleOperator(ctx, was); err != nil {
		return err
	}
	began := time.Now()
	next, err := a.one(ctx, old)
	if err != nil {
		return err
	}
	c.Log("after the outage the next program started within %s", time.Since(began).Round(100*time.Millisecond))
	return a.active(ctx, next)
}

func (a *application) refusedInOutage(ctx context.Context) error {
	_, err := a.tryPod(ctx, "ours")
	if err == nil || !strings.Contains(err.Error(), "StatefulSingleton "+a.name) {
		return errors.Join(err, errors.New("a pod that matches should be refused by the guard, which says why"))
	}
	began := time.Now()
	_, err = a.tryPod(ctx, "stranger", func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"app": "stranger"}
		t.Spec.Containers[0].Command = []string{"/note", "stranger"}
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
	})
	a.Log("a stranger's pod was created in %s without the webhook", time.Since(began).Round(time.Millisecond))
	if err != nil {
		return fmt.Errorf("a pod that matches nothing: %w", err)
	}
	return until(ctx, "the stranger's pod to run", func(context.Context) error {
		lines, err := a.folder.Lines()
		if err != nil {
			return err
		}
		for _, l := range lines {
			if l.What == testimony.Note && l.Text == "stranger" {
				return nil
			}
		}
		return errors.New("it has not")
	})
}

// operatorDiesInHandover kills the operator while an old program shuts down, and
// then loses a condition that only the operator sets.
func operatorDiesInHandover(ctx context.Context, c *Cluster) error {
	a, err := c.application("succeeded", grace(30), behave("WITNESS_STOP_AFTER", "4s"))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	d, err := a.deploy(ctx, 1, surge())
	if err != nil {
		return err
	}
	var next testimony.Run
	for range 2 {
		old, err := a.one(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(a.active(ctx, old), a.rollOut(ctx, d)); err != nil {
			return err
		}
		_, err = a.says(ctx, "that a handover goes on", func(s *v1.StatefulSingleton) bool { return s.Status.Phase == v1.PhaseTransitioning })
		if err != nil {
			return err
		}
		next, err = a.handover(ctx, "operator killed in a rollout", func(testimony.Run) error { return c.killOperators(ctx) })
		if err != nil {
			return err
		}
		if err := errors.Join(a.active(ctx, next), a.rolledOut(ctx, d)); err != nil {
			return err
		}
	}
	if err := a.ready(ctx, next); err != nil {
		return err
	}
	err = until(ctx, "the gate's condition to be taken away", func(ctx context.Context) error {
		pod, err := a.podOf(ctx, next)
		if err != nil {
			return err
		}
		for i := range pod.Status.Conditions {
			if condition := &pod.Status.Conditions[i]; condition.Type == v1.ReadinessGate {
				condition.Status = corev1.ConditionFalse
			}
		}
		return c.Client.Status().Update(ctx, pod)
	})
	if err != nil {
		return err
	}
	return errors.Join(a.ready(ctx, next), a.stays(next))
}

// objectDeleted deletes the object while one pod runs and another waits, and
// makes it anew.
func objectDeleted(ctx context.Context, c *Cluster) error {
	a, err := c.application("deleted")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.pod(ctx, "first"); err != nil {
		return err
	}
	first, err := a.one(ctx)
	if err != nil {
		return err
	}
	if _, err := a.pod(ctx, "second"); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	wrapper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapWrapper, Namespace: c.Namespace}}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(wrapper), wrapper); err != nil {
		return err
	}
	s, err := a.singleton(ctx)
	if err != nil {
		return err
	}
	if err := c.Client.Delete(ctx, s); err != nil {
		return err
	}
	_, err = a.says(ctx, "that pods are let go", func(s *v1.StatefulSingleton) bool {
		found := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionProgressing)
		return s.DeletionTimestamp != nil && found != nil && found.Reason == v1.ReasonReleasing
	})
	if err != nil {
		return err
	}
	if err := a.stays(first); err != nil {
		return err
	}
	second, err := a.handover(ctx, "deletion with the object deleted", func(old testimony.Run) error { return a.delete(ctx, old) })
	if err != nil {
		return err
	}
	if err := errors.Join(c.gone(ctx, s), c.gone(ctx, wrapper), a.stays(second)); err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	return errors.Join(a.active(ctx, second), a.stays(second))
}

// gone waits until there is no such object.
func (c *Cluster) gone(ctx context.Context, object client.Object) error {
	return until(ctx, object.GetName()+" to be gone", func(ctx context.Context) error {
		uid := object.GetUID()
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || err == nil && object.GetUID() != uid {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there, with finalizers %v", object.GetFinalizers()))
	})
}

// releaseNow lets two programs run together, because it is asked for; they
// testify apart.
func releaseNow(ctx context.Context, c *Cluster) error {
	a, err := c.application("released")
	if err != nil {
		return err
	}
	b, err := c.application("beside")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.pod(ctx, "first"); err != nil {
		return err
	}
	first, err := a.one(ctx)
	if err != nil {
		return err
	}
	apart := func(t *corev1.PodTemplateSpec) { t.Labels = a.labels() }
	if _, err := b.pod(ctx, "second", apart); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	if live, err := b.living(); err != nil || len(live) > 0 {
		return errors.Join(err, fmt.Errorf("%d programs run beside the first", len(live)))
	}
	s, err := a.singleton(ctx)
	if err != nil {
		return err
	}
	err = change(ctx, c, s, func(s *v1.StatefulSingleton) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[v1.AnnotationReleaseNow] = v1.True
	})
	if err != nil {
		return err
	}
	if err := c.Client.Delete(ctx, s); err != nil {
		return err
	}
	second, err := b.one(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(c.gone(ctx, s), a.stays(first), b.stays(second)); err != nil {
		return err
	}
	pods, err := a.pods(ctx)
	for i := range pods {
		if len(pods[i].Finalizers) > 0 {
			err = errors.Join(err, fmt.Errorf("%s keeps finalizers %v", pods[i].Name, pods[i].Finalizers))
		}
	}
	return err
}

func namespaceDeleted(ctx context.Context, c *Cluster) error {
	other, remove, err := c.New(ctx)
	if err != nil {
		return err
	}
	defer remove()
	a, err := other.application("leaving")
	if err != nil {
		return err
	}
	c.applications = append(c.applications, a)
	if err := a.hold(ctx); err != nil {
		return err
	}
	for _, name := range []string{"first", "second"} {
		if _, err := a.pod(ctx, name); err != nil {
			return err
		}
	}
	if _, err := a.one(ctx); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
		return err
	}
	if err := c.Client.Delete(ctx, ns); err != nil {
		return err
	}
	return errors.Join(c.gone(ctx, ns), a.none(ctx))
}
