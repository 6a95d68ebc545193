package promises

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// toldWithin is how long a set may take to say what keeps its member from running.
const toldWithin = 2 * time.Minute

// hindrance is what keeps the member of a set from running, and what has to be said of it.
type hindrance struct {
	name, words string
	make        func(*v1alpha1.PodPolicy)
}

// hindrances are situations that a kubelet, a scheduler or an admission plugin causes.
func hindrances() []hindrance {
	const missing = "there-is-no-such"
	inMain := func(edit func(*corev1.Container)) func(*v1alpha1.PodPolicy) {
		return func(p *v1alpha1.PodPolicy) { edit(&p.Containers[0]) }
	}
	env := func(from corev1.EnvFromSource) func(*v1alpha1.PodPolicy) {
		return inMain(func(k *corev1.Container) { k.EnvFrom = []corev1.EnvFromSource{from} })
	}
	runs := func(words ...string) func(*v1alpha1.PodPolicy) {
		return inMain(func(k *corev1.Container) { k.Command = words })
	}
	ref := corev1.LocalObjectReference{Name: missing}
	volume := func(source corev1.VolumeSource) func(*v1alpha1.PodPolicy) {
		return func(p *v1alpha1.PodPolicy) {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "more", VolumeSource: source})
			p.Containers[0].VolumeMounts = append(p.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "more", MountPath: "/more"})
		}
	}
	return []hindrance{
		{"image", "cannot start: ImagePullBackOff: image localhost/there-is-no-such-image:1", inMain(func(k *corev1.Container) { k.Image = "localhost/there-is-no-such-image:1" })},
		{"config", `cannot start: CreateContainerConfigError: configmap "there-is-no-such" not found`, env(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}})},
		{"secret", `cannot start: CreateContainerConfigError: secret "there-is-no-such" not found`, env(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}})},
		{"mount", "cannot start: FailedMount: ", volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}})},
		{"command", "(StartError)", runs("/there-is-no-such-program")},
		{"crash", "cannot start: CrashLoopBackOff: container dummy ended with code 3", runs("/bin/sh", "-c", "exit 3")},
		{"init", "cannot start: CrashLoopBackOff: init container before ended with code 4", func(p *v1alpha1.PodPolicy) {
			p.InitContainers = append(p.InitContainers, corev1.Container{Name: "before", Image: p.Containers[0].Image, Command: []string{"/bin/sh", "-c", "exit 4"}})
		}},
		{"room", "cannot be scheduled: Unschedulable: 0/", inMain(func(k *corev1.Container) {
			k.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4000")}
		})},
		{"claim", "cannot be scheduled: Unschedulable: ", func(p *v1alpha1.PodPolicy) {
			volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: missing}})(p)
		}},
		{"quota", "cannot be created: exceeded quota: scarce", inMain(func(k *corev1.Container) {
			some := corev1.ResourceList{scarce: resource.MustParse("1")}
			k.Resources = corev1.ResourceRequirements{Requests: some, Limits: some}
		})},
		{"denied", `cannot be created: violates PodSecurity "baseline:`, inMain(func(k *corev1.Container) {
			k.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})},
		{"start", "cannot start: StartFails: seed failed with exit code 1", func(p *v1alpha1.PodPolicy) {
			p.Commands[v1alpha1.CommandSeed] = v1alpha1.Command{Command: []string{"/bin/sh", "-c", "exit 1"}, Timeout: "60s"}
		}},
	}
}

// tellsCauses has one member of each set kept from running by something else, all at the
// same time, and reads what their conditions say. What was kept runs when the cause goes.
func tellsCauses(ctx context.Context, c *Cluster) {
	c.narrow(ctx)
	all := hindrances()
	c.atOnce(len(all), func(own *Cluster, i int) {
		h := all[i]
		r := &replica{Cluster: own, set: own.dummy("w7-" + h.name)}
		good := r.set.Spec.Pod.DeepCopy()
		r.set.Spec.Replicas = new(int32(1))
		h.make(&r.set.Spec.Pod)
		own.during(fmt.Sprintf("W7 %s", h.name), func() {
			own.put(ctx, r.set)
			r.tells(ctx, h.words)
			r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod = *good })
			r.whole(ctx)
			r.isWell(ctx)
		})
	})
}

// tells waits until a set says so in conditions, with a command, and is Stalled.
func (r *replica) tells(ctx context.Context, words string) {
	r.EventuallyWithOffset(1, func(g Gomega) {
		g.Expect(r.Client.Get(ctx, client.ObjectKeyFromObject(r.set), r.set)).To(Succeed())
		c := meta.FindStatusCondition(r.set.Status.Conditions, v1alpha1.ConditionDegraded)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue), "%s", tellSet(r.set))
		g.Expect(c.Reason).To(Equal(v1alpha1.ReasonMembersCannotStart), "%s", c.Message)
		g.Expect(strings.Contains(c.Message, words)).To(BeTrue(), "%q should have %q", c.Message, words)
		g.Expect(c.Message).To(ContainSubstring("kubectl "))
		g.Expect(meta.IsStatusConditionTrue(r.set.Status.Conditions, "Stalled")).To(BeTrue(), "%s", tellSet(r.set))
	}).WithContext(ctx).WithTimeout(toldWithin).WithPolling(time.Second).Should(Succeed(), "waited for %q", words)
}

// isWell waits until a set says that nothing is wrong.
func (r *replica) isWell(ctx context.Context) {
	r.until(ctx, "Degraded to be False", func(ctx context.Context) {
		r.read(ctx, r.set)
		r.Expect(meta.IsStatusConditionFalse(r.set.Status.Conditions, v1alpha1.ConditionDegraded)).To(BeTrue(), "%s", tellSet(r.set))
	})
}
