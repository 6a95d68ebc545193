package extendedstatefulset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// Reasons of writes, in logs, golden files and metrics.
const (
	reasonScale    = "Scale"
	reasonTemplate = "Template"
	reasonChild    = "Child"
	reasonClaim    = "Claim"
	reasonJob      = "Job"
	reasonZoneGone = "ZoneGone"
	reasonOld      = "OldVersion"
)

// keepChildren makes the StatefulSets that are missing, gives each the ordinals
// that it shall have now, and puts back what others changed.
func keepChildren(w *world, p *plan) {
	for _, z := range w.zones {
		want := arrange(w, z, p)
		for _, number := range slices.Sorted(maps.Keys(want)) {
			if c := w.child(z.index, number); c != nil {
				p.Do(w.keepChild(c, z, want[number])...)
			} else if w.known(number) && !w.configHolds(childName(w.set.Name, z, number)) {
				p.Do(w.makeChild(z, number, want[number]))
			}
		}
	}
}

// version is what a StatefulSet of that number is made of.
func (w *world) versionOf(z zone, number int64) version {
	v := version{number: number, digest: w.digest, config: w.config[childName(w.set.Name, z, number)]}
	if u := w.books.Update; u != nil && number == w.books.UpdateVersion {
		v.attempts = u.EarlierAttempts + w.books.Attempts
	}
	return v
}

func (w *world) makeChild(z zone, number int64, s span) action.Chain {
	child := buildChild(w.set, z, w.versionOf(z, number), s)
	child.Annotations[v1alpha1.AnnotationApplied] = applied{contentHash(child), 1}.String()
	return action.Chain{{Verb: action.Create, Object: child, Reason: v1alpha1.EventVersionCreated, Detail: s.String()}}
}

func (s span) String() string {
	if s.replicas == 0 {
		return "no pods"
	}
	return fmt.Sprintf("ordinals %d to %d", s.start, s.end()-1)
}

// keepChild brings a StatefulSet to what it shall be.
func (w *world) keepChild(c *child, z zone, s span) []action.Chain {
	if c.going() {
		return nil
	}
	have := c.set
	next, reason, detail := have.DeepCopy(), "", ""
	if w.known(c.version) {
		reason = w.restore(c, z, next)
	} else { // its content cannot be had any more, but whose it is can
		next.Labels = merged(next.Labels, ownLabels(w.set.Name, z, c.version))
		next.Annotations = merged(next.Annotations, map[string]string{v1alpha1.AnnotationVersion: strconv.FormatInt(c.version, 10)})
		if c.version == w.books.CurrentVersion && c.digest() == "" {
			next.Annotations[v1alpha1.AnnotationDigest] = w.books.CurrentDigest
		}
	}
	if stamp, ok := w.config[have.Name]; ok {
		next.Annotations = stamped(next.Annotations, v1alpha1.AnnotationConfigRecord, stamp.record)
		next.Spec.Template.Annotations = stamped(next.Spec.Template.Annotations, v1alpha1.AnnotationConfigHash, stamp.hash)
		reason = cmp.Or(stamp.event, reason)
	}
	if s != c.span() {
		next.Spec.Replicas, next.Spec.Ordinals = ptr.To(s.replicas), &appsv1.StatefulSetOrdinals{Start: s.start}
		detail = s.String()
		if reason != v1alpha1.EventEditUndone {
			reason = reasonScale
		}
	}
	was := appliedOf(next)
	// The mark of an edit stays until the edit is undone, or it would be for ever.
	edited := was.hash != "" && was.generation < have.Generation
	if edited && !w.known(c.version) && was.generation != editedGeneration {
		reason, next.Annotations[v1alpha1.AnnotationApplied] = v1alpha1.EventEditKept, applied{was.hash, editedGeneration}.String()
	}
	w.markStale(c, next)
	if apiequality.Semantic.DeepEqual(next, have) {
		return nil
	}
	generation := have.Generation
	if !apiequality.Semantic.DeepEqual(next.Spec, have.Spec) {
		generation++
	}
	if was.hash != "" && !edited {
		next.Annotations[v1alpha1.AnnotationApplied] = applied{was.hash, generation}.String()
	}
	return []action.Chain{{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: cmp.Or(reason, reasonChild), Detail: detail}}}
}

