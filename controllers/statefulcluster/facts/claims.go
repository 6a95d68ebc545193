package facts

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
)

// WasRetired reports whether the operator retired the member: this process deleted its pod for that,
// or its claims have the label that is set before the pod is deleted.
func (w *World) WasRetired(m *Member) bool {
	if w.Retired[m.Pod.UID] {
		return true
	}
	for _, c := range m.Claims {
		if RetainedAs(c, v1alpha1.RetainedScaled) {
			return true
		}
	}
	return false
}

// Add adds a claim to the claims of a member.
func (m *Member) Add(c *corev1.PersistentVolumeClaim) {
	if m.Claims == nil {
		m.Claims = map[string]*corev1.PersistentVolumeClaim{}
	}
	m.Claims[c.Name] = c
}

// HasClaim reports whether the member with that id has no pod, and has the claim of the given template.
func (w *World) HasClaim(template, id string) bool {
	name := claim.Name(w.Set.Name, template, id)
	return slices.ContainsFunc(w.Loose, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name })
}

// KeepOrphans records the ids of the orphans that have claims in w.OrphanIDs, and returns the other
// claims. No rule may change the claims of orphans, because a user has to decide about them.
func KeepOrphans(w *World, claims []*corev1.PersistentVolumeClaim) (others []*corev1.PersistentVolumeClaim) {
	names := map[string]bool{}
	for _, pod := range w.Orphans {
		names[pod.Name] = true
	}
	w.OrphanIDs = map[string]bool{}
	for _, c := range claims {
		if id := MemberOf(c); names[w.NameOf(id)] && !IsRetained(c) {
			w.OrphanIDs[id] = true
		} else {
			others = append(others, c)
		}
	}
	return others
}

// MissingClaims returns the claim templates for which the member has no claim.
func MissingClaims(w *World, m *Member) []corev1.PersistentVolumeClaim {
	var missing []corev1.PersistentVolumeClaim
	for _, t := range w.Set.Spec.VolumeClaimTemplates {
		if m.Claims[claim.Name(w.Set.Name, t.Name, m.ID)] == nil {
			missing = append(missing, t)
		}
	}
	return missing
}

// waitsForClaims reports whether a member cannot be scheduled before createClaims has created its
// claims. A quota may refuse them for days, and would refuse the claims of a replacement too.
func waitsForClaims(w *World, m *Member) bool { return !m.HasRun() && len(MissingClaims(w, m)) > 0 }

// claimsSince returns the creation time of the member's newest claim. The scheduler could not place
// the pod before that.
func (m *Member) claimsSince() (newest time.Time) {
	for _, c := range m.Claims {
		newest = latest(newest, c.CreationTimestamp.Time)
	}
	return newest
}

// IsRetained reports whether a claim was set aside, for any reason.
func IsRetained(c *corev1.PersistentVolumeClaim) bool { return !RetainedAs(c, "") }

// RetainedAs reports whether a claim was set aside for that reason. For "" it reports whether the claim
// was not set aside.
func RetainedAs(c *corev1.PersistentVolumeClaim, why string) bool {
	return c.Labels[v1alpha1.LabelRetained] == why
}

// SortedClaims returns the claims of the member, sorted by name.
func (m *Member) SortedClaims() []*corev1.PersistentVolumeClaim {
	sorted := make([]*corev1.PersistentVolumeClaim, 0, len(m.Claims))
	for _, name := range slices.Sorted(maps.Keys(m.Claims)) {
		sorted = append(sorted, m.Claims[name])
	}
	return sorted
}

// MissingPods returns the names of pods that should exist and are not among the given ones: a claim
// of the pod was not set aside, and the member is not in status.updating.
func MissingPods(w *World, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim) (names []string) {
	seen := make(map[string]bool, len(pods))
	for _, p := range pods {
		seen[p.Name] = true
	}
	for _, e := range w.Set.Status.Updating {
		seen[e.Name] = true
	}
	for _, c := range claims {
		if name := w.NameOf(MemberOf(c)); !seen[name] && !IsRetained(c) {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// LooseClaims returns the claims of a member whose pod is gone.
func LooseClaims(w *World, name string) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(w.Loose), func(c *corev1.PersistentVolumeClaim) bool { return w.NameOf(MemberOf(c)) != name })
}

// RetainedClaims returns the names of the claims of a lost member that the policy whenLost keeps: all
// of them or none.
func RetainedClaims(w *World, claims []*corev1.PersistentVolumeClaim) (names []string) {
	if w.Retention().WhenLost == v1alpha1.DeleteClaims {
		return nil
	}
	for _, c := range claims {
		names = append(names, c.Name)
	}
	return names
}

// Vanished returns the names of the vanished members: they have claims that were not set aside, and no
// pod, and are not returning. Their pods disappeared between two passes.
func (f *Facts) Vanished() []string {
	var names []string
	for _, c := range f.Loose {
		name := f.NameOf(MemberOf(c))
		returning := slices.ContainsFunc(f.Returning, func(e v1alpha1.UpdatingMember) bool { return e.Name == name })
		if !IsRetained(c) && !returning && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// IsGiven reports whether a user has given the claim to the set with AnnotationAdopt, and the set can
// adopt it.
func (w *World) IsGiven(c *corev1.PersistentVolumeClaim) bool {
	if c.DeletionTimestamp != nil || metav1.GetControllerOf(c) != nil {
		return false
	}
	return c.Annotations[v1alpha1.AnnotationAdopt] == w.Set.Name
}

// HasClaims reports whether the member with that id has no pod, and all of its claims exist and were
// not set aside.
func (w *World) HasClaims(id string) bool {
	n := 0
	for _, c := range w.Loose {
		if MemberOf(c) == id && c.DeletionTimestamp == nil && !IsRetained(c) {
			n++
		}
	}
	return n >= len(w.Set.Spec.VolumeClaimTemplates)
}

// ChangedClaims returns why the claim templates of the spec are invalid compared to those of the last
// revision; "" if they are valid. The webhook rejects such a change, but may have been down. Without
// this check, members that lack a new claim would count as lost.
func ChangedClaims(w *World) string {
	if len(w.Revisions) == 0 {
		return ""
	}
	last, ok := children.DataOf(w.Revisions[len(w.Revisions)-1])
	if !ok {
		return ""
	}
	errs := claim.CheckChange(last.VolumeClaimTemplates, w.Set.Spec.VolumeClaimTemplates, field.NewPath("spec", "volumeClaimTemplates"))
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}
