package facts

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// InPlaceNote is the content of AnnotationInPlace.
type InPlaceNote struct {
	// Revision is the target revision, and Since when the change began.
	Revision string      `json:"revision"`
	Since    metav1.Time `json:"since"`
	// Earlier are the previous target revisions, the oldest first. The pod may have resources of
	// any of them.
	Earlier []string `json:"earlier,omitempty"`
}

// MaxEarlier is the max number of earlier revisions in a note. A member whose template changes
// more often during a change in place is recreated.
const MaxEarlier = 4

// Revisions returns all revisions in a note.
func (n *InPlaceNote) Revisions() []string {
	if n.Revision == "" {
		return nil
	}
	return append(slices.Clone(n.Earlier), n.Revision)
}

// IsChangedInPlace reports whether a pod has the annotation of a change in place.
func IsChangedInPlace(pod *corev1.Pod) bool {
	_, noted := pod.Annotations[v1alpha1.AnnotationInPlace]
	return noted
}

// InPlaceNoteOf parses the annotation. It returns false if there is none, or it is invalid.
func InPlaceNoteOf(pod *corev1.Pod) (note InPlaceNote, readable bool) {
	err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationInPlace]), &note)
	if err != nil || note.Revision == "" || len(note.Earlier) > MaxEarlier {
		return InPlaceNote{}, false
	}
	return note, true
}
