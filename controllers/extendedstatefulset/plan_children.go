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
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Reasons of writes, in logs, golden files and metrics.
const (
	reasonScale    = "Scale"
	reasonTemplate = "Template"
	reasonChild    = "Child"
	reasonClaim    = "Claim"
	reasonJob      = "Job"
	reasonBudget   = "Budget"
	reasonZoneGone = "ZoneGone"
	reasonOld      = "OldVersion"
)

// keepChildren makes the StatefulSets that are missing, gives each the ordinals
// that it gets now, and puts back what others changed.
func keepChildren(w *world, p *plan) {
	taken := false
	for _, z := range w.zones {
		h := arrange(w, z, taken)
		taken = h.taken
		p.waitFor(h.waits)
		for _, number := range slices.Sorted(maps.Keys(h.want)) {
			if c := w.children.find(z.index, number); c != nil {
				p.Do(keepChild(w, c, z, h.want[number])...)
			} else if w.known(number) && !w.configHolds(childName(w.set.Name, z, number)) {
				p.Do(makeChild(w, z, number, h.want[number]))
			}
		}
	}
}

// versionOf is what a StatefulSet of that number is made of.
func (w *world) versionOf(z zone, number int64) version {
	v := version{number: number, digest: w.digest, config: w.config.stamps[childName(w.set.Name, z, number)]}
	if u := w.record.Update; u != nil && number == w.record.UpdateVersion {
		v.attempts = u.EarlierAttempts + w.record.Attempts
	}
	return v
}

func makeChild(w *world, z zone, number int64, s span) action.Chain {
	child := buildChild(w.set, z, w.versionOf(z, number), s)
	child.Annotations[v1alpha1.AnnotationApplied] = applied{contentHash(child), 1}.String()
	return action.Chain{{
		Verb:   action.Create,
		Object: child,
		Reason: v1alpha1.EventVersionCreated,
		Detail: s.String(),
	}}
}

func (s span) String() string {
	if s.replicas == 0 {
		return "no pods"
	}
	return fmt.Sprintf("ordinals %d to %d", s.start, s.end()-1)
}

// keepChild brings a StatefulSet to what it has to be.
func keepChild(w *world, c *child, z zone, s span) []action.Chain {
	if c.terminating() {
		return nil
	}
	k := childPatch{w: w, c: c, zone: z, next: c.set.DeepCopy()}
	if w.known(c.version) {
		k.restore()
	} else { // its content cannot be had any more, but whose it is can
		k.relabel()
	}
	k.stampConfig()
	k.resize(s)
	was := appliedOf(k.next)
	// The mark of an edit stays until the edit is undone, or it would be for ever.
	edited := was.hash != "" && was.generation < c.set.Generation
	if edited && !w.known(c.version) && was.generation != editedGeneration {
		k.reason = v1alpha1.EventEditKept
		k.next.Annotations[v1alpha1.AnnotationApplied] = applied{was.hash, editedGeneration}.String()
	}
	k.markStale()
	if apiequality.Semantic.DeepEqual(k.next, c.set) {
		return nil
	}
	if was.hash != "" && !edited {
		k.next.Annotations[v1alpha1.AnnotationApplied] = applied{was.hash, k.generation()}.String()
	}
	return []action.Chain{{{
		Verb:      action.Patch,
		Object:    k.next,
		From:      c.set,
		Unchanged: true,
		Reason:    cmp.Or(k.reason, reasonChild),
		Detail:    k.detail,
	}}}
}

// childPatch is what is written to a StatefulSet, and why.
type childPatch struct {
	w    *world
	c    *child
	zone zone
	// next is the StatefulSet as it has to be.
	next           *appsv1.StatefulSet
	reason, detail string
}

// generation is that of the StatefulSet after the write.
func (k *childPatch) generation() int64 {
	if apiequality.Semantic.DeepEqual(k.next.Spec, k.c.set.Spec) {
		return k.c.set.Generation
	}
	return k.c.set.Generation + 1
}

// relabel puts back labels and annotations that say whose it is, and of which version.
func (k *childPatch) relabel() {
	k.next.Labels = merged(k.next.Labels, ownLabels(k.w.set.Name, k.zone, k.c.version))
	k.next.Annotations = merged(k.next.Annotations, map[string]string{v1alpha1.AnnotationVersion: strconv.FormatInt(k.c.version, 10)})
	if k.c.version == k.w.record.CurrentVersion && k.c.digest() == "" {
		k.next.Annotations[v1alpha1.AnnotationDigest] = k.w.record.CurrentDigest
	}
}

