package extendedstatefulset

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// inject gives a pod of ours that is being created the claims of its ordinal, in
// whatever version, and the host name too where versions take turns. It is asked
// about every pod with our label, so also about pods that somebody else gave it:
// those stay as they are, on a claim that never exists, and it says why.
//
// It opens no door: who may create a pod may name any claim of the namespace in
// it, and this names none of another namespace.
func inject(pod *corev1.Pod) (why string) {
	m, why := memberOf(pod)
	if why != "" {
		return why
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if unassigned(v, m.set) {
			v.PersistentVolumeClaim.ClaimName = claim.Name(v.Name, m.stem, strconv.Itoa(m.ordinal))
		}
	}
	if pod.Annotations[v1alpha1.AnnotationHostnames] == v1alpha1.True {
		pod.Spec.Hostname = m.hostname()
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, v1alpha1.LabelPodOrdinal, strconv.Itoa(m.ordinal))
	return ""
}

// unassigned tells whether a volume is of the claim of that set that never exists.
func unassigned(v *corev1.Volume, set string) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == set+v1alpha1.UnassignedClaim
}

// podMember is what a pod is, whatever its version.
type podMember struct {
	// set is the name of the ExtendedStatefulSet, and stem that with its zone.
	set, stem string
	ordinal   int
}

// hostname is the name of the pod that no version changes.
func (m podMember) hostname() string { return fmt.Sprintf("%s-%d", m.stem, m.ordinal) }

var zoneOf = regexp.MustCompile(`^-z(0|[1-9][0-9]*)$`)

// memberOf reads from a new pod which one it is, or says why it is none: its
// labels, its owner and its name must tell the same, as those do that the
// StatefulSet controller makes.
func memberOf(pod *corev1.Pod) (podMember, string) {
	m := podMember{set: pod.Labels[v1alpha1.LabelSet], stem: pod.Labels[v1alpha1.LabelStatefulSet]}
	zone, isStem := strings.CutPrefix(m.stem, m.set)
	if m.set == "" || !isStem || zone != "" && !zoneOf.MatchString(zone) {
		return m, fmt.Sprintf("label %s does not fit label %s", v1alpha1.LabelStatefulSet, v1alpha1.LabelSet)
	}
	owner := metav1.GetControllerOf(pod)
	child := fmt.Sprintf("%s-v%s", m.stem, pod.Labels[v1alpha1.LabelVersion])
	if owner == nil || owner.Kind != "StatefulSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() || owner.Name != child {
		return m, "its controller is not StatefulSet " + child
	}
	index, ok := pod.Labels[appsv1.PodIndexLabel]
	if !ok {
		return m, fmt.Sprintf("it has no label %s, which StatefulSets set from Kubernetes 1.28 on", appsv1.PodIndexLabel)
	}
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || pod.Name != child+"-"+strconv.Itoa(n) || strconv.Itoa(n) != index {
		return m, fmt.Sprintf("label %s does not fit its name", appsv1.PodIndexLabel)
	}
	m.ordinal = n
	return m, ""
}
