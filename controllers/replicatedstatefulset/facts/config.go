package facts

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// With spec.updateOnEnvChange the ConfigMaps and Secrets that the pods use are followed. The
// template has a hash of their contents, so a change of the contents is a change of the template,
// and the rule "update a pod" recreates the members in order. The template has no hash before the
// first change, so that setting the field restarts nothing.

// NoteCached sets the pods that may have old contents of a ConfigMap or Secret that was deleted and
// recreated.
func NoteCached(w *World) {
	pods := make([]configuration.Pod, 0, len(w.Members))
	for _, m := range w.Members {
		pods = append(pods, configuration.PodOf(m.Pod, v1alpha1.AnnotationConfigHash))
	}
	w.Config.Cached = w.Config.Target.NoteCached(w.Set.Namespace, pods)
}

// StampOf returns the configuration stamp of a StatefulSet.
func StampOf(set *appsv1.StatefulSet) configuration.Stamp {
	return configuration.Stamp{
		Hash:   set.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash],
		Record: set.Annotations[v1alpha1.AnnotationConfigRecord],
	}
}

// CarriedStamp returns the current configuration stamp. Without a StatefulSet it has the hash of
// the running pods, because the next StatefulSet adopts them.
func CarriedStamp(w *World) configuration.Stamp {
	if w.Stateful != nil {
		return StampOf(w.Stateful)
	}
	for _, m := range w.Members {
		if hash := m.Pod.Annotations[v1alpha1.AnnotationConfigHash]; hash != "" {
			return configuration.Stamp{Hash: hash}
		}
	}
	return configuration.Stamp{}
}

// ConfigTarget returns the stamp that the StatefulSet must have. If the configuration is
// incomplete, the stamp stays, because no pod starts with an incomplete configuration.
func ConfigTarget(v *configuration.View, now time.Time) configuration.Target {
	t := v.Target(now)
	if len(v.Missing) > 0 {
		t.Stamp, t.Event = v.Carried, ""
	}
	return t
}

// FirstTarget returns the stamp of a StatefulSet to create. Running pods that have a hash are
// compared with the current configuration in the next pass.
func FirstTarget(v *configuration.View, adopts bool, now time.Time) configuration.Target {
	t := ConfigTarget(v, now)
	t.Event = ""
	switch {
	case v.Carried.Hash != "" && v.Key != "":
		t.Stamp = configuration.Stamp{
			Hash:   v.Carried.Hash,
			Record: configuration.Record{Key: v.Key, Hash: v.Carried.Hash}.String(),
		}
	case v.Complete() && !adopts:
		t.Stamp = configuration.Stamp{Hash: v.Hash, Record: v.State.Record().String()}
	}
	return t
}

// FreshStamp returns the stamp of the newest configuration, for members that are recreated for
// another reason anyway. It returns zero if it equals the stamp that they have.
func FreshStamp(v *configuration.View) configuration.Stamp {
	if !v.Pending() {
		return configuration.Stamp{}
	}
	return configuration.Stamp{Hash: v.Hash, Record: v.RecordAfter(v.Record()).String()}
}

// HoldsConfig states why members must not be restarted for a configuration change now. It is "" if
// they may. A failing set is not held, because the edit may repair it.
func HoldsConfig(w *World) string {
	if w.Set.Spec.Paused {
		return "spec.paused is true"
	}
	for _, m := range w.Members {
		if slices.Contains(w.Set.Spec.Maintenance, m.Name()) {
			return "members are in spec.maintenance"
		}
	}
	return ""
}

// IsIdle reports whether a StatefulSet has no pods to restart.
func IsIdle(set *appsv1.StatefulSet) bool { return ptr.Deref(set.Spec.Replicas, 1) == 0 }

// RestartsSince returns when the pending restart of a StatefulSet for a configuration change began.
// It returns zero if there is none. The StatefulSet controller counts the pods of the newest
// revision.
func RestartsSince(set *appsv1.StatefulSet) time.Time {
	r := configuration.ParseRecord(set.Annotations[v1alpha1.AnnotationConfigRecord])
	if r == nil || r.Restarted == nil {
		return time.Time{}
	}
	if set.DeletionTimestamp != nil || IsIdle(set) {
		return time.Time{}
	}
	unseen := set.Status.ObservedGeneration < set.Generation
	if unseen || set.Status.UpdatedReplicas < ptr.Deref(set.Spec.Replicas, 1) {
		return r.Restarted.Time
	}
	return time.Time{}
}
