package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MaxLabelled is the max number of pods whose labels one pass removes. Later passes handle the rest.
const MaxLabelled = 100

// Outsiders returns the pods that have the labels of members and are not members, without the orphans
// that have claims, about which a user has to decide.
func Outsiders(w *World) []*corev1.Pod {
	pods := slices.Clone(w.Labelled)
	for _, pod := range w.Orphans {
		if !w.OrphanIDs[w.IDOf(pod.Name)] {
			pods = append(pods, pod)
		}
	}
	return pods
}

// OrphanSlots returns the number of slots that stay empty because orphans have the claims of members.
// Returning members with such claims are not counted, because they already occupy their slots.
func OrphanSlots(f *Facts) int {
	n := len(f.OrphanIDs)
	for _, e := range f.Returning {
		if f.OrphanIDs[f.IDOf(e.Name)] {
			n--
		}
	}
	return n
}
