package facts

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Child is one StatefulSet of the object: that of one version in one zone.
type Child struct {
	Set     *appsv1.StatefulSet
	Zone    int32 // index of the zone
	Version int64
	Pods    map[int32]*corev1.Pod // pods that it controls, by ordinal, including terminating pods
}

// Siblings are the StatefulSets of a set, sorted by zone index, then version.
type Siblings []*Child

// PodOfOrdinal is a pod on an ordinal. Its StatefulSet may already be deleted.
type PodOfOrdinal struct {
	Zone    int32
	Version int64
	Ordinal int32
	Pod     *corev1.Pod
	// Owned is true if its controller is a StatefulSet of the object, by UID.
	Owned bool
}

// First returns the first item for which holds is true.
func First[T any](all []T, holds func(T) bool) (found T, ok bool) {
	for _, one := range all {
		if holds(one) {
			return one, true
		}
	}
	return found, false
}

// Healthy reports whether a pod is Ready and not terminating. It does not consider minReadySeconds, as
// Clock.Available does.
func Healthy(pod *corev1.Pod) bool { return podstate.Ready(pod) && !podstate.Terminating(pod) }

// Span returns the ordinals of the StatefulSet.
func (c *Child) Span() children.Span {
	s := children.Span{Replicas: ptr.Deref(c.Set.Spec.Replicas, 1)}
	if c.Set.Spec.Ordinals != nil {
		s.Start = c.Set.Spec.Ordinals.Start
	}
	return s
}

// Digest returns the digest of the content of its version; "" if the annotation is missing.
func (c *Child) Digest() string { return c.Set.Annotations[v1alpha1.AnnotationDigest] }

// Attempts returns how many attempts were made to upgrade to its version.
func (c *Child) Attempts() int32 {
	n, _ := strconv.ParseInt(c.Set.Annotations[v1alpha1.AnnotationAttempts], 10, 32)
	return int32(n)
}

// Terminating reports whether the StatefulSet is being deleted.
func (c *Child) Terminating() bool { return c.Set.DeletionTimestamp != nil }

// Observed reports whether the StatefulSet controller has observed the latest spec. Until then it may
// still create a pod that the latest spec does not include.
func (c *Child) Observed() bool { return c.Set.Status.ObservedGeneration >= c.Set.Generation }

// HasAll reports whether the StatefulSet has all wanted ordinals of its zone. It may also have surplus
// ordinals, which a scale-down has not removed yet: a phase that is entered first, or an edit by another
// client, can delay that.
func (c *Child) HasAll(replicas int32) bool {
	s := c.Span()
	return s.Start == 0 && s.Replicas >= replicas
}

// Empty reports whether the StatefulSet has no pods and no ordinals.
func (c *Child) Empty() bool { return c.Span().Replicas == 0 && len(c.Pods) == 0 }

// stale reports whether the version is marked stale.
func (c *Child) stale() bool { return c.Set.Annotations[v1alpha1.AnnotationStale] == v1alpha1.True }

// AnyReady reports whether at least one pod of the StatefulSet is Ready.
func (c *Child) AnyReady() bool { return c.Ready() > 0 }

// Ready returns the number of pods that are Ready and not terminating.
func (c *Child) Ready() (n int32) {
	if c == nil {
		return 0
	}
	for _, pod := range c.Pods {
		if Healthy(pod) {
			n++
		}
	}
	return n
}

// count returns the number of pods on the StatefulSet's ordinals below limit for which holds is true.
// It returns 0 for a nil child.
func (c *Child) count(limit int32, holds func(*corev1.Pod) bool) (n int32) {
	if c == nil {
		return 0
	}
	for ordinal, pod := range c.Pods {
		if ordinal < limit && c.Span().Has(ordinal) && holds(pod) {
			n++
		}
	}
	return n
}

// LacksPods reports whether pods of the StatefulSet are missing. A StatefulSet that is being deleted
// lacks none.
func (c *Child) LacksPods() bool {
	if c.Terminating() {
		return false
	}
	for o := range c.Span().Ordinals() {
		if c.Pods[o] == nil {
			return true
		}
	}
	return false
}

