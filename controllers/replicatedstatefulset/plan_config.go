package replicatedstatefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// With spec.updateOnEnvChange the ConfigMaps and Secrets that the pods use are followed. The
// template has a hash of their contents, so a change of the contents is a change of the template,
// and renew recreates the members in order. The template has no hash before the first change, so
// that setting the field restarts nothing.

// configFacts are the consequences of the configuration for the StatefulSet.
type configFacts struct {
	// target is the stamp that the StatefulSet must have.
	target configuration.Target
	// fresh is the stamp for members that are recreated for another reason. It is zero if it would
	// not differ.
	fresh configuration.Stamp
	// cached names the pods that may have old contents of an immutable ConfigMap or Secret. It is
	// "" if there are none.
	cached string
}

// noteCached sets the pods that may have old contents of a ConfigMap or Secret that was deleted and
// recreated.
func noteCached(w *world) {
	pods := make([]configuration.Pod, 0, len(w.members))
	for _, m := range w.members {
		pods = append(pods, configuration.PodOf(m.pod, v1alpha1.AnnotationConfigHash))
	}
	w.config.cached = w.config.target.NoteCached(w.set.Namespace, pods)
}

// podOfConfig returns the part of the pod spec of members that refers to ConfigMaps and Secrets. It
// works for invalid objects too. Image pull secrets are excluded: no program sees them, and
// registries with short-lived tokens renew them every few hours.
func podOfConfig(set *v1alpha1.ReplicatedStatefulSet) *corev1.PodSpec {
	whole, pod, _ := withTemplate(set)
	pod.InitContainers = whole.Spec.Pod.InitContainers
	pod.Containers = whole.Spec.Pod.Containers
	pod.Volumes = slices.Concat(whole.Spec.Pod.Volumes, ownVolumes(&whole.Spec))
	pod.ImagePullSecrets = nil
	return &pod
}

// stampOf returns the configuration stamp of a StatefulSet.
func stampOf(set *appsv1.StatefulSet) configuration.Stamp {
	return configuration.Stamp{
		Hash:   set.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash],
		Record: set.Annotations[v1alpha1.AnnotationConfigRecord],
	}
}

// carriedStamp returns the current configuration stamp. Without a StatefulSet it has the hash of
// the running pods, because the next StatefulSet adopts them.
func carriedStamp(w *world) configuration.Stamp {
	if w.stateful != nil {
		return stampOf(w.stateful)
	}
	for _, m := range w.members {
		if hash := m.pod.Annotations[v1alpha1.AnnotationConfigHash]; hash != "" {
			return configuration.Stamp{Hash: hash}
		}
	}
	return configuration.Stamp{}
}

// configTarget returns the stamp that the StatefulSet must have. If the configuration is
// incomplete, the stamp stays, because no pod starts with an incomplete configuration.
func configTarget(v *configuration.View, now time.Time) configuration.Target {
	t := v.Target(now)
	if len(v.Missing) > 0 {
		t.Stamp, t.Event = v.Carried, ""
	}
	return t
}

// firstTarget returns the stamp of a StatefulSet to create. Running pods that have a hash are
// compared with the current configuration in the next pass.
func firstTarget(v *configuration.View, adopts bool, now time.Time) configuration.Target {
	t := configTarget(v, now)
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

// freshStamp returns the stamp for members that are recreated for another reason. It returns zero
// if it would not differ.
func freshStamp(v *configuration.View) configuration.Stamp {
	if !v.Pending() {
		return configuration.Stamp{}
	}
	return configuration.Stamp{Hash: v.Hash, Record: v.RecordAfter(v.Record()).String()}
}

// holdsConfig states why members must not be restarted for a configuration change now. It is "" if
// they may. A failing set is not held, because the edit may repair it.
func holdsConfig(w *world) string {
	if w.set.Spec.Paused {
		return "spec.paused is true"
	}
	for _, m := range w.members {
		if slices.Contains(w.set.Spec.Maintenance, m.name()) {
			return "members are in spec.maintenance"
		}
	}
	return ""
}

// isIdle reports whether a StatefulSet has no pods to restart.
func isIdle(set *appsv1.StatefulSet) bool { return ptr.Deref(set.Spec.Replicas, 1) == 0 }

// restartsSince returns when the pending restart of a StatefulSet for a configuration change began.
// It returns zero if there is none. The StatefulSet controller counts the pods of the newest
// revision.
func restartsSince(set *appsv1.StatefulSet) time.Time {
	r := configuration.ParseRecord(set.Annotations[v1alpha1.AnnotationConfigRecord])
	if r == nil || r.Restarted == nil {
		return time.Time{}
	}
	if set.DeletionTimestamp != nil || isIdle(set) {
		return time.Time{}
	}
	unseen := set.Status.ObservedGeneration < set.Generation
	if unseen || set.Status.UpdatedReplicas < ptr.Deref(set.Spec.Replicas, 1) {
		return r.Restarted.Time
	}
	return time.Time{}
}

// configMissing returns the notice about missing configuration. It also blocks updates, because a
// recreated member would not start.
func configMissing(f *facts) notice {
	t := &f.config.target
	if t.Reason != configuration.ReasonMissing {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonConfigMissing,
		Message: t.Message + ". Members are not updated until it exists: create it, or make the reference optional"}
}

// configUnread returns the notice about configuration that cannot be read.
func configUnread(f *facts) notice {
	t := &f.config.target
	if t.Reason != configuration.ReasonUnreadable {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonConfigUnreadable,
		Message: "spec.updateOnEnvChange is ignored, and no member is restarted for it: " + t.Message}
}

// configChanged returns the notice about a pending restart for a configuration change, and the
// reason for its delay.
func configChanged(f *facts) notice {
	t := &f.config.target
	switch t.Reason {
	case configuration.ReasonChanged:
		return notice{Reason: v1alpha1.ReasonConfigChanged, Message: t.Message}
	case configuration.ReasonTurn:
		return notice{Reason: v1alpha1.ReasonConfigTurn, Message: t.Message}
	}
	return notice{}
}

// explainConfig returns the message of the event about a change of the StatefulSet's configuration
// stamp.
func explainConfig(event string) string {
	switch event {
	case configuration.EventFollowed:
		return "started to watch the ConfigMaps and Secrets that the members use"
	case configuration.EventRestart:
		return "recreating the members one at a time, because a ConfigMap or Secret that they use changed"
	case configuration.EventKeyChanged:
		return "the operator has a new key for its configuration hashes; the configuration did not change, and no member is restarted"
	}
	return "recreating the members one at a time: the operator has a new key for its configuration hashes, and a ConfigMap or Secret that they use was edited"
}
