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

// Reasons of writes in logs, golden files and metrics.
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

// keepChildren creates missing StatefulSets, assigns ordinals to each, and reverts edits of other
// clients.
func keepChildren(f *facts, p *plan) {
	taken := false
	for _, z := range f.zones {
		h := arrange(f, z, taken)
		taken = h.taken
		p.waitFor(h.waits)
		for _, number := range slices.Sorted(maps.Keys(h.want)) {
			if c := f.children.find(z.index, number); c != nil {
				p.Do(keepChild(f, c, z, h.want[number])...)
			} else if f.known(number) && !f.configHolds(childName(f.set.Name, z, number)) {
				p.Do(makeChild(f, z, number, h.want[number]))
			}
		}
	}
}

// versionOf returns the properties of a version in a zone.
func (f *facts) versionOf(z zone, number int64) version {
	v := version{number: number, digest: f.digest, config: f.config.stamps[childName(f.set.Name, z, number)]}
	if u := f.record.Update; u != nil && number == f.record.UpdateVersion {
		v.attempts = u.EarlierAttempts + f.record.Attempts
	}
	return v
}

func makeChild(f *facts, z zone, number int64, s span) action.Chain {
	child := buildChild(f.set, z, f.versionOf(z, number), s)
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

// keepChild returns the patch that brings a StatefulSet to its wanted state.
func keepChild(f *facts, c *child, z zone, s span) []action.Chain {
	if c.terminating() {
		return nil
	}
	k := childPatch{f: f, c: c, zone: z, next: c.set.DeepCopy()}
	if f.known(c.version) {
		k.restore()
	} else { // its content is unknown, but its owner and version are known
		k.relabel()
	}
	k.stampConfig()
	k.resize(s)
	was := appliedOf(k.next)
	// Keep the record of the edit until the edit is undone. Without it the edit would never be undone.
	edited := was.hash != "" && was.generation < c.set.Generation
	if edited && !f.known(c.version) && was.generation != editedGeneration {
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

// childPatch is a patch of a StatefulSet, and its reason.
type childPatch struct {
	f    *facts
	c    *child
	zone zone
	// next is the wanted StatefulSet.
	next           *appsv1.StatefulSet
	reason, detail string
}

// generation returns the generation of the StatefulSet after the write.
func (k *childPatch) generation() int64 {
	if apiequality.Semantic.DeepEqual(k.next.Spec, k.c.set.Spec) {
		return k.c.set.Generation
	}
	return k.c.set.Generation + 1
}

// relabel restores the labels and annotations that identify the owner and the version.
func (k *childPatch) relabel() {
	k.next.Labels = merged(k.next.Labels, ownLabels(k.f.set.Name, k.zone, k.c.version))
	k.next.Annotations = merged(k.next.Annotations, map[string]string{v1alpha1.AnnotationVersion: strconv.FormatInt(k.c.version, 10)})
	if k.c.version == k.f.record.CurrentVersion && k.c.digest() == "" {
		k.next.Annotations[v1alpha1.AnnotationDigest] = k.f.record.CurrentDigest
	}
}

// stampConfig sets the configuration stamp.
func (k *childPatch) stampConfig() {
	stamp, ok := k.f.config.stamps[k.c.set.Name]
	if !ok {
		return
	}
	k.next.Annotations = stamped(k.next.Annotations, v1alpha1.AnnotationConfigRecord, stamp.record)
	k.next.Spec.Template.Annotations = stamped(k.next.Spec.Template.Annotations, v1alpha1.AnnotationConfigHash, stamp.hash)
	k.reason = cmp.Or(stamp.event, k.reason)
}

// resize sets the ordinals.
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

// restore sets everything except the ordinals to the spec, if the spec changed since the last write, or
// another client wrote since. The API server sets defaults, so the StatefulSet and the spec cannot be
// compared directly.
func (k *childPatch) restore() {
	want, next := k.wanted(), k.next
	is, target := appliedOf(k.c.set), applied{contentHash(want), k.c.set.Generation}
	next.Labels, next.Annotations = merged(next.Labels, want.Labels), merged(next.Annotations, want.Annotations)
	next.OwnerReferences = k.c.set.OwnerReferences
	same, held := is.hash == target.hash, k.f.holdsPods(k.c.version) != ""
	switch {
	case is == target:
		k.reason = reasonChild
		return
	case same && is.generation > target.generation:
		// The last write only repeated defaults of the API server, so it did not change the generation.
		next.Annotations[v1alpha1.AnnotationApplied] = target.String()
		k.reason = reasonChild
		return
	case same && is.generation == editedGeneration && held:
		k.reason = reasonChild // its pods run with the edit, and undoing it would restart them
		return
	case same:
		k.reason = v1alpha1.EventEditUndone
		keepLazy(&want.Spec.Template, &k.c.set.Spec.Template)
	case held:
		k.reason = reasonChild // for example, a change of replicas, which are in the environment
		return
	default:
		k.reason = reasonTemplate
	}
	next.Annotations[v1alpha1.AnnotationApplied] = target.String()
	next.Spec.Template, next.Spec.UpdateStrategy = want.Spec.Template, want.Spec.UpdateStrategy
	next.Spec.MinReadySeconds, next.Spec.RevisionHistoryLimit = want.Spec.MinReadySeconds, want.Spec.RevisionHistoryLimit
	next.Spec.PersistentVolumeClaimRetentionPolicy = nil
}

// wanted returns the StatefulSet as it would be created now. It keeps the attempts, and the
// configuration stamp if the configuration is unknown.
func (k *childPatch) wanted() *appsv1.StatefulSet {
	v := k.f.versionOf(k.zone, k.c.version)
	v.attempts = max(v.attempts, k.c.attempts())
	if _, known := k.f.config.stamps[k.c.set.Name]; !known {
		v.config = stampFor(configuration.Target{Stamp: stampOf(k.c.set)})
	}
	return buildChild(k.f.set, k.zone, v, k.c.span())
}

// unlike describes the fields of StatefulSets that differ from the last write although no client wrote
// since: an admission webhook or policy changed them. They are not written again, because that would
// restart pods if the webhook acts only on creation.
func (f *facts) unlike() (fields []string) {
	for _, c := range f.children {
		if c.terminating() || !f.known(c.version) {
			continue
		}
		i := slices.IndexFunc(f.zones, func(z zone) bool { return z.index == c.zone })
		if i < 0 {
			continue
		}
		k := childPatch{f: f, c: c, zone: f.zones[i]}
		want := k.wanted()
		if appliedOf(c.set) != (applied{contentHash(want), c.set.Generation}) {
			continue
		}
		keepLazy(&want.Spec.Template, &c.set.Spec.Template)
		fields = append(fields, undone.Unlike("statefulset "+c.set.Name, templateOnly(c.set), templateOnly(want))...)
	}
	return fields
}

// templateOnly returns a StatefulSet that has only the pod template of set.
func templateOnly(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: set.Spec.Template}}
}

// editedGeneration marks a StatefulSet that another client edited while its content was unknown. The
// edit is undone when the content is known again.
const editedGeneration = 0

// applied is the value of annotation applied: the hash of the written content, and the generation that
// the write produced.
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

// lazy are pod annotations whose change alone restarts no pods. They are written with the next change
// that restarts pods anyway.
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

// contentHash returns a hash of the content of a StatefulSet without its ordinals.
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

// markStale sets the stale annotations on a failed version, and removes them when the version is
// retried.
func (k *childPatch) markStale() {
	f, next := k.f, k.next
	u := f.record.Update
	if u == nil || k.c.version != f.record.UpdateVersion || k.c.version == f.record.CurrentVersion {
		return
	}
	if f.record.Phase != v1alpha1.PhaseStale {
		for _, key := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
			delete(next.Annotations, key)
		}
		return
	}
	since := cmp.Or(next.Annotations[v1alpha1.AnnotationStaleSince], f.now.UTC().Format(time.RFC3339))
	next.Annotations = merged(next.Annotations, map[string]string{
		v1alpha1.AnnotationStale: v1alpha1.True, v1alpha1.AnnotationStaleReason: u.Reason + ": " + u.Message, v1alpha1.AnnotationStaleSince: since})
}

// stamped returns a map in which key has the given value; "" removes the key.
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
