package children

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// Change is an operation of a JSON patch.
type Change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Inject returns the patch that gives a new pod the claims of its ordinal, which are the same in all
// versions. With handover PerOrdinal it also sets the host name.
//
// The webhook receives every pod with the operator's label, including pods that another client labeled.
// For such a pod Inject returns no patch and the reason, and the pod waits for a claim that never
// exists. A patch grants no additional access: a user who may create a pod may use any claim of the
// namespace, and a patch contains no claim of another namespace.
func Inject(pod *IncomingPod) (changes []Change, why string) {
	m, why := MemberOf(pod)
	if why != "" {
		return nil, why
	}
	if mounts := pod.Mounts(m); pod.More || len(mounts) > spec.MaxClaimsOf {
		return nil, fmt.Sprintf("more than %d volumes use claim %s", spec.MaxClaimsOf, m.Set+v1alpha1.UnassignedClaim)
	}
	for _, v := range pod.Mounts(m) {
		changes = append(changes, Change{"replace", fmt.Sprintf("/spec/volumes/%d/persistentVolumeClaim/claimName", v.At), m.Claim(v.Name)})
	}
	if pod.Annotations[v1alpha1.AnnotationHostnames] == v1alpha1.True && pod.Hostname != m.hostname() {
		changes = append(changes, Change{"add", "/spec/hostname", m.hostname()})
	}
	if ordinal := strconv.Itoa(m.Ordinal); pod.Labels[v1alpha1.LabelPodOrdinal] != ordinal {
		changes = append(changes, Change{"add", "/metadata/labels/" + strings.ReplaceAll(v1alpha1.LabelPodOrdinal, "/", "~1"), ordinal})
	}
	return changes, ""
}

// Mounts returns the volumes that get the claims of a member.
func (n *IncomingPod) Mounts(m podMember) []UnassignedVolume {
	return slices.DeleteFunc(slices.Clone(n.Waiting), func(v UnassignedVolume) bool { return v.Claim != m.Set+v1alpha1.UnassignedClaim })
}

// podMember identifies a pod independent of its version: the pods of an ordinal in all versions have
// the same podMember.
type podMember struct {
	// Set is the name of the ExtendedStatefulSet.
	Set string
	// Stem is the name of the zone's StatefulSets without the version.
	Stem    string
	Ordinal int
}

// hostname returns the host name, which is the same in all versions.
func (m podMember) hostname() string { return fmt.Sprintf("%s-%d", m.Stem, m.Ordinal) }

// Claim returns the name of the member's claim of a template.
func (m podMember) Claim(template string) string {
	return claimName(template, m.Stem, m.Ordinal)
}

// zonePart matches the part of a stem that Zone.Stem adds to the name of the set.
var zonePart = regexp.MustCompile(`^-z(0|[1-9][0-9]*)$`)

// MemberOf returns the identity of a pod, or the reason why it has none. Labels, owner and name of the
// pod must agree, as in pods that the StatefulSet controller creates.
func MemberOf(pod metav1.Object) (podMember, string) {
	labels := pod.GetLabels()
	m := podMember{Set: labels[v1alpha1.LabelSet], Stem: labels[v1alpha1.LabelStatefulSet]}
	if !m.isStem() {
		return m, fmt.Sprintf("label %s does not match label %s", v1alpha1.LabelStatefulSet, v1alpha1.LabelSet)
	}
	child := fmt.Sprintf("%s-v%s", m.Stem, labels[v1alpha1.LabelVersion])
	if !owned.IsStatefulSet(metav1.GetControllerOf(pod), child) {
		return m, "its controller is not StatefulSet " + child
	}
	index, ok := labels[appsv1.PodIndexLabel]
	if !ok {
		return m, fmt.Sprintf("label %s is missing; StatefulSets set it since Kubernetes 1.28", appsv1.PodIndexLabel)
	}
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || pod.GetName() != child+"-"+strconv.Itoa(n) || strconv.Itoa(n) != index {
		return m, fmt.Sprintf("label %s does not match the pod name", appsv1.PodIndexLabel)
	}
	m.Ordinal = n
	return m, ""
}

// isStem reports whether the stem is the name of the set, with or without a zone.
func (m podMember) isStem() bool {
	zone, begins := strings.CutPrefix(m.Stem, m.Set)
	if m.Set == "" || !begins {
		return false
	}
	return zone == "" || zonePart.MatchString(zone)
}
