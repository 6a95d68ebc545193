package kit

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Idle is the end of a shell script that does nothing more. It only wakes up for signals: a process
// each second would take CPU time from the test.
const Idle = `
while true; do sleep 3600 & wait $!; done`

// PodCondition reports whether a condition of a pod is True.
func PodCondition(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// OnNodes requires one of these nodes by affinity.
func OnNodes(names ...string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}}}}}}}
	}
}

// Evict requests the eviction of a pod once. The UID precondition excludes other pods of the same
// name.
func (c *Cluster) Evict(ctx context.Context, pod *corev1.Pod) error {
	return c.Kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
}

// Exec runs a command in the container, and returns its output.
func (c *Cluster) Exec(ctx context.Context, pod types.NamespacedName, container string, argv ...string) string {
	out, err := c.TryExec(ctx, pod, container, argv...)
	c.ExpectWithOffset(1, err).To(plain{})
	return out
}

// TryExec is like exec, for commands that may fail.
func (c *Cluster) TryExec(ctx context.Context, pod types.NamespacedName, container string, argv ...string) (string, error) {
	request := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: argv, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	if err != nil {
		err = fmt.Errorf("%s in %s: %w: %s", strings.Join(argv, " "), pod.Name, err, errs.String())
	}
	return out.String(), err
}

// Claims returns the claims of the namespace, by name.
func (c *Cluster) Claims(ctx context.Context) map[string]corev1.PersistentVolumeClaim {
	var list corev1.PersistentVolumeClaimList
	c.List(ctx, &list, client.InNamespace(c.Namespace))
	found := map[string]corev1.PersistentVolumeClaim{}
	for _, p := range list.Items {
		found[p.Name] = p
	}
	return found
}

// ClaimUIDs returns the UIDs of the claims of the namespace, by name.
func (c *Cluster) ClaimUIDs(ctx context.Context) map[string]types.UID {
	found := map[string]types.UID{}
	for name, claim := range c.Claims(ctx) {
		found[name] = claim.UID
	}
	return found
}
