package statefulcluster

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// diary is a program that writes its pod's name to its volume at each start. It refuses to start on
// a volume with another name.
const diary = `
owner=/data/owner
if [ -e $owner ] && [ "$(cat $owner)" != "$POD" ]; then echo "volume of $(cat $owner), not of $POD"; exit 1; fi
echo $POD > $owner
date >> /data/starts
trap 'exit 0' TERM` + kit.Idle

// newSet builds a StatefulCluster whose members write a diary to a claim.
func newSet(c *kit.Cluster, replicas int32, change ...func(*v1alpha1.StatefulCluster)) *v1alpha1.StatefulCluster {
	labels := map[string]string{"app": "diary"}
	set := &v1alpha1.StatefulCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "diary", Namespace: c.Namespace},
		Spec: v1alpha1.StatefulClusterSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(2)),
					Containers: []corev1.Container{{
						Name: "diary", Image: c.Image, Command: []string{"/bin/sh", "-c", diary},
						Env: []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{
							FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
						VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}},
					}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}},
				},
			}},
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// members returns the set's pods by name, except terminating ones.
func members(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	all := allPods(ctx, c, set)
	for name, p := range all {
		if p.DeletionTimestamp != nil {
			delete(all, name)
		}
	}
	return all
}

func allPods(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	var list corev1.PodList
	c.List(ctx, &list, client.InNamespace(set.Namespace))
	found := map[string]corev1.Pod{}
	for _, p := range list.Items {
		if metav1.IsControlledBy(&p, set) {
			found[p.Name] = p
		}
	}
	return found
}

// settle waits until the status reports that no operation is in progress and all members are Ready,
// and returns them.
func settle(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	var live map[string]corev1.Pod
	c.Until(ctx, "the set to settle", func(ctx context.Context) {
		c.Read(ctx, set)
		s, want := set.Status, *set.Spec.Replicas
		c.Expect(s.ObservedGeneration != set.Generation || s.AvailableReplicas != want || s.LostReplicas != 0 ||
			!meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)).To(BeFalse(), "generation %d, status %s", set.Generation, describe(s))
		live = members(ctx, c, set)
		c.Expect(len(live)).To(Equal(int(want)), "the set has %d pods and wants %d", len(live), want)
	})
	return live
}

// describe formats a status as one line.
func describe(s v1alpha1.StatefulClusterStatus) string {
	var conditions []string
	for _, c := range s.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return fmt.Sprintf("of generation %d: %d replicas, %d ready, %d lost; %s",
		s.ObservedGeneration, s.Replicas, s.ReadyReplicas, s.LostReplicas, strings.Join(conditions, "; "))
}

// create creates a set and waits until it has settled.
func create(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	c.Put(ctx, set)
	return settle(ctx, c, set)
}

func edit(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster, f func(*v1alpha1.StatefulCluster)) {
	kit.Change(ctx, c, set, f)
}

// whole checks that every member has its own claim, and that every other claim has a label with the
// reason why it is kept.
func whole(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) {
	c.Until(ctx, "pods and claims to match", func(ctx context.Context) {
		live := members(ctx, c, set)
		all := c.Claims(ctx)
		for name := range live {
			want := set.Name + "-data-" + strings.TrimPrefix(name, set.Name+"-")
			claim, ok := all[want]
			c.Expect(ok).To(BeTrue(), "%s lacks its claim %s", name, want)
			c.Expect(claim.Labels[v1alpha1.LabelRetained]).To(BeEmpty(), "%s lacks its claim %s", name, want)
			delete(all, want)
		}
		for name, claim := range all {
			c.Expect(claim.Labels[v1alpha1.LabelRetained] == "" && claim.DeletionTimestamp == nil).To(BeFalse(), "claim %s has no member and no reason", name)
		}
	})
}

// one returns any member.
func one(live map[string]corev1.Pod) *corev1.Pod {
	for _, p := range live {
		return &p
	}
	return nil
}

// replaced waits until a member is deleted and the set has settled without it.
func replaced(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster, name string) {
	c.Until(ctx, name+" to be replaced", func(ctx context.Context) {
		live := members(ctx, c, set)
		_, still := live[name]
		c.Expect(still).To(BeFalse(), "%s is still a member", name)
	})
	live := settle(ctx, c, set)
	_, back := live[name]
	c.Expect(back).To(BeFalse(), "%s returned", name)
}

// retained waits until the label of a pod's claim has the reason for which it was set aside.
func retained(ctx context.Context, c *kit.Cluster, pod *corev1.Pod, why string) {
	name := "diary-data-" + pod.Labels[v1alpha1.LabelMember]
	c.Until(ctx, "claim "+name+" to be set aside", func(ctx context.Context) {
		all := c.Claims(ctx)
		c.Expect(all[name].Labels[v1alpha1.LabelRetained]).To(Equal(why), "its label is %q", all[name].Labels[v1alpha1.LabelRetained])
	})
}

// degraded waits until the set's Degraded condition has that reason.
func degraded(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster, reason string) {
	c.Until(ctx, "condition Degraded with reason "+reason, func(ctx context.Context) {
		c.Read(ctx, set)
		found := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
		c.Expect(found).NotTo(BeNil(), "%s", describe(set.Status))
		c.Expect(found.Reason).To(Equal(reason), "%s", describe(set.Status))
	})
}

// spread returns constraints that prefer different nodes for the members.
func spread(s *v1alpha1.StatefulCluster) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: s.Spec.Selector}}
}

// apart keeps the members of a set on different nodes.
func apart(s *v1alpha1.StatefulCluster) {
	s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	s.Spec.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
}

// samePods returns an error if a pod is missing, recreated or terminating.
func samePods(before, now map[string]corev1.Pod) error {
	for name, old := range before {
		if is, there := now[name]; !there || is.UID != old.UID || is.DeletionTimestamp != nil {
			return fmt.Errorf("%s is not the former pod", name)
		}
	}
	return nil
}

func sameNames(before, now map[string]corev1.Pod) error {
	for name := range now {
		if _, there := before[name]; !there {
			return fmt.Errorf("%s is a new member", name)
		}
	}
	if len(now) < len(before) {
		return fmt.Errorf("%d of %d members exist", len(now), len(before))
	}
	return nil
}
