package children

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// EditedGeneration marks a StatefulSet that another client edited while its content was unknown. The
// edit is undone when the content is known again.
const EditedGeneration = 0

// Applied is the value of annotation applied on a StatefulSet: the hash of the content that the operator
// wrote last, and the generation that the write produced. If the StatefulSet has a higher generation,
// another client has edited it since. If the hash of the wanted content differs, the template has
// changed since. Both are detected without a comparison of fields, because the API server sets defaults.
type Applied struct {
	Hash       string
	Generation int64
}

func (a Applied) String() string { return a.Hash + "/" + strconv.FormatInt(a.Generation, 10) }

// AppliedOf returns the value of annotation applied; zero if it is missing.
func AppliedOf(set *appsv1.StatefulSet) Applied {
	hash, generation, _ := strings.Cut(set.Annotations[v1alpha1.AnnotationApplied], "/")
	n, _ := strconv.ParseInt(generation, 10, 64)
	return Applied{hash, n}
}

// lazy are pod annotations whose change alone restarts no pods. They are written with the next change
// that restarts pods anyway.
var lazy = []string{v1alpha1.AnnotationZones, v1alpha1.AnnotationHostnames}

// KeepLazy sets the lazy annotations of next to the values of have.
func KeepLazy(next, have *corev1.PodTemplateSpec) {
	for _, key := range lazy {
		if value, ok := have.Annotations[key]; ok {
			next.Annotations[key] = value
		} else {
			delete(next.Annotations, key)
		}
	}
}

// ContentHash returns a hash of the content of a StatefulSet without its ordinals.
func ContentHash(set *appsv1.StatefulSet) string {
	spec := set.Spec.DeepCopy()
	spec.Replicas, spec.Ordinals = nil, nil
	for _, key := range lazy {
		delete(spec.Template.Annotations, key)
	}
	digest, err := revision.Digest(spec)
	if err != nil {
		return ""
	}
	return digest[:16]
}
