package children

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podresize"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// RevisionData is the content of a ControllerRevision: everything that the pod and the claims of a
// member are built from.
type RevisionData struct {
	Template             corev1.PodTemplateSpec         `json:"template"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	ServiceName          string                         `json:"serviceName,omitempty"`
}

// DataOfSpec returns the part of a spec that a revision records.
func DataOfSpec(s *v1alpha1.StatefulClusterSpec) RevisionData {
	return RevisionData{Template: s.Template, VolumeClaimTemplates: s.VolumeClaimTemplates, ServiceName: s.ServiceName}
}

// DataOf decodes a revision. It returns false if rev is nil or cannot be decoded.
func DataOf(rev *appsv1.ControllerRevision) (RevisionData, bool) {
	var data RevisionData
	if rev == nil || json.Unmarshal(rev.Data.Raw, &data) != nil {
		return RevisionData{}, false
	}
	return data, true
}

// BuildRevision builds the revision of the spec, with a number above those of the others.
func BuildRevision(s spec.Settings, others []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	return HashedAgain(s, others, 0)
}

// HashedAgain builds the revision of the spec with a different hash in its name, because n other
// templates have the same hash.
func HashedAgain(s spec.Settings, others []*appsv1.ControllerRevision, n int32) *appsv1.ControllerRevision {
	rev, err := revision.New(s.Set.Name, string(s.Set.UID), DataOfSpec(&s.Set.Spec),
		ptr.Deref(s.Set.Status.CollisionCount, 0)+n, others)
	if err != nil { // cannot fail: the spec was decoded from JSON
		panic(err)
	}
	rev.Namespace = s.Set.Namespace
	rev.Labels = ClusterLabels(s)
	rev.OwnerReferences = []metav1.OwnerReference{Owner(s)}
	return rev
}

// NeedsPodChange reports whether the pod itself changes, not only its claims.
func NeedsPodChange(from, to RevisionData) bool {
	return from.ServiceName != to.ServiceName || !apiequality.Semantic.DeepEqual(from.Template, to.Template)
}

// OnlyInPlaceFields reports whether two revisions differ only in fields that can be changed in a
// running pod: images and resources of its containers, labels and annotations. Its hostname and
// subdomain cannot be changed.
func OnlyInPlaceFields(from, to RevisionData) bool {
	return from.ServiceName == to.ServiceName && apiequality.Semantic.DeepEqual(withoutInPlaceFields(from.Template), withoutInPlaceFields(to.Template)) &&
		podresize.KeepsResources(from.Template.Spec.Containers, to.Template.Spec.Containers)
}

// withoutInPlaceFields returns the spec of the pods without the fields that can be changed in place.
func withoutInPlaceFields(t corev1.PodTemplateSpec) corev1.PodSpec {
	s := *t.Spec.DeepCopy()
	for i := range s.Containers {
		s.Containers[i].Image = ""
		s.Containers[i].Resources = corev1.ResourceRequirements{}
	}
	return s
}

// ChangesResources reports whether the resources of a container differ. Both revisions must have the
// same containers.
func ChangesResources(from, to RevisionData) bool {
	for i := range to.Template.Spec.Containers {
		if !apiequality.Semantic.DeepEqual(from.Template.Spec.Containers[i].Resources, to.Template.Spec.Containers[i].Resources) {
			return true
		}
	}
	return false
}