// restore brings everything but the ordinals of a StatefulSet to what the spec
// says, if the spec says something else than at the last write, or somebody else
// wrote since. The API server fills defaults in, so the two cannot be compared.
func (w *world) restore(c *child, z zone, next *appsv1.StatefulSet) (reason string) {
	v := w.versionOf(z, c.version)
	v.attempts = max(v.attempts, attemptsOf(c.set))
	if _, known := w.config[c.set.Name]; !known {
		v.config = configStamp{hash: hashIn(c.set), record: c.set.Annotations[v1alpha1.AnnotationConfigRecord]}
	}
	want := buildChild(w.set, z, v, c.span())
	is, shall := appliedOf(c.set), applied{contentHash(want), c.set.Generation}
	next.Labels, next.Annotations = merged(next.Labels, want.Labels), merged(next.Annotations, want.Annotations)
	next.OwnerReferences = c.set.OwnerReferences
	switch {
	case is == shall:
		return reasonChild
	case is.hash == shall.hash && is.generation > shall.generation:
		// The last write changed nothing that the API server did not fill in before.
		next.Annotations[v1alpha1.AnnotationApplied] = shall.String()
		return reasonChild
	case is.hash == shall.hash && is.generation == editedGeneration && w.holdsPods(c.version) != "":
		return reasonChild // its pods run as it was edited, and to undo that restarts them
	case is.hash == shall.hash:
		reason = v1alpha1.EventEditUndone
		keepLazy(&want.Spec.Template, &c.set.Spec.Template)
	case w.holdsPods(c.version) != "":
		return reasonChild // as when replicas change, which are in the environment
	default:
		reason = reasonTemplate
	}
	next.Annotations[v1alpha1.AnnotationApplied] = shall.String()
	next.Spec.Template, next.Spec.UpdateStrategy = want.Spec.Template, want.Spec.UpdateStrategy
	next.Spec.MinReadySeconds, next.Spec.RevisionHistoryLimit = want.Spec.MinReadySeconds, want.Spec.RevisionHistoryLimit
	next.Spec.PersistentVolumeClaimRetentionPolicy = nil
	return reason
}

// editedGeneration is written on a StatefulSet that somebody else edited while nobody
// knew its content: the edit is undone when the content is known again.
const editedGeneration = 0

// applied is the annotation of that name: what was written, and the generation
// that the write made.
type applied struct {
	hash       string
	generation int64
}

func (a applied) String() string { return a.hash + "/" + strconv.FormatInt(a.generation, 10) }

func appliedOf(set *appsv1.StatefulSet) applied {
	hash, generation, _ := strings.Cut(set.Annotations[v1alpha1.AnnotationApplied], "/")
	n, _ := strconv.ParseInt(generation, 10, 64)
	return applied{hash, n}
}

// lazy are annotations of pods that no pod is restarted for: they come with the
// next change that restarts pods anyway.
var lazy = []string{v1alpha1.AnnotationZones, v1alpha1.AnnotationHostnames}

func keepLazy(next, have *corev1.PodTemplateSpec) {
	for _, key := range lazy {
		if value, ok := have.Annotations[key]; ok {
			next.Annotations[key] = value
		} else {
			delete(next.Annotations, key)
		}
	}
}

// contentHash tells apart what a StatefulSet is made of beside its ordinals.
func contentHash(set *appsv1.StatefulSet) string {
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

// markStale writes on a version that it was given up, and takes it off one that is
// tried again.
func (w *world) markStale(c *child, next *appsv1.StatefulSet) {
	u := w.books.Update
	if u == nil || c.version != w.books.UpdateVersion || c.version == w.books.CurrentVersion {
		return
	}
	if w.books.Phase != v1alpha1.PhaseStale {
		for _, key := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
			delete(next.Annotations, key)
		}
		return
	}
	since := cmp.Or(next.Annotations[v1alpha1.AnnotationStaleSince], w.now.UTC().Format(time.RFC3339))
	next.Annotations = merged(next.Annotations, map[string]string{
		v1alpha1.AnnotationStale: v1alpha1.True, v1alpha1.AnnotationStaleReason: u.Reason + ": " + u.Message, v1alpha1.AnnotationStaleSince: since})
}

// stamped is the map with that value, or without the key for "".
func stamped(have map[string]string, key, value string) map[string]string {
	if have[key] == value {
		return have
	}
	next := merged(have, map[string]string{key: value})
	if value == "" {
		delete(next, key)
	}
	return next
}
