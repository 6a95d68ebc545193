package statefulcluster

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// A member whose owner reference was removed stays a member, and the reference is restored, as in
// StatefulSet. Unlike in StatefulSet, labels do not prove membership, because any user who may create
// pods can copy them. A pod is adopted only if this process observed its UID while the set controlled
// it. After a restart of the operator this is unknown. Then a user has to decide, and no successor is
// created while a pod has the claims of a member.

// adoptOrphans restores the owner reference of members that lost it.
func adoptOrphans(f *facts, p *plan) {
	var chains []action.Chain
	for _, m := range f.members {
		if m.terminating() || controls(f.set, m.pod) {
			continue
		}
		adopted := m.pod.DeepCopy()
		if adopted.Labels == nil {
			adopted.Labels = map[string]string{}
		}
		maps.Copy(adopted.Labels, memberLabels(f.settings, m.id)) // the cache only contains pods with these labels
		adopted.OwnerReferences = append(adopted.OwnerReferences, owner(f.settings))
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: adopted, From: m.pod, Reason: reasonAdopted,
			Detail: "its owner reference was missing"}})
	}
	switch {
	case len(chains) == 0:
	case f.refusedNow(reasonAdopted):
		p.tryLater(f, reasonAdopted)
	default:
		p.Then(chains...)
	}
}

// keepOrphans returns the claims that do not belong to an orphan, and records the ids of orphans with
// claims. A user has to decide about the claims of orphans.
func keepOrphans(w *world, claims []*corev1.PersistentVolumeClaim) (others []*corev1.PersistentVolumeClaim) {
	names := map[string]bool{}
	for _, pod := range w.orphans {
		names[pod.Name] = true
	}
	w.orphanIDs = map[string]bool{}
	for _, c := range claims {
		if id := memberOf(c); names[w.nameOf(id)] && !isRetained(c) {
			w.orphanIDs[id] = true
		} else {
			others = append(others, c)
		}
	}
	return others
}

// orphanSlots returns the number of slots that stay empty because orphans have claims of members.
// Members that are being recreated already occupy their slots.
func orphanSlots(f *facts) int {
	n := len(f.orphanIDs)
	for _, e := range f.returning {
		if f.orphanIDs[f.idOf(e.Name)] {
			n--
		}
	}
	return n
}

// selects reports whether the selector of the set matches the labels of a pod.
func selects(set *v1alpha1.StatefulCluster, pod metav1.Object) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.GetLabels()))
}

// orphanedPods returns a notice that lists the orphans with the claims of members. Such a pod may be a
// member, or have only copied labels.
func orphanedPods(f *facts, _ *plan, _ results) engine.Notice {
	var names []string
	for _, pod := range f.orphans {
		if f.orphanIDs[f.idOf(pod.Name)] {
			names = append(names, pod.Name)
		}
	}
	if len(names) == 0 || !f.served() {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonOrphanedPods, Message: fmt.Sprintf(
		"pods have the labels of members but no owner. The operator cannot determine whether they were members, so it ignores them and creates no replacement for %s: %s; "+
			"if %s was a member: `kubectl -n %s patch pod %s --type=merge -p '%s'`; if not: `kubectl -n %s delete pod %s`",
		members(int32(len(f.orphanIDs))), someOf(names), names[0], f.set.Namespace, names[0], ownerPatch(f.set), f.set.Namespace, names[0])}
}

// ownerPatch returns the merge patch that makes a pod a member again.
func ownerPatch(set *v1alpha1.StatefulCluster) string {
	return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"%s","kind":"StatefulCluster","name":"%s","uid":"%s","controller":true,"blockOwnerDeletion":true}]}}`,
		v1alpha1.GroupVersion, set.Name, set.UID)
}
