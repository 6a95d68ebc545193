package rejection

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quotaForm matches the API server's error about an exceeded quota. The error lists the exceeded
// resources with the amounts requested, used and limited.
var quotaForm = regexp.MustCompile(`exceeded quota: [^,]*, requested: (\S+), used: (\S+), limited: (\S+)`)

// IsFullWithout reports whether a quota would still reject an object after the pod is deleted. It
// returns false if err is not about a quota or cannot be parsed.
func IsFullWithout(err error, gone *corev1.Pod) bool {
	if err == nil || !IsFullQuota(err) {
		return false
	}
	parts := quotaForm.FindStringSubmatch(err.Error())
	if parts == nil {
		return false
	}
	requested, used, limited := amounts(parts[1]), amounts(parts[2]), amounts(parts[3])
	for name, more := range requested {
		limit, isLimited := limited[name]
		freed, supported := usageOf(gone, name)
		if !isLimited || !supported {
			continue
		}
		sum := used[name].DeepCopy()
		sum.Sub(freed)
		sum.Add(more)
		if sum.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// amounts parses a list such as "limits.cpu=2,pods=1".
func amounts(list string) map[string]resource.Quantity {
	all := map[string]resource.Quantity{}
	for item := range strings.SplitSeq(list, ",") {
		name, text, _ := strings.Cut(item, "=")
		if n, err := resource.ParseQuantity(text); err == nil {
			all[name] = n
		}
	}
	return all
}

// usageOf returns how much the pod uses of a quota's resource. supported is false if the resource is not
// supported here, and if the pod has init containers, pod-level resources or overhead.
func usageOf(pod *corev1.Pod, name string) (all resource.Quantity, supported bool) {
	if name == "pods" || name == "count/pods" {
		return resource.MustParse("1"), true
	}
	of := func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }
	if strings.HasPrefix(name, "limits.") {
		of = func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits }
	}
	counted := corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(name, "limits."), "requests."))
	switch counted {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
	default:
		return all, false
	}
	for i := range pod.Spec.Containers {
		all.Add(of(&pod.Spec.Containers[i])[counted])
	}
	return all, len(pod.Spec.InitContainers) == 0 && pod.Spec.Resources == nil && len(pod.Spec.Overhead) == 0
}
