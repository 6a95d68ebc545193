package replicated

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// reportsObstacles has the member of each set kept from running, also by a command that fails.
func reportsObstacles(ctx context.Context, c *kit.Cluster) {
	failing := kit.Situation{Name: "start", Words: "StartFails: seed failed with exit code 1", Edit: func(*corev1.PodSpec) {}}
	c.ReportsAll(ctx, append(c.Situations(), failing), func(own *kit.Cluster, s kit.Situation) kit.Obstructed {
		r := &replica{Cluster: own, set: dummy(own, "w7-"+s.Name)}
		good := r.set.Spec.Pod.DeepCopy()
		r.set.Spec.Replicas = new(int32(1))
		inPolicy(own, &r.set.Spec.Pod, s.Edit)
		if s.Name == failing.Name {
			r.set.Spec.Pod.Commands[v1alpha1.CommandSeed] = v1alpha1.Command{Command: []string{"/bin/sh", "-c", "exit 1"}, Timeout: "60s"}
		}
		own.Put(ctx, r.set)
		return kit.Obstructed{Object: r.set, Correct: func(ctx context.Context) {
			r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod = *good })
			r.whole(ctx)
		}}
	})
}

// inPolicy edits a policy as if it were a pod's spec. Fields that a policy does not have are set in
// its template.
func inPolicy(c *kit.Cluster, policy *v1alpha1.PodPolicy, edit func(*corev1.PodSpec)) {
	pod := kit.Edited(corev1.PodSpec{Containers: policy.Containers, InitContainers: policy.InitContainers, Volumes: policy.Volumes}, edit)
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
		c.Check(err)
		policy.Template = &runtime.RawExtension{Raw: raw}
	}
}
