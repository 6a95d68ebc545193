package statefulsingleton_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// newSingleton returns a StatefulSingleton for pods with the label app=db.
func newSingleton(namespace string, change ...func(*v1.StatefulSingleton)) *v1.StatefulSingleton {
	s := &v1.StatefulSingleton{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace},
		Spec:       v1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func mode(m v1.GateMode) func(*v1.StatefulSingleton) {
	return func(s *v1.StatefulSingleton) { s.Spec.GateMode = m }
}

// newPod returns a pod with the label app=db and one container with a command.
func newPod(namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "db"}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "one", Command: []string{"serve"}}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// playing returns a change that sets an instruction for the fake control plane.
func playing(what, how string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[what] = how }
}

// declare creates a StatefulSingleton and waits until the webhook knows it.
func declare(ctx context.Context, s *v1.StatefulSingleton) *v1.StatefulSingleton {
	GinkgoHelper()
	Expect(user.Create(ctx, s)).To(Succeed())
	known := func() map[string]string {
		probe := newPod(s.Namespace, "probe", func(p *corev1.Pod) { p.Labels = maps.Clone(s.Spec.Selector.MatchLabels) })
		for _, name := range s.Spec.Containers {
			probe.Spec.Containers[0].Name = name
		}
		_ = user.Create(ctx, probe, client.DryRunAll)
		return probe.Labels
	}
	Eventually(known).Should(HaveKeyWithValue(v1.LabelSingleton, s.Name))
	return s
}

// add creates a pod.
func add(ctx context.Context, p *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	Expect(user.Create(ctx, p)).To(Succeed())
	return p
}

// edit changes the live object, and retries after a conflict.
func edit[T client.Object](ctx context.Context, obj T, change func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return user.Update(ctx, obj)
	}).Should(Succeed())
}

// tell changes an instruction for the fake control plane about a pod; "" removes it.
func tell(ctx context.Context, p *corev1.Pod, what, how string) {
	GinkgoHelper()
	edit(ctx, p, func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, what, how) })
}

// report changes the status of a pod, which the fake control plane then leaves unchanged.
func report(ctx context.Context, p *corev1.Pod, change func(*corev1.PodStatus)) {
	GinkgoHelper()
	tell(ctx, p, playOff, "yes")
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		change(&p.Status)
		return user.Status().Update(ctx, p)
	}).Should(Succeed())
}

// remove deletes a pod as kubectl does.
func remove(ctx context.Context, p *corev1.Pod, how ...client.DeleteOption) {
	GinkgoHelper()
	Expect(user.Delete(ctx, p.DeepCopy(), how...)).To(Succeed())
}

// gone waits until the pod is removed.
func gone(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	Eventually(func() bool {
		var have corev1.Pod
		err := user.Get(ctx, client.ObjectKeyFromObject(p), &have)
		return client.IgnoreNotFound(err) == nil && (err != nil || have.UID != p.UID)
	}).Should(BeTrue())
}

// live returns the pod as it is now.
func live(ctx context.Context, p *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	have := &corev1.Pod{}
	Expect(user.Get(ctx, client.ObjectKeyFromObject(p), have)).To(Succeed())
	return have
}

// look makes the operator reconcile the object, and waits until it has reported the new
// status. The operator does so only when it has nothing to do, so an event that has not
// happened by then does not happen.
func look(ctx context.Context, s *v1.StatefulSingleton) v1.StatefulSingletonStatus {
	GinkgoHelper()
	edit(ctx, s, func(s *v1.StatefulSingleton) {
		s.Spec.TerminationGracePeriod = ptr.To(*s.Spec.TerminationGracePeriod + 1)
	})
	Eventually(func() int64 {
		Expect(user.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		return s.Status.ObservedGeneration
	}).Should(Equal(s.Generation))
	return s.Status
}

// activates waits until this pod is granted and Ready, and these pods wait in this order.
func activates(ctx context.Context, s *v1.StatefulSingleton, p *corev1.Pod, waiting ...string) {
	GinkgoHelper()
	Eventually(func() error { return isActive(ctx, s, p, waiting...) }).Should(Succeed())
}

// isActive returns an error about any missing part of this state.
func isActive(ctx context.Context, s *v1.StatefulSingleton, p *corev1.Pod, waiting ...string) error {
	have := &corev1.Pod{}
	if err := errors.Join(user.Get(ctx, client.ObjectKeyFromObject(s), s), user.Get(ctx, client.ObjectKeyFromObject(p), have)); err != nil {
		return err
	}
	h := s.Status.Holder
	switch {
	case h == nil || h.UID != p.UID || h.Name != p.Name || s.Status.ActivePod != p.Name:
		return fmt.Errorf("pod %s is not the holder: %+v", p.Name, s.Status)
	case s.Status.Phase != v1.PhaseRunning || s.Status.TransitionTimestamp != nil || !meta.IsStatusConditionTrue(s.Status.Conditions, v1.ConditionAvailable):
		return fmt.Errorf("the handover is still in progress: %+v", s.Status)
	case !slices.Equal(s.Status.Waiting, waiting) || s.Status.WaitingCount != int32(len(waiting)):
		return fmt.Errorf("waiting pods are %q, want %q", s.Status.Waiting, waiting)
	case have.Annotations[v1.AnnotationGrant] != fmt.Sprintf("%s %d", p.UID, h.Epoch):
		return fmt.Errorf("the grant of pod %s is %q", p.Name, have.Annotations[v1.AnnotationGrant])
	case !controllerutil.ContainsFinalizer(have, v1.FinalizerPod):
		return fmt.Errorf("pod %s has no finalizer", p.Name)
	case readiness(have) != corev1.ConditionTrue:
		return fmt.Errorf("pod %s has readiness condition %q", p.Name, readiness(have))
	}
	return nil
}

// readiness returns the status of our readiness condition of the pod.
func readiness(p *corev1.Pod) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.ReadinessGate {
			return c.Status
		}
	}
	return ""
}

