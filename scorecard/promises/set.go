package promises

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
)

// idle is the end of a shell script that does nothing more. It only wakes up for signals: a process
// each second would take CPU time from the test.
const idle = `
while true; do sleep 3600 & wait $!; done`

// diary is a program that writes its pod's name to its volume at each start. It refuses to start on
// a volume with another name.
const diary = `
owner=/data/owner
if [ -e $owner ] && [ "$(cat $owner)" != "$POD" ]; then echo "volume of $(cat $owner), not of $POD"; exit 1; fi
echo $POD > $owner
date >> /data/starts
trap 'exit 0' TERM` + idle

// newSet builds a StatefulCluster whose members write a diary to a claim.
func (c *Cluster) newSet(replicas int32, change ...func(*v1alpha1.StatefulCluster)) *v1alpha1.StatefulCluster {
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
func (c *Cluster) members(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	all := c.allPods(ctx, set)
	for name, p := range all {
		if p.DeletionTimestamp != nil {
			delete(all, name)
		}
	}
	return all
}

func (c *Cluster) allPods(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	var list corev1.PodList
	c.list(ctx, &list, client.InNamespace(set.Namespace))
	found := map[string]corev1.Pod{}
	for _, p := range list.Items {
		if metav1.IsControlledBy(&p, set) {
			found[p.Name] = p
		}
	}
	return found
}

// claims returns the claims of the namespace, by name.
func (c *Cluster) claims(ctx context.Context) map[string]corev1.PersistentVolumeClaim {
	var list corev1.PersistentVolumeClaimList
	c.list(ctx, &list, client.InNamespace(c.Namespace))
	found := map[string]corev1.PersistentVolumeClaim{}
	for _, p := range list.Items {
		found[p.Name] = p
	}
	return found
}

// settle waits until the status reports that no operation is in progress and all members are Ready,
// and returns them.
func (c *Cluster) settle(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	var live map[string]corev1.Pod
	c.until(ctx, "the set to settle", func(ctx context.Context) {
		c.read(ctx, set)
		s, want := set.Status, *set.Spec.Replicas
		c.Expect(s.ObservedGeneration != set.Generation || s.AvailableReplicas != want || s.LostReplicas != 0 ||
			!meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)).To(BeFalse(), "generation %d, status %s", set.Generation, brief(s))
		live = c.members(ctx, set)
		c.Expect(len(live)).To(Equal(int(want)), "the set has %d pods and wants %d", len(live), want)
	})
	return live
}

// brief formats a status as one line.
func brief(s v1alpha1.StatefulClusterStatus) string {
	var conditions []string
	for _, c := range s.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return fmt.Sprintf("of generation %d: %d replicas, %d ready, %d lost; %s",
		s.ObservedGeneration, s.Replicas, s.ReadyReplicas, s.LostReplicas, strings.Join(conditions, "; "))
}

// create creates a set and waits until it has settled.
func (c *Cluster) create(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	c.put(ctx, set)
	return c.settle(ctx, set)
}

func (c *Cluster) edit(ctx context.Context, set *v1alpha1.StatefulCluster, f func(*v1alpha1.StatefulCluster)) {
	change(ctx, c, set, f)
}

// whole checks that every member has its own claim, and that every other claim has a label with the
// reason why it is kept.
func (c *Cluster) whole(ctx context.Context, set *v1alpha1.StatefulCluster) {
	c.until(ctx, "pods and claims to match", func(ctx context.Context) {
		live := c.members(ctx, set)
		all := c.claims(ctx)
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
