package extended

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Rules for the number of pods, and which of them are active.

// replicaRules allows 1, 3 and 5 replicas, and requests other numbers in all ways.
func replicaRules(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "rules", 2, coexist, patiently, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Scaling = &v1alpha1.Scaling{Min: new(int32(1)), Max: new(int32(5)), OddOnly: true}
	})
	c.During("on create", func() { c.Check(refused(c.Client.Create(ctx, x.set), "odd")) })
	x.set.Spec.Template.Spec.Replicas = nil
	c.Put(ctx, x.set)
	n := x.set.Spec.Template.Spec.Replicas
	c.Expect(n).NotTo(BeNil(), "replicas should default to 1, and are %v", n)
	c.Expect(*n).To(BeNumerically("==", 1), "replicas should default to 1, and are %v", n)
	x.serves(ctx, 1)
	for replicas, rule := range map[int32]string{2: "odd", 7: "max", 0: "min"} {
		edited := x.set.DeepCopy()
		edited.Spec.Template.Spec.Replicas = &replicas
		c.During("on update", func() { c.Check(refused(c.Client.Patch(ctx, edited, client.MergeFrom(x.set)), rule)) })
		c.During("on /scale", func() { c.Check(refused(x.scale(ctx, replicas), rule)) })
	}
	x.Check(x.scale(ctx, 3))
	x.serves(ctx, 1)
	x.autoscaled(ctx)
	x.childPutBack(ctx)
}

// refused checks that a write was refused with these words.
func refused(err error, words string) error {
	if err == nil || apierrors.IsConflict(err) || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("should be refused with the message %q: %w", words, err)
	}
	return nil
}

// scale sets the replicas through the scale subresource, as kubectl scale does.
func (x *fixture) scale(ctx context.Context, replicas int32) error {
	var scale autoscalingv1.Scale
	x.Check(x.Client.SubResource("scale").Get(ctx, x.set, &scale))
	x.Expect(scale.Status.Selector).NotTo(BeEmpty(), "/scale has no selector: an autoscaler would reject it")
	scale.Spec.Replicas = replicas
	return x.Client.SubResource("scale").Update(ctx, x.set, client.WithSubResourceBody(&scale))
}

// autoscaled lets a HorizontalPodAutoscaler request 5 and then 4 replicas. It needs no metrics to
// enforce its own min and max.
func (x *fixture) autoscaled(ctx context.Context) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: x.set.Name, Namespace: x.Namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: x.set.Name},
			MinReplicas:    new(int32(5)), MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))}}}},
		},
	}
	x.Put(ctx, hpa)
	x.Until(ctx, "the autoscaler to ask for 5", func(ctx context.Context) {
		x.Read(ctx, x.set)
		x.Read(ctx, hpa)
		x.Expect(*x.set.Spec.Template.Spec.Replicas).To(Equal(int32(5)), "%+v", hpa.Status.Conditions)
	})
	x.serves(ctx, 1)
	kit.Change(ctx, x.Cluster, hpa, func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.MinReplicas, h.Spec.MaxReplicas = new(int32(4)), 4
	})
	x.Until(ctx, "the autoscaler to be refused", func(ctx context.Context) {
		x.Read(ctx, hpa)
		x.Expect(slices.ContainsFunc(hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "odd")
		})).To(BeTrue(), "%+v", hpa.Status.Conditions)
	})
	x.Remove(ctx, hpa)
}

// childPutBack edits a StatefulSet of the operator, and waits until the operator reverts it.
func (x *fixture) childPutBack(ctx context.Context) {
	x.Read(ctx, x.set)
	want := *x.set.Spec.Template.Spec.Replicas
	child := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: x.child(1), Namespace: x.Namespace}}
	kit.Change(ctx, x.Cluster, child, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	x.Until(ctx, "the edit to be reverted", func(ctx context.Context) {
		x.Read(ctx, child)
		x.Expect(*child.Spec.Replicas).To(Equal(want), "it has %d replicas", *child.Spec.Replicas)
	})
	x.serves(ctx, 1)
}

// probedActive chooses the active pods with a command that runs at that interval, in seconds.
func probedActive(single bool, every int32, script string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"keeper": {
			Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", script}}, PeriodSeconds: every, TimeoutSeconds: 5, SingleActive: single}}
	}
}

func isActive(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelPodActive] == v1alpha1.PodActive }

// active waits until the names of the active pods are as wanted.
func (x *fixture) active(ctx context.Context, what string, want func(names []string) bool) (found []string) {
	x.Until(ctx, what, func(ctx context.Context) {
		pods := x.pods(ctx)
		found = nil
		for name, p := range pods {
			if isActive(&p) {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		x.Expect(want(found)).To(BeTrue(), "active are %v", found)
	})
	return found
}

func activePods(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "asked", 2, coexist, patiently, probedActive(false, 2, "test -e /tmp/active"))
	x.create(ctx)
	first, second := x.child(1)+"-0", x.child(1)+"-1"
	for _, act := range []struct {
		pod, script string
		active      []string
	}{
		{first, "touch /tmp/active", []string{first}},
		{second, "touch /tmp/active", []string{first, second}},
		{first, "rm /tmp/active", []string{second}},
	} {
		x.shell(ctx, act.pod, act.script)
		x.active(ctx, fmt.Sprintf("%v to be active", act.active), func(names []string) bool { return slices.Equal(names, act.active) })
	}
}

// uidOf returns the UID of the current pod with that name, or "" if there is none.
func (x *fixture) uidOf(ctx context.Context, name string) types.UID {
	return x.pods(ctx)[name].UID
}

// singleActive removes the label from one pod after another: by a failing probe, and by the end of
// the pod.
func singleActive(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	single := pods.Hold(func(pods map[types.UID]*corev1.Pod) error {
		if n := count(pods, isActive); n > 1 {
			return fmt.Errorf("%d pods have the label", n)
		}
		return nil
	})
	x := newFixture(c, "single", 2, coexist, patiently, probedActive(true, 1, "test ! -e /tmp/passive"))
	x.create(ctx)
	anyone := func(names []string) bool { return len(names) == 1 }
	before := x.active(ctx, "a pod to be active", anyone)
	for _, end := range []func(name string){
		func(name string) { x.shell(ctx, name, "touch /tmp/passive") },
		func(name string) {
			c.Remove(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}})
		},
		func(string) { x.edit(ctx, inVersion("2")) },
	} {
		was, uid := before[0], x.uidOf(ctx, before[0])
		end(was)
		another := func(names []string) bool {
			now := x.uidOf(ctx, was)
			return anyone(names) && (names[0] != was || (now != "" && now != uid))
		}
		before = x.active(ctx, "a pod other than "+was+" to be active", another)
	}
	x.serves(ctx, 2)
	c.Check(single.Kept())
}