// says waits for a condition with that reason, and returns its message.
func says(ctx context.Context, s *v1.StatefulSingleton, kind string, reason string) string {
	GinkgoHelper()
	var message string
	Eventually(func() string {
		Expect(user.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		if c == nil {
			return ""
		}
		message = c.Message
		return c.Reason
	}).Should(Equal(reason))
	return message
}

// notes returns the texts of the object's events with that reason.
func notes(ctx context.Context, s *v1.StatefulSingleton, reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(user.List(ctx, &list, client.InNamespace(s.Namespace))).To(Succeed())
	var out []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Reason == reason && e.InvolvedObject.UID == s.UID {
			out = append(out, e.Type+": "+e.Message)
			if e.Series != nil {
				out = append(out, "a repeated event")
			}
		}
	}
	return out
}

// refusal returns the API server's response to a new object; "" if it is admitted.
func refusal(ctx context.Context, obj client.Object) string {
	return apiserver.Said(user.Create(ctx, obj.DeepCopyObject().(client.Object), client.DryRunAll))
}

// probes is a namespace with a StatefulSingleton in which nothing happens.
const probes = "probes"

// outage stops the webhooks while the function runs: nothing listens at their address.
func outage(ctx context.Context, during func()) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(listener.Close()).To(Succeed())
	there, nowhere := net.JoinHostPort(server.WebhookInstallOptions.LocalServingHost, fmt.Sprint(server.WebhookInstallOptions.LocalServingPort)), listener.Addr().String()
	answered := func() bool {
		probe := newPod(probes, "probe")
		_ = user.Create(ctx, probe, client.DryRunAll)
		return gated(probe)
	}
	move := func(from, to string) {
		for _, c := range server.WebhookInstallOptions.MutatingWebhooks {
			edit(ctx, c, func(c *admissionv1.MutatingWebhookConfiguration) {
				for i := range c.Webhooks {
					*c.Webhooks[i].ClientConfig.URL = strings.Replace(*c.Webhooks[i].ClientConfig.URL, from, to, 1)
				}
			})
		}
		for _, c := range server.WebhookInstallOptions.ValidatingWebhooks {
			edit(ctx, c, func(c *admissionv1.ValidatingWebhookConfiguration) {
				for i := range c.Webhooks {
					*c.Webhooks[i].ClientConfig.URL = strings.Replace(*c.Webhooks[i].ClientConfig.URL, from, to, 1)
				}
			})
		}
	}
	move(there, nowhere)
	Eventually(answered).Should(BeFalse())
	defer func() {
		move(nowhere, there)
		Eventually(answered).Should(BeTrue())
	}()
	during()
}

// newDeployment returns a Deployment. No controller acts on it.
func newDeployment(namespace string, replicas int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace, Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}}, Spec: newPod(namespace, "").Spec}},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

// revision creates the ReplicaSet of that revision of a Deployment, and makes it the
// current one.
func revision(ctx context.Context, d *appsv1.Deployment, number string) *appsv1.ReplicaSet {
	GinkgoHelper()
	edit(ctx, d, func(d *appsv1.Deployment) { d.Annotations["deployment.kubernetes.io/revision"] = number })
	labels := map[string]string{"app": "db", "pod-template-hash": number}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-" + number, Namespace: d.Namespace, Annotations: map[string]string{"deployment.kubernetes.io/revision": number},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: d.Spec.Template.Spec}},
	}
	Expect(user.Create(ctx, set)).To(Succeed())
	return set
}

// madeBy returns a change that makes a pod one of a ReplicaSet.
func madeBy(set *appsv1.ReplicaSet) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = maps.Clone(set.Spec.Template.Labels)
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
}
