package promises

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// replicatedReports has the member of each set kept from running, also by a command that fails.
func replicatedReports(ctx context.Context, c *Cluster) {
	failing := situation{name: "start", words: "StartFails: seed failed with exit code 1", edit: func(*corev1.PodSpec) {}}
	c.reportsAll(ctx, append(c.situations(), failing), func(own *Cluster, s situation) kept {
		r := &replica{Cluster: own, set: own.dummy("w7-" + s.name)}
		good := r.set.Spec.Pod.DeepCopy()
		r.set.Spec.Replicas = new(int32(1))
		own.inPolicy(&r.set.Spec.Pod, s.edit)
		if s.name == failing.name {
			r.set.Spec.Pod.Commands[v1alpha1.CommandSeed] = v1alpha1.Command{Command: []string{"/bin/sh", "-c", "exit 1"}, Timeout: "60s"}
		}
		own.put(ctx, r.set)
		return kept{object: r.set, correct: func(ctx context.Context) {
			r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod = *good })
			r.whole(ctx)
		}}
	})
}

// inPolicy edits a policy as if it were a pod's spec. Fields that a policy does not have are set in
// its template.
func (c *Cluster) inPolicy(policy *v1alpha1.PodPolicy, edit func(*corev1.PodSpec)) {
	pod := edited(corev1.PodSpec{Containers: policy.Containers, InitContainers: policy.InitContainers, Volumes: policy.Volumes}, edit)
	policy.Containers, policy.InitContainers, policy.Volumes = pod.Containers, pod.InitContainers, pod.Volumes
	template := map[string]any{}
	if pod.RuntimeClassName != nil {
		template["runtimeClassName"] = *pod.RuntimeClassName
	}
	if pod.PriorityClassName != "" {
		template["priorityClassName"] = pod.PriorityClassName
	}
	if pod.ServiceAccountName != "" {
		template["serviceAccountName"] = pod.ServiceAccountName
	}
	if len(template) > 0 {
		raw, err := json.Marshal(map[string]any{"spec": template})
		c.check(err)
		policy.Template = &runtime.RawExtension{Raw: raw}
	}
}
