package rules

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// keepChildren creates missing StatefulSets, assigns ordinals to each, and reverts edits of other
// clients.
func keepChildren(f *facts.Facts, p *Plan) {
	taken := false // whether an ordinal was taken from a serving pod, in any zone
	for _, z := range f.Zones {
		h := arrange(f, z, taken)
		taken = h.taken
		p.waitFor(h.waits)
		for _, number := range slices.Sorted(maps.Keys(h.want)) {
			if c := f.Children.Find(z.Index, number); c != nil {
				p.Do(keepChild(f, c, z, h.want[number])...)
			} else if f.Known(number) && !f.ConfigHolds(children.ChildName(f.Set.Name, z, number)) {
				p.Do(makeChild(f, z, number, h.want[number]))
			}
		}
	}
}

// versionOf returns the properties of a version in a zone.
func versionOf(f *facts.Facts, z children.Zone, number int64) children.Version {
	v := children.Version{Number: number, Digest: f.Digest, Config: f.Config.Stamps[children.ChildName(f.Set.Name, z, number)]}
	if u := f.Record.Update; u != nil && number == f.Record.UpdateVersion {
		v.Attempts = u.EarlierAttempts + f.Record.Attempts
	}
	return v
}

// makeChild returns the creation of the StatefulSet of a version in a zone.
func makeChild(f *facts.Facts, z children.Zone, number int64, s children.Span) action.Chain {
	child := children.BuildChild(f.Set, z, versionOf(f, z, number), s)
	child.Annotations[v1alpha1.AnnotationApplied] = children.Applied{Hash: children.ContentHash(child), Generation: 1}.String()
	return action.Chain{{
		Verb:   action.Create,
		Object: child,
		Reason: v1alpha1.EventVersionCreated,
		Detail: s.String(),
	}}
}

// keepChild returns the patch that brings a StatefulSet to its wanted state.
func keepChild(f *facts.Facts, c *facts.Child, z children.Zone, s children.Span) []action.Chain {
	if c.Terminating() {
		return nil
	}
	k := ChildPatch{F: f, C: c, zone: z, Next: c.Set.DeepCopy()}
	if f.Known(c.Version) {
		k.restore()
	} else { // its content is unknown, but its owner and version are known
		k.relabel()
	}
	k.stampConfig()
	k.resize(s)
	was := children.AppliedOf(k.Next)
	// An edit by another client is detected by the generation in annotation applied. The annotation must
	// not get the present generation before the edit is undone, or the edit would be kept forever.
	edited := was.Hash != "" && was.Generation < c.Set.Generation
	if edited && !f.Known(c.Version) && was.Generation != children.EditedGeneration {
		k.reason = v1alpha1.EventEditKept
		k.Next.Annotations[v1alpha1.AnnotationApplied] = children.Applied{Hash: was.Hash, Generation: children.EditedGeneration}.String()
	}
	k.MarkStale()
	if apiequality.Semantic.DeepEqual(k.Next, c.Set) {
		return nil
	}
	if was.Hash != "" && !edited {
		k.Next.Annotations[v1alpha1.AnnotationApplied] = children.Applied{Hash: was.Hash, Generation: k.generation()}.String()
	}
	return []action.Chain{{{
		Verb:      action.Patch,
		Object:    k.Next,
		From:      c.Set,
		Unchanged: true,
		Reason:    cmp.Or(k.reason, reasonChild),
		Detail:    k.detail,
	}}}
}

// ChildPatch is a patch of a StatefulSet. Its methods change Next, and set the reason of the patch.
type ChildPatch struct {
	F    *facts.Facts
	C    *facts.Child // the StatefulSet as it is
	zone children.Zone
	// Next is the StatefulSet after the patch.
	Next           *appsv1.StatefulSet
	reason, detail string
}

// generation returns the generation of the StatefulSet after the write.
func (k *ChildPatch) generation() int64 {
	if apiequality.Semantic.DeepEqual(k.Next.Spec, k.C.Set.Spec) {
		return k.C.Set.Generation
	}
	return k.C.Set.Generation + 1
}

// relabel restores the labels and annotations that identify the owner and the version.
func (k *ChildPatch) relabel() {
	k.Next.Labels = children.Merged(k.Next.Labels, children.OwnLabels(k.F.Set.Name, k.zone, k.C.Version))
	k.Next.Annotations = children.Merged(k.Next.Annotations, map[string]string{v1alpha1.AnnotationVersion: strconv.FormatInt(k.C.Version, 10)})
	if k.C.Version == k.F.Record.CurrentVersion && k.C.Digest() == "" {
		k.Next.Annotations[v1alpha1.AnnotationDigest] = k.F.Record.CurrentDigest
	}
}

