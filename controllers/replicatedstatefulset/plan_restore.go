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

// An object restored from a backup has no status, so its record is lost. Members report by
// themselves how new their copies are. This file derives the two facts that they cannot report: the
// epoch, and the former number of members.

// wasRestored reports whether an object was restored from a backup.
func wasRestored(object metav1.Object) bool { return backup.Of(object) != "" }

// usesEpoch reports whether any command uses the epoch.
func usesEpoch(set *v1alpha1.ReplicatedStatefulSet) bool {
	isTold := func(word string) bool { return strings.Contains(word, epochWord) }
	for _, command := range set.Spec.Pod.Commands {
		if slices.ContainsFunc(command.Command, isTold) {
			return true
		}
	}
	return false
}

// isUnknownStop reports whether the set is stopped, has claims, and its former number of members is
// unknown: it was restored stopped, or created stopped on the claims of an earlier set of its name.
func isUnknownStop(w *world) bool {
	if w.invalid != "" || w.deleting() || *w.set.Spec.Replicas > 0 {
		return false
	}
	return w.set.Status.RestoreReplicas == 0 && len(w.set.Spec.Pod.VolumeClaimTemplates) > 0
}

// copiesIn returns how many members the set needs so that each claim that is older than the set, or
// was restored, belongs to a member.
func copiesIn(w *world, claims []corev1.PersistentVolumeClaim) int32 {
	most := 0
	for i := range claims {
		if w.set.CreationTimestamp.Before(&claims[i].CreationTimestamp) && !wasRestored(&claims[i]) {
			continue // the claim was created for this set, which has not run since
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

// wasChild reports whether an object without an owner was once a child of a set, according to its
// labels: it was restored, or the set was deleted with orphaned dependents.
func wasChild(object metav1.Object) bool {
	return metav1.GetControllerOf(object) == nil && object.GetLabels()[v1alpha1.LabelManaged] == v1alpha1.True
}

// whoseIsIt returns what to do about an object that has the name of a child and is not ours.
func whoseIsIt(described, namespace string, child metav1.Object) string {
	if !wasChild(child) {
		return described + " belongs to another object and is not changed; rename or delete it"
	}
	return fmt.Sprintf("%s has no owner, like an object restored from a backup, and is not changed. To have it recreated, delete it; claims are kept: "+
		"kubectl -n %s delete %s", described, namespace, strings.ToLower(strings.Replace(described, " ", "/", 1)))
}
