package kit

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Situation keeps a pod from running. Condition Degraded reports it with these words.
type Situation struct {
	Name, Words string
	Edit        func(*corev1.PodSpec)
}

// missing is the name of an object that a situation refers to and that does not exist.
const missing = "there-is-no-such"

// Situations returns reasons for which a kubelet, a scheduler or an admission plugin keeps a pod
// from running. The image of the cluster has a shell. Narrow prepares the namespace for them.
func (c *Cluster) Situations() []Situation {
	first := func(edit func(*corev1.Container)) func(*corev1.PodSpec) {
		return func(pod *corev1.PodSpec) { edit(&pod.Containers[0]) }
	}
	env := func(from corev1.EnvFromSource) func(*corev1.PodSpec) {
		return first(func(k *corev1.Container) { k.EnvFrom = []corev1.EnvFromSource{from} })
	}
	runs := func(command ...string) func(*corev1.PodSpec) {
		return first(func(k *corev1.Container) { k.Image, k.Command, k.Args = c.Image, command, nil })
	}
	volume := func(source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(pod *corev1.PodSpec) {
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "more", VolumeSource: source})
			mounts := &pod.Containers[0].VolumeMounts
			*mounts = append(*mounts, corev1.VolumeMount{Name: "more", MountPath: "/more"})
		}
	}
	needs := func(name corev1.ResourceName, requests, limits string) func(*corev1.PodSpec) {
		return first(func(k *corev1.Container) {
			k.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(requests)}}
			if limits != "" {
				k.Resources.Limits = corev1.ResourceList{name: resource.MustParse(limits)}
			}
		})
	}
	ref := corev1.LocalObjectReference{Name: missing}
	return []Situation{
		{"image", "ImagePullBackOff: image localhost/there-is-no-such-image:1", first(func(k *corev1.Container) { k.Image = "localhost/there-is-no-such-image:1" })},
		{"name", "InvalidImageName: ", first(func(k *corev1.Container) { k.Image = "localhost/Capital:1" })},
		{"policy", "ErrImageNeverPull: image localhost/there-is-no-such-image:1", first(func(k *corev1.Container) {
			k.Image, k.ImagePullPolicy = "localhost/there-is-no-such-image:1", corev1.PullNever
		})},
		{"config", `CreateContainerConfigError: configmap "there-is-no-such" not found`, env(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}})},
		{"secret", `CreateContainerConfigError: secret "there-is-no-such" not found`, env(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}})},
		{"root", "CreateContainerConfigError: container has runAsNonRoot and image will run as root", first(func(k *corev1.Container) {
			k.Image, k.SecurityContext = c.Image, &corev1.SecurityContext{RunAsNonRoot: new(true)}
		})},
		{"mount", "FailedMount: ", volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}})},
		{"command", "CrashLoopBackOff: container ", runs("/there-is-no-such-program")},
		{"crash", "ended with code 3", runs("/bin/sh", "-c", "exit 3")},
		{"memory", "(OOMKilled)", func(pod *corev1.PodSpec) {
			runs("tail", "/dev/zero")(pod)
			needs(corev1.ResourceMemory, "16Mi", "16Mi")(pod)
		}},
		{"init", "CrashLoopBackOff: init container before ended with code 4", func(pod *corev1.PodSpec) {
			pod.InitContainers = append(pod.InitContainers, corev1.Container{Name: "before", Image: c.Image, Command: []string{"/bin/sh", "-c", "exit 4"}})
		}},
		{"room", "Unschedulable: 0/", needs(corev1.ResourceCPU, "4000", "")},
		{"claim", "Unschedulable: ", volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: missing}})},
		{"quota", "exceeded quota: scarce", needs(Scarce, "1", "1")},
		{"denied", `violates PodSecurity "baseline:`, first(func(k *corev1.Container) {
			k.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})},
		{"runtime", `RuntimeClass "there-is-no-such" not found`, func(pod *corev1.PodSpec) { pod.RuntimeClassName = new(missing) }},
		{"priority", "no PriorityClass with name there-is-no-such was found", func(pod *corev1.PodSpec) { pod.PriorityClassName = missing }},
		{"account", `serviceaccount "there-is-no-such" not found`, func(pod *corev1.PodSpec) { pod.ServiceAccountName = missing }},
	}
}

