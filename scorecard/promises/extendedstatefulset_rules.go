package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// How many pods there may be, and which of them are active.

// replicaRules allows 1, 3 and 5 replicas, and asks for others in all ways.
func replicaRules(ctx context.Context, c *Cluster) error {
	x := c.extended("rules", 2, coexist, patiently, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Scaling = &v1alpha1.Scaling{Min: new(int32(1)), Max: new(int32(5)), OddOnly: true}
	})
	if err := refused(c.Client.Create(ctx, x.set), "odd"); err != nil {
		return fmt.Errorf("on create: %w", err)
	}
	x.set.Spec.Template.Spec.Replicas = nil
	if err := x.Client.Create(ctx, x.set); err != nil {
		return err
	}
	if n := x.set.Spec.Template.Spec.Replicas; n == nil || *n != 1 {
		return fmt.Errorf("absent replicas should become 1, and are %v", n)
	}
	if err := x.serves(ctx, 1); err != nil {
		return err
	}
	for replicas, rule := range map[int32]string{2: "odd", 7: "max", 0: "min"} {
		edited := x.set.DeepCopy()
		edited.Spec.Template.Spec.Replicas = &replicas
		if err := refused(c.Client.Patch(ctx, edited, client.MergeFrom(x.set)), rule); err != nil {
			return fmt.Errorf("on update: %w", err)
		}
		if err := refused(x.scale(ctx, replicas), rule); err != nil {
			return fmt.Errorf("on /scale: %w", err)
		}
	}
	if err := errors.Join(x.scale(ctx, 3), x.serves(ctx, 1)); err != nil {
		return err
	}
	return errors.Join(x.autoscaled(ctx), x.childPutBack(ctx))
}

// refused checks that a write was, with these words.
func refused(err error, words string) error {
	if err == nil || apierrors.IsConflict(err) || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("it should be refused with the words %q: %w", words, err)
	}
	return nil
}

// scale is what kubectl scale does.
func (x *extended) scale(ctx context.Context, replicas int32) error {
	var scale autoscalingv1.Scale
	if err := x.Client.SubResource("scale").Get(ctx, x.set, &scale); err != nil {
		return err
	}
	if scale.Status.Selector == "" {
		return errors.New("/scale has no selector: an autoscaler would refuse it")
	}
	scale.Spec.Replicas = replicas
	return x.Client.SubResource("scale").Update(ctx, x.set, client.WithSubResourceBody(&scale))
}

// autoscaled lets a HorizontalPodAutoscaler ask for 5 and then for 4. It needs no
// metrics for its own bounds.
func (x *extended) autoscaled(ctx context.Context) error {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: x.set.Name, Namespace: x.Namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: x.set.Name},
			MinReplicas:    new(int32(5)), MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))}}}},
		},
	}
	if err := x.Client.Create(ctx, hpa); err != nil {
		return err
	}
	err := until(ctx, "the autoscaler to ask for 5", func(ctx context.Context) error {
		err := x.get(ctx)
		if n := *x.set.Spec.Template.Spec.Replicas; err == nil && n != 5 {
			err = errors.Join(fmt.Errorf("%d are wanted", n), x.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa), fmt.Errorf("%+v", hpa.Status.Conditions))
		}
		return err
	})
	if err := errors.Join(err, x.serves(ctx, 1)); err != nil {
		return err
	}
	err = change(ctx, x.Cluster, hpa, func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.MinReplicas, h.Spec.MaxReplicas = new(int32(4)), 4
	})
	if err != nil {
		return err
	}
	err = until(ctx, "the autoscaler to be refused", func(ctx context.Context) error {
		err := x.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa)
		if err == nil && !slices.ContainsFunc(hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "odd")
		}) {
			err = fmt.Errorf("%+v", hpa.Status.Conditions)
		}
		return err
	})
	return errors.Join(err, x.Client.Delete(ctx, hpa))
}

