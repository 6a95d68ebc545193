package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
)

// What comes out of a backup has no status: nothing of the record is left. Who is newest the
// members say themselves; the two things that they cannot say are found here.

// wasRestored reports whether an object comes out of a backup.
func wasRestored(object metav1.Object) bool { return backup.Of(object) != "" }

// restore is about a set whose record may be lost.
type restore struct{ *world }

// epochBefore is the epoch above which the next one has to be, whatever the record says. The
// epochs of the set that was are not known. They were counted up from 1, or from the time of
// an earlier restore, so the seconds since 1970 are more. Commands that are told no epoch
// need none of this.
func (w restore) epochBefore() int64 {
	if w.set.Status.Epoch > 0 || !wasRestored(w.set) || !w.tellsEpoch() {
		return 0
	}
	return w.now.Unix()
}

// tellsEpoch reports whether any command is told the epoch.
func (w restore) tellsEpoch() bool {
	isTold := func(word string) bool { return strings.Contains(word, epochWord) }
	for _, command := range w.set.Spec.Pod.Commands {
		if slices.ContainsFunc(command.Command, isTold) {
			return true
		}
	}
	return false
}

// isUnknownStop reports whether the set is stopped, has claims, and does not know how many
// members it had: it was restored so, or made so on the claims of a set that had its name.
func (w restore) isUnknownStop() bool {
	if w.invalid != "" || w.deleting() || *w.set.Spec.Replicas > 0 {
		return false
	}
	return w.set.Status.RestoreReplicas == 0 && len(w.set.Spec.Pod.VolumeClaimTemplates) > 0
}

// copiesIn is how many members a set needs so that each of the claims is one's that were
// there before it.
func (w restore) copiesIn(claims []corev1.PersistentVolumeClaim) int32 {
	most := 0
	for i := range claims {
		if w.set.CreationTimestamp.Before(&claims[i].CreationTimestamp) && !wasRestored(&claims[i]) {
			continue // it was made for the set, which has not run since
		}
		for _, t := range w.set.Spec.Pod.VolumeClaimTemplates {
			pod, _ := podOfClaim(&t, claims[i].Name)
			ordinal, isMember := ordinalOf(w.set, pod)
			if isMember && ordinal < maxReplicas {
				most = max(most, ordinal+1)
			}
		}
	}
	return int32(most)
}

// wasChild reports whether an object without an owner was a child of a set once, by its
// labels: it was restored, or the set was deleted without it.
func wasChild(object metav1.Object) bool {
	return metav1.GetControllerOf(object) == nil && object.GetLabels()[v1alpha1.LabelManaged] == v1alpha1.True
}

// whoseIsIt says what to do about an object that has the name of a child and is not ours.
func whoseIsIt(described, namespace string, child metav1.Object) string {
	if !wasChild(child) {
		return described + " belongs to another object and is left alone; rename or delete it"
	}
	return fmt.Sprintf("%s has no owner, as one that was restored from a backup, and is left alone. It is made again when it is gone, and claims stay: "+
		"kubectl -n %s delete %s", described, namespace, strings.ToLower(strings.Replace(described, " ", "/", 1)))
}