// Obstructed is an object whose pod a situation keeps from running.
type Obstructed struct {
	Object client.Object
	// Correct removes what keeps the pod from running, and waits until it runs.
	Correct func(ctx context.Context)
}

// ReportsAll creates an object for each situation, all at the same time, and checks what their
// conditions report. It then corrects each of them, and waits until nothing is reported.
func (c *Cluster) ReportsAll(ctx context.Context, all []Situation, create func(own *Cluster, s Situation) Obstructed) {
	c.Narrow(ctx)
	took := make([]time.Duration, len(all))
	c.AtOnce(len(all), func(own *Cluster, i int) {
		own.During(fmt.Sprintf("situation %q", all[i].Name), func() {
			k, began := create(own, all[i]), time.Now()
			own.reports(ctx, k.Object, all[i].Words)
			took[i] = time.Since(began)
			k.Correct(ctx)
			own.ReportsNothing(ctx, k.Object)
		})
	})
	c.Log("the slowest of %d situations was reported after %s", len(all), slices.Max(took).Round(time.Second))
}

// reports waits until condition Degraded of an object is True and has these words and a command,
// Stalled is True, and kstatus computes Failed.
func (c *Cluster) reports(ctx context.Context, object client.Object, words string) {
	c.Until(ctx, fmt.Sprintf("%s to report %q", object.GetName(), words), func(ctx context.Context) {
		conditions, verdict := c.conditions(ctx, object)
		degraded := conditions["Degraded"]
		c.Expect(degraded).To(And(HavePrefix("True "), ContainSubstring(words), ContainSubstring("kubectl ")), "%v", conditions)
		c.Expect(conditions["Stalled"]).To(HavePrefix("True "), "%v", conditions)
		c.Expect(verdict).To(Equal(status.FailedStatus))
	})
}

// ReportsNothing waits until no problem of an object is reported, and kstatus computes Current.
func (c *Cluster) ReportsNothing(ctx context.Context, object client.Object) {
	c.Until(ctx, object.GetName()+" to report no problem", func(ctx context.Context) {
		conditions, verdict := c.conditions(ctx, object)
		c.Expect(conditions["Degraded"]).To(HavePrefix("False "), "%v", conditions)
		c.Expect(conditions["Stalled"]).NotTo(HavePrefix("True "), "%v", conditions)
		c.Expect(verdict).To(Equal(status.CurrentStatus), "%v", conditions)
	})
}

// conditions returns the conditions of an object of any kind, each as a line, and the status that
// kstatus computes of it.
func (c *Cluster) conditions(ctx context.Context, object client.Object) (lines map[string]string, verdict status.Status) {
	gvk, err := c.Client.GroupVersionKindFor(object)
	c.Check(err)
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(gvk)
	c.Check(c.Client.Get(ctx, client.ObjectKeyFromObject(object), now))
	var read struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	c.Check(runtime.DefaultUnstructuredConverter.FromUnstructured(now.Object, &read))
	lines = map[string]string{}
	for _, condition := range read.Status.Conditions {
		lines[condition.Type] = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
	computed, err := status.Compute(now)
	c.Check(err)
	return lines, computed.Status
}

// Edited returns a copy of a pod's spec that was edited.
func Edited(pod corev1.PodSpec, edit func(*corev1.PodSpec)) corev1.PodSpec {
	into := pod.DeepCopy()
	edit(into)
	return *into
}

// Narrow gives the namespace rules that some revisions violate: no host network, and a quota of 0
// for the scarce resource.
func (c *Cluster) Narrow(ctx context.Context) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	Change(ctx, c, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "baseline" })
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "scarce", Namespace: c.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.DefaultResourceRequestsPrefix + Scarce: resource.MustParse("0")}}}
	c.Put(ctx, quota)
	c.Until(ctx, "the quota to be enforced", func(ctx context.Context) {
		some := corev1.ResourceList{Scarce: resource.MustParse("1")}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks", Namespace: c.Namespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "asks", Image: c.Image, Resources: corev1.ResourceRequirements{Requests: some, Limits: some}}}}}
		err := c.Client.Create(ctx, pod, client.DryRunAll)
		c.Expect(err).To(MatchError(ContainSubstring("exceeded quota")), "a pod that exceeds the quota should be refused")
	})
}

// Scarce is a resource for which the quota of the namespace is 0.
const Scarce = corev1.ResourceName("example.com/scarce")