// childPutBack edits a StatefulSet that is the operator's.
func (x *extended) childPutBack(ctx context.Context) error {
	if err := x.get(ctx); err != nil {
		return err
	}
	want := *x.set.Spec.Template.Spec.Replicas
	child := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: x.child(1), Namespace: x.Namespace}}
	if err := change(ctx, x.Cluster, child, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) }); err != nil {
		return err
	}
	err := until(ctx, "the edit to be put back", func(ctx context.Context) error {
		err := x.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
		if err == nil && *child.Spec.Replicas != want {
			err = fmt.Errorf("it has %d replicas", *child.Spec.Replicas)
		}
		return err
	})
	return errors.Join(err, x.serves(ctx, 1))
}

// probedActive has a command choose the active pods.
func probedActive(single bool, script string) extendedChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"keeper": {
			Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", script}}, PeriodSeconds: 1, TimeoutSeconds: 5, SingleActive: single}}
	}
}

func isActive(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelPodActive] == v1alpha1.PodActive }

// active waits until exactly these pods are.
func (x *extended) active(ctx context.Context, what string, want func(names []string) bool) (found []string, err error) {
	return found, until(ctx, what, func(ctx context.Context) error {
		pods, err := x.pods(ctx)
		found = nil
		for name, p := range pods {
			if isActive(&p) {
				found = append(found, name)
			}
		}
		if slices.Sort(found); err == nil && !want(found) {
			err = fmt.Errorf("active are %v", found)
		}
		return err
	})
}

func activePods(ctx context.Context, c *Cluster) error {
	x := c.extended("asked", 2, coexist, patiently, probedActive(false, "test -e /tmp/active"))
	if err := x.create(ctx); err != nil {
		return err
	}
	first, second := x.child(1)+"-0", x.child(1)+"-1"
	for _, act := range []struct {
		pod, script string
		active      []string
	}{
		{first, "touch /tmp/active", []string{first}},
		{second, "touch /tmp/active", []string{first, second}},
		{first, "rm /tmp/active", []string{second}},
	} {
		if _, err := x.shell(ctx, act.pod, act.script); err != nil {
			return err
		}
		_, err := x.active(ctx, fmt.Sprintf("%v to be active", act.active), func(names []string) bool { return slices.Equal(names, act.active) })
		if err != nil {
			return err
		}
	}
	return nil
}

// uidOf is the UID of the pod that has a name now; "" if there is none.
func (x *extended) uidOf(ctx context.Context, name string) types.UID {
	pods, err := x.pods(ctx)
	if err != nil {
		return ""
	}
	return pods[name].UID
}

// singleActive takes the label off one pod after another: by its own word, and by
// its end.
func singleActive(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	single := pods.hold(func(pods map[types.UID]*corev1.Pod) error {
		if n := count(pods, isActive); n > 1 {
			return fmt.Errorf("%d pods carry the label", n)
		}
		return nil
	})
	x := c.extended("single", 3, coexist, patiently, probedActive(true, "test ! -e /tmp/passive"))
	if err := x.create(ctx); err != nil {
		return err
	}
	anyone := func(names []string) bool { return len(names) == 1 }
	before, err := x.active(ctx, "a pod to be active", anyone)
	if err != nil {
		return err
	}
	for _, end := range []func(name string) error{
		func(name string) error {
			_, err := x.shell(ctx, name, "touch /tmp/passive")
			return err
		},
		func(name string) error {
			return c.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}})
		},
		func(string) error { return x.edit(ctx, inVersion("2")) },
	} {
		was, uid := before[0], x.uidOf(ctx, before[0])
		if err := end(was); err != nil {
			return err
		}
		another := func(names []string) bool {
			now := x.uidOf(ctx, was)
			return anyone(names) && (names[0] != was || now != "" && now != uid)
		}
		if before, err = x.active(ctx, "another pod than "+was+" to be active", another); err != nil {
			return err
		}
	}
	return errors.Join(x.serves(ctx, 2), single.kept())
}
