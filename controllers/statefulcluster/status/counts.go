package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// count sets the numbers of members, the revisions and the selector in the status.
func count(f *facts.Facts, s *v1alpha1.StatefulClusterStatus) {
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.CurrentReplicas = int32(len(f.Alive)), 0, 0, 0
	available, _ := f.CountAvailable()
	s.AvailableReplicas = int32(available)
	s.UpdateRevision = f.Spec.Name
	if s.CurrentRevision == "" {
		s.CurrentRevision = f.Spec.Name
	}
	s.LostReplicas = int32(len(f.Lost) + len(f.WithoutSuccessor()))
	for _, m := range f.Alive {
		if m.Ready() {
			s.ReadyReplicas++
		}
		if m.StillReplacing() {
			s.LostReplicas++
		}
		if m.Revision() == f.Spec.Name && !m.Patching() {
			s.UpdatedReplicas++
		}
		if m.Revision() == s.CurrentRevision {
			s.CurrentReplicas++
		}
	}
	// As in apps/v1: once all members have the update revision, it is the current one.
	complete := len(f.Alive) == f.Replicas() && len(f.Returning)+len(f.Lost) == 0
	if complete && int(s.UpdatedReplicas) == len(f.Alive) {
		s.CurrentRevision, s.CurrentReplicas = f.Spec.Name, s.UpdatedReplicas
	}
	if selector, err := metav1.LabelSelectorAsSelector(f.Set.Spec.Selector); err == nil {
		s.Selector = selector.String()
	}
}

// countBlindly counts the pods of a set whose spec is invalid.
func countBlindly(w *facts.World, s *v1alpha1.StatefulClusterStatus) {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0
	for _, m := range w.Members {
		if m.Terminating() {
			continue
		}
		s.Replicas++
		if m.Ready() {
			s.ReadyReplicas++
			s.AvailableReplicas++
		}
	}
}

// slotsFilled returns the number of slots that have a member or a returning one. A pod that this
// pass deleted for an update, or recreated after one, is counted once.
func slotsFilled(f *facts.Facts, s *v1alpha1.StatefulClusterStatus) int {
	names := map[string]bool{}
	for _, m := range f.Alive {
		names[m.Name()] = true
	}
	for _, e := range slices.Concat(f.Returning, s.Updating) {
		names[e.Name] = true
	}
	return len(names)
}