// stampConfig sets the configuration stamp.
func (k *ChildPatch) stampConfig() {
	stamp, ok := k.F.Config.Stamps[k.C.Set.Name]
	if !ok {
		return
	}
	k.Next.Annotations = children.Stamped(k.Next.Annotations, v1alpha1.AnnotationConfigRecord, stamp.Record)
	k.Next.Spec.Template.Annotations = children.Stamped(k.Next.Spec.Template.Annotations, v1alpha1.AnnotationConfigHash, stamp.Hash)
	k.reason = cmp.Or(stamp.Event, k.reason)
}

// resize sets the ordinals.
func (k *ChildPatch) resize(s children.Span) {
	if s == k.C.Span() {
		return
	}
	k.Next.Spec.Replicas, k.Next.Spec.Ordinals = ptr.To(s.Replicas), &appsv1.StatefulSetOrdinals{Start: s.Start}
	k.detail = s.String()
	if k.reason != v1alpha1.EventEditUndone {
		k.reason = reasonScale
	}
}

// restore sets everything except the ordinals to the spec, if the spec changed since the last write, or
// another client wrote since. It compares annotation applied instead of fields, because the API server
// sets defaults. It postpones writes that would restart pods while World.HoldsPods returns a reason.
func (k *ChildPatch) restore() {
	want, next := k.wanted(), k.Next
	is, target := children.AppliedOf(k.C.Set), children.Applied{Hash: children.ContentHash(want), Generation: k.C.Set.Generation}
	next.Labels, next.Annotations = children.Merged(next.Labels, want.Labels), children.Merged(next.Annotations, want.Annotations)
	next.OwnerReferences = k.C.Set.OwnerReferences
	same, held := is.Hash == target.Hash, k.F.HoldsPods(k.C.Version) != ""
	switch {
	case is == target:
		k.reason = reasonChild
		return
	case same && is.Generation > target.Generation:
		// The last write only repeated defaults of the API server, so it did not change the generation.
		next.Annotations[v1alpha1.AnnotationApplied] = target.String()
		k.reason = reasonChild
		return
	case same && is.Generation == children.EditedGeneration && held:
		k.reason = reasonChild // its pods run with the edit, and undoing it would restart them
		return
	case same:
		k.reason = v1alpha1.EventEditUndone
		children.KeepLazy(&want.Spec.Template, &k.C.Set.Spec.Template)
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
func (k *ChildPatch) wanted() *appsv1.StatefulSet {
	v := versionOf(k.F, k.zone, k.C.Version)
	v.Attempts = max(v.Attempts, k.C.Attempts())
	if _, known := k.F.Config.Stamps[k.C.Set.Name]; !known {
		v.Config = facts.StampFor(configuration.Target{Stamp: facts.StampOf(k.C.Set)})
	}
	return children.BuildChild(k.F.Set, k.zone, v, k.C.Span())
}

// Unlike describes the fields of StatefulSets that differ from the last write although no client wrote
// since: an admission webhook or policy changed them during the write. They are not written again,
// because that would restart pods if the webhook acts only on creation.
func Unlike(f *facts.Facts) (fields []string) {
	for _, c := range f.Children {
		if c.Terminating() || !f.Known(c.Version) {
			continue
		}
		i := slices.IndexFunc(f.Zones, func(z children.Zone) bool { return z.Index == c.Zone })
		if i < 0 {
			continue
		}
		k := ChildPatch{F: f, C: c, zone: f.Zones[i]}
		want := k.wanted()
		if children.AppliedOf(c.Set) != (children.Applied{Hash: children.ContentHash(want), Generation: c.Set.Generation}) {
			continue
		}
		children.KeepLazy(&want.Spec.Template, &c.Set.Spec.Template)
		fields = append(fields, undone.Unlike("statefulset "+c.Set.Name, templateOnly(c.Set), templateOnly(want))...)
	}
	return fields
}

// templateOnly returns a StatefulSet that has only the pod template of set.
func templateOnly(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: set.Spec.Template}}
}

// MarkStale sets the stale annotations on a failed version, and removes them when the version is
// retried.
func (k *ChildPatch) MarkStale() {
	f, next := k.F, k.Next
	u := f.Record.Update
	if u == nil || k.C.Version != f.Record.UpdateVersion || k.C.Version == f.Record.CurrentVersion {
		return
	}
	if f.Record.Phase != v1alpha1.PhaseStale {
		for _, key := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
			delete(next.Annotations, key)
		}
		return
	}
	since := cmp.Or(next.Annotations[v1alpha1.AnnotationStaleSince], f.Now.UTC().Format(time.RFC3339))
	next.Annotations = children.Merged(next.Annotations, map[string]string{
		v1alpha1.AnnotationStale: v1alpha1.True, v1alpha1.AnnotationStaleReason: u.Reason + ": " + u.Message, v1alpha1.AnnotationStaleSince: since})
}