// stampConfig writes what it carries of the configuration.
func (k *childPatch) stampConfig() {
	stamp, ok := k.w.config.stamps[k.c.set.Name]
	if !ok {
		return
	}
	k.next.Annotations = stamped(k.next.Annotations, v1alpha1.AnnotationConfigRecord, stamp.record)
	k.next.Spec.Template.Annotations = stamped(k.next.Spec.Template.Annotations, v1alpha1.AnnotationConfigHash, stamp.hash)
	k.reason = cmp.Or(stamp.event, k.reason)
}

// resize gives it its ordinals.
func (k *childPatch) resize(s span) {
	if s == k.c.span() {
		return
	}
	k.next.Spec.Replicas, k.next.Spec.Ordinals = ptr.To(s.replicas), &appsv1.StatefulSetOrdinals{Start: s.start}
	k.detail = s.String()
	if k.reason != v1alpha1.EventEditUndone {
		k.reason = reasonScale
	}
}

// restore brings everything but the ordinals of a StatefulSet to what the spec
// says, if the spec says something else than at the last write, or another client
// wrote since. The API server fills defaults in, so the two cannot be compared.
func (k *childPatch) restore() {
	want, next := k.wanted(), k.next
	is, target := appliedOf(k.c.set), applied{contentHash(want), k.c.set.Generation}
	next.Labels, next.Annotations = merged(next.Labels, want.Labels), merged(next.Annotations, want.Annotations)
	next.OwnerReferences = k.c.set.OwnerReferences
	same, held := is.hash == target.hash, k.w.holdsPods(k.c.version) != ""
	switch {
	case is == target:
		k.reason = reasonChild
		return
	case same && is.generation > target.generation:
		// The last write changed nothing that the API server did not fill in before.
		next.Annotations[v1alpha1.AnnotationApplied] = target.String()
		k.reason = reasonChild
		return
	case same && is.generation == editedGeneration && held:
		k.reason = reasonChild // its pods run as it was edited, and to undo that restarts them
		return
	case same:
		k.reason = v1alpha1.EventEditUndone
		keepLazy(&want.Spec.Template, &k.c.set.Spec.Template)
	case held:
		k.reason = reasonChild // as when replicas change, which are in the environment
		return
	default:
		k.reason = reasonTemplate
	}
	next.Annotations[v1alpha1.AnnotationApplied] = target.String()
	next.Spec.Template, next.Spec.UpdateStrategy = want.Spec.Template, want.Spec.UpdateStrategy
	next.Spec.MinReadySeconds, next.Spec.RevisionHistoryLimit = want.Spec.MinReadySeconds, want.Spec.RevisionHistoryLimit
	next.Spec.PersistentVolumeClaimRetentionPolicy = nil
}

// wanted is the StatefulSet that would be made now. It keeps its attempts, and what it
// carries of a configuration of which nothing is known.
func (k *childPatch) wanted() *appsv1.StatefulSet {
	v := k.w.versionOf(k.zone, k.c.version)
	v.attempts = max(v.attempts, k.c.attempts())
	if _, known := k.w.config.stamps[k.c.set.Name]; !known {
		v.config = stampFor(configuration.Target{Stamp: stampOf(k.c.set)})
	}
	return buildChild(k.w.set, k.zone, v, k.c.span())
}

// unlike describes what of the StatefulSets is not as it was written, although nobody wrote
// since: an admission webhook or policy changed it. That is not written again: it would
// restart pods where it is changed on creation only.
func (w *world) unlike() (fields []string) {
	for _, c := range w.children {
		if c.terminating() || !w.known(c.version) {
			continue
		}
		i := slices.IndexFunc(w.zones, func(z zone) bool { return z.index == c.zone })
		if i < 0 {
			continue
		}
		k := childPatch{w: w, c: c, zone: w.zones[i]}
		want := k.wanted()
		if appliedOf(c.set) != (applied{contentHash(want), c.set.Generation}) {
			continue
		}
		keepLazy(&want.Spec.Template, &c.set.Spec.Template)
		fields = append(fields, undone.Unlike("statefulset "+c.set.Name, templateOnly(c.set), templateOnly(want))...)
	}
	return fields
}

// templateOnly returns a StatefulSet with the pod template of another one, and nothing else.
func templateOnly(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: set.Spec.Template}}
}

// editedGeneration is written on a StatefulSet that another client edited while its
// content was not known: the edit is undone when it is known again.
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
func (k *childPatch) markStale() {
	w, next := k.w, k.next
	u := w.record.Update
	if u == nil || k.c.version != w.record.UpdateVersion || k.c.version == w.record.CurrentVersion {
		return
	}
	if w.record.Phase != v1alpha1.PhaseStale {
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
