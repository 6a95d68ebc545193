package rules

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// newMembers tracks the new members that the rules of one pass create.
type newMembers struct {
	// ids are the ids that the pass has not used yet. Ids in status.creating come first.
	ids []string
	// replaced is true for the names of members whose slots the new members fill.
	replaced map[string]bool
	// atCurrent is the number of new members that get the current revision instead of the target.
	atCurrent int
}

// Succession describes the slot that a new member fills.
type Succession struct {
	// replaces is the name of the member that had the slot before; "" if the slot is new.
	replaces string
	// Replacements is the number of successive replacements in the slot, including this one. From
	// the second on they are delayed (facts.Backoff).
	Replacements int
	// detail is the event text about the members that leave after the new member is available; ""
	// if there are none.
	detail string
}

// SuccessorOf returns the succession for the slot of m. The count of replacements continues, or starts
// again if m settled down.
func SuccessorOf(w *facts.World, m *facts.Member) Succession {
	n := 1
	if !facts.SettledDown(w, m) {
		n += m.Replacements()
	}
	return Succession{replaces: m.Name(), Replacements: n}
}

// next takes an unused id and returns the chain that creates a member with it. The pod is created
// before its claims, so that a crash in between leaves a pod whose missing claims can still be
// created.
func (b *newMembers) next(f *facts.Facts, s Succession) action.Chain {
	id := b.ids[0]
	b.ids = b.ids[1:]
	b.replaced[s.replaces] = true
	rev := revisionForNew(f, *b)
	if rev.Name != f.Target.Name {
		b.atCurrent++
	}
	pod := children.BuildPod(f.Settings, rev, id)
	reason, detail := facts.ReasonMissing, s.detail
	if s.replaces != "" {
		reason, detail = facts.ReasonReplaced, "in place of "+s.replaces
		pod.Annotations[v1alpha1.AnnotationReplaces] = s.replaces
		pod.Annotations[v1alpha1.AnnotationReplacements] = strconv.Itoa(s.Replacements)
	}
	chain := action.Chain{{Verb: action.Create, Object: pod, Reason: reason, Detail: detail}}
	if len(f.Offers.Given[id]) > 0 {
		return append(chain, onGivenClaims(f, pod, id)...)
	}
	for i := range f.Set.Spec.VolumeClaimTemplates {
		chain = append(chain, action.Action{Verb: action.Create, Reason: facts.ReasonClaim,
			Object: children.BuildClaim(f.Settings, &f.Set.Spec.VolumeClaimTemplates[i], id)})
	}
	return chain
}

// revisionForNew returns the revision of the next new member, given those already planned. It is
// the target revision, except while a partition keeps members at the current revision and too few
// members have it.
func revisionForNew(f *facts.Facts, planned newMembers) *appsv1.ControllerRevision {
	current := f.Named(f.Set.Status.CurrentRevision)
	if current == nil || !f.Rolling() || current.Name == f.Target.Name {
		return f.Target
	}
	if planned.atCurrent+countKeeping(f, current.Name, planned) < f.Partition() {
		return current
	}
	return f.Target
}

// countKeeping returns the number of members that have a revision and are not being replaced.
func countKeeping(f *facts.Facts, revision string, planned newMembers) int {
	n := 0
	for _, m := range f.Members {
		goes := m.Terminating() || planned.replaced[m.Name()] || f.Leaves(m)
		if m.Revision() == revision && !goes {
			n++
		}
	}
	return n
}

// onGivenClaims annotates the pod of a new member as one that has data, and returns the writes that
// label the given claims as those of the member. They are made after the pod was created: after a crash
// the next pass finds a member that has run, and rule relabel labels its claims.
func onGivenClaims(f *facts.Facts, pod *corev1.Pod, id string) action.Chain {
	pod.Annotations[v1alpha1.AnnotationUpdated] = facts.Restored
	var chain action.Chain
	for _, c := range f.Offers.Given[id] {
		mine := withoutNotes(c)
		maps.Copy(mine.Labels, children.MemberLabels(f.Settings, id))
		chain = append(chain, action.Action{Verb: action.Patch, Object: mine, From: c, Reason: facts.ReasonClaim,
			Detail: "adopted as its annotation requests"})
	}
	return chain
}