// Lacks reports whether the pod with the given name belongs to the StatefulSet and is missing.
func (c *Child) Lacks(pod string) bool {
	rest, ours := strings.CutPrefix(pod, c.Set.Name+"-")
	n, err := strconv.ParseInt(rest, 10, 32)
	ordinal := int32(n)
	if !ours || err != nil || strconv.FormatInt(n, 10) != rest {
		return false
	}
	return c.Span().Has(ordinal) && c.Pods[ordinal] == nil
}

// Find returns the StatefulSet of a version in a zone, or nil.
func (all Siblings) Find(zone int32, number int64) *Child {
	found, _ := First(all, func(c *Child) bool { return c.Zone == zone && c.Version == number })
	return found
}

// OfVersion returns the StatefulSets of a version, in all zones.
func (all Siblings) OfVersion(number int64) (found Siblings) {
	for _, c := range all {
		if c.Version == number {
			found = append(found, c)
		}
	}
	return found
}

// ready returns the number of Ready pods of a version, in all zones.
func (all Siblings) ready(number int64) (n int32) {
	for _, c := range all.OfVersion(number) {
		n += c.Ready()
	}
	return n
}

// Others reports whether there are StatefulSets of other versions than number.
func (all Siblings) Others(number int64) bool {
	return slices.ContainsFunc(all, func(c *Child) bool { return c.Version != number })
}

// WithDigest returns a StatefulSet with the given digest, or nil. It ignores version except and
// terminating StatefulSets.
func (all Siblings) WithDigest(digest string, except int64) (found *Child) {
	for _, c := range all {
		if c.Version != except && c.Digest() == digest && !c.Terminating() {
			found = c
		}
	}
	return found
}

// IsOn reports whether the pod is on an ordinal of a zone.
func (p PodOfOrdinal) IsOn(z children.Zone, ordinal int32) bool {
	return p.Zone == z.Index && p.Ordinal == ordinal
}

// StampOf returns the configuration stamp of a StatefulSet.
func StampOf(child *appsv1.StatefulSet) configuration.Stamp {
	return configuration.Stamp{
		Hash:   child.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash],
		Record: child.Annotations[v1alpha1.AnnotationConfigRecord],
	}
}

// RecordOf returns the configuration record of a StatefulSet; nil if it is missing or invalid.
func RecordOf(child *appsv1.StatefulSet) *configuration.Record {
	return configuration.ParseRecord(StampOf(child).Record)
}

// idle reports whether a StatefulSet has 0 replicas, so that no pod could be restarted.
func idle(child *appsv1.StatefulSet) bool {
	return child.Spec.Replicas != nil && *child.Spec.Replicas == 0
}

// rolls reports whether a rolling update of a StatefulSet is in progress. The StatefulSet controller
// sets both revisions to the same value when all pods have the new one and are Ready.
func rolls(child *appsv1.StatefulSet) bool {
	s := &child.Status
	if child.DeletionTimestamp != nil || idle(child) {
		return false
	}
	return s.ObservedGeneration < child.Generation || s.CurrentRevision != s.UpdateRevision
}

// RestartsSince returns the start of the configuration restart in progress; zero if there is none.
func RestartsSince(child *appsv1.StatefulSet) time.Time {
	if r := RecordOf(child); r != nil && r.Restarted != nil && rolls(child) {
		return r.Restarted.Time
	}
	return time.Time{}
}

// MostLikelyCurrent returns a StatefulSet of the version that most likely serves, or nil. It prefers a
// version that is not stale, then the version with more Ready pods, then the newer version.
func (all Siblings) MostLikelyCurrent() *Child {
	candidates := slices.DeleteFunc(slices.Clone(all), (*Child).stale)
	if len(candidates) == 0 {
		candidates = all
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MaxFunc(candidates, func(a, b *Child) int {
		return cmp.Or(cmp.Compare(all.ready(a.Version), all.ready(b.Version)), cmp.Compare(a.Version, b.Version))
	})
}
