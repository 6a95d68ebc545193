package rules

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// replacement returns the actions that record and then delete pods for those of unknown
// owners.
func replacement(f *facts.Facts, old []*facts.Member) []action.Chain {
	if len(old) == 0 {
		return nil
	}
	object := f.Object.DeepCopy()
	object.Status.Replaced = KeptReplaced(f)
	var names []string
	var deletes action.Chain
	for _, m := range old {
		owner, revision := m.Lineage()
		entry := v1.ReplacedPod{Name: m.Name(), Owner: owner, Revision: revision,
			For: f.ReplacementFor(m).Name(), DeletedAt: metav1.NewTime(f.Now)}
		others := slices.DeleteFunc(object.Status.Replaced, func(r v1.ReplacedPod) bool { return facts.IsOf(m, r) })
		if len(others) == facts.MaxReplaced {
			break
		}
		object.Status.Replaced = slices.Concat(others, []v1.ReplacedPod{entry})
		names = append(names, m.Name())
		deletes = append(deletes, Deletion(m, ReasonTimeout, timeoutDetail)...)
	}
	if len(deletes) == 0 {
		return nil
	}
	record := action.Action{Verb: action.PatchStatus, Object: object, From: f.Object, Reason: reasonReplaced, Detail: strings.Join(names, ", ")}
	return []action.Chain{append(action.Chain{record}, deletes...)}
}

// KeptReplaced returns the records in status.replaced that are still valid, with the time since
// when no pod of each exists.
func KeptReplaced(f *facts.Facts) []v1.ReplacedPod {
	if f.Object.Spec.OnTimeout != v1.TimeoutDeletesOld {
		return nil
	}
	var kept []v1.ReplacedPod
	for _, r := range f.Object.Status.Replaced {
		exists := slices.ContainsFunc(f.Pods, func(m *facts.Member) bool {
			return facts.IsOf(m, r) && !facts.IsForgotten(r, m.Pod.CreationTimestamp.Time)
		})
		switch {
		case exists:
			r.MissingSince = nil
		case r.MissingSince == nil:
			r.MissingSince = ptr.To(metav1.NewTime(f.Now))
		case facts.IsForgotten(r, f.Now):
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
