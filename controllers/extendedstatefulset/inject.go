package extendedstatefulset

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// change is an operation of a JSON patch.
type change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// inject returns the patch that gives a new pod the claims of its ordinal, which are the same in all
// versions. With handover PerOrdinal it also sets the host name. The webhook receives every pod with
// the operator's label, including pods that another client labeled. Such a pod gets no patch and stays
// on a claim that never exists, and inject returns the reason. inject grants no additional access: a
// user who may create a pod may use any claim of the namespace, and inject never uses a claim of
// another namespace.
func inject(pod *incomingPod) (changes []change, why string) {
	m, why := memberOf(pod)
	if why != "" {
		return nil, why
	}
	if mounts := pod.mounts(m); pod.more || len(mounts) > maxClaimsOf {
		return nil, fmt.Sprintf("more than %d volumes use claim %s", maxClaimsOf, m.set+v1alpha1.UnassignedClaim)
	}
	for _, v := range pod.mounts(m) {
		changes = append(changes, change{"replace", fmt.Sprintf("/spec/volumes/%d/persistentVolumeClaim/claimName", v.at), m.claim(v.name)})
	}
	if pod.Annotations[v1alpha1.AnnotationHostnames] == v1alpha1.True && pod.hostname != m.hostname() {
		changes = append(changes, change{"add", "/spec/hostname", m.hostname()})
	}
	if ordinal := strconv.Itoa(m.ordinal); pod.Labels[v1alpha1.LabelPodOrdinal] != ordinal {
		changes = append(changes, change{"add", "/metadata/labels/" + strings.ReplaceAll(v1alpha1.LabelPodOrdinal, "/", "~1"), ordinal})
	}
	return changes, ""
}

// mounts returns the volumes that get the claims of a member.
func (n *incomingPod) mounts(m podMember) []unassignedVolume {
	return slices.DeleteFunc(slices.Clone(n.waiting), func(v unassignedVolume) bool { return v.claim != m.set+v1alpha1.UnassignedClaim })
}

// podMember identifies a pod independent of its version.
type podMember struct {
	// set is the name of the ExtendedStatefulSet. stem is that name with the zone.
	set, stem string
	ordinal   int
}

// hostname returns the host name, which is the same in all versions.
func (m podMember) hostname() string { return fmt.Sprintf("%s-%d", m.stem, m.ordinal) }

// claim returns the name of the member's claim of a template.
func (m podMember) claim(template string) string {
	return claim.Name(template, m.stem, strconv.Itoa(m.ordinal))
}

var zonePart = regexp.MustCompile(`^-z(0|[1-9][0-9]*)$`)

// memberOf returns the identity of a pod, or the reason why it has none. Labels, owner and name of the
// pod must agree, as in pods that the StatefulSet controller creates.
func memberOf(pod metav1.Object) (podMember, string) {
	labels := pod.GetLabels()
	m := podMember{set: labels[v1alpha1.LabelSet], stem: labels[v1alpha1.LabelStatefulSet]}
	if !m.isStem() {
		return m, fmt.Sprintf("label %s does not match label %s", v1alpha1.LabelStatefulSet, v1alpha1.LabelSet)
	}
	child := fmt.Sprintf("%s-v%s", m.stem, labels[v1alpha1.LabelVersion])
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
	m.ordinal = n
	return m, ""
}

// isStem reports whether the stem is the name of the set, with or without a zone.
func (m podMember) isStem() bool {
	zone, begins := strings.CutPrefix(m.stem, m.set)
	if m.set == "" || !begins {
		return false
	}
	return zone == "" || zonePart.MatchString(zone)
}
