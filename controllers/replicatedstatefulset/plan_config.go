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

// With spec.updateOnEnvChange the ConfigMaps and Secrets that the pods use are followed. A
// hash of what is in them stands in the template, and a change of it is a change of the
// template as any other: renew recreates the members in order. The template has no hash
// before the first change, so that nothing restarts because the field is set.

// configFacts is what follows from the configuration for the StatefulSet.
type configFacts struct {
	// target is what the StatefulSet has to carry.
	target configuration.Target
	// fresh is what is to be carried by members that are recreated anyway: zero if that
	// is no other.
	fresh configuration.Stamp
	// cached says which pods may have old contents of an immutable ConfigMap or Secret; "" if
	// none has.
	cached string
}

// noteCached notes the pods that may have old contents of what was deleted and created again.
func noteCached(w *world) {
	pods := make([]configuration.Pod, 0, len(w.members))
	for _, m := range w.members {
		pods = append(pods, configuration.PodOf(m.pod, v1alpha1.AnnotationConfigHash))
	}
	w.config.cached = w.config.target.NoteCached(w.set.Namespace, pods)
}

// podOfConfig is the pod of every member as far as it uses ConfigMaps and Secrets. It can
// be asked of an object that cannot be served. What images are pulled with is left out: no
// program sees it, and it is renewed every few hours where a registry gives short tokens.
func podOfConfig(set *v1alpha1.ReplicatedStatefulSet) *corev1.PodSpec {
	whole, pod, _ := withTemplate(set)
	pod.InitContainers = whole.Spec.Pod.InitContainers
	pod.Containers = whole.Spec.Pod.Containers
	pod.Volumes = slices.Concat(whole.Spec.Pod.Volumes, ownVolumes(&whole.Spec))
	pod.ImagePullSecrets = nil
	return &pod
}

// stampOf is what a StatefulSet carries of the configuration.
func stampOf(set *appsv1.StatefulSet) configuration.Stamp {
	return configuration.Stamp{
		Hash:   set.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash],
		Record: set.Annotations[v1alpha1.AnnotationConfigRecord],
	}
}

// carriedStamp is what the StatefulSet carries. Where there is none, the hash is that of
// pods that run: the next StatefulSet adopts them.
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

// configTarget says what the StatefulSet has to carry. What is not complete is no base to
// compare with: no pod starts before it is.
func configTarget(v *configuration.View, now time.Time) configuration.Target {
	t := v.Target(now)
	if len(v.Missing) > 0 {
		t.Stamp, t.Event = v.Carried, ""
	}
	return t
}

// firstTarget is for a StatefulSet that is yet to be made. Pods that run, and were told of a
// change before, are compared with what there is by the next look.
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

// freshStamp is what members carry that are recreated anyway; zero if that is no other.
func freshStamp(v *configuration.View) configuration.Stamp {
	if !v.Pending() {
		return configuration.Stamp{}
	}
	return configuration.Stamp{Hash: v.Hash, Record: v.RecordAfter(v.Record()).String()}
}

// holdsConfig says why members must not be restarted for a change now; "" if they may. A
// set that fails is not held: the edit may be what cures it.
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

// isIdle reports whether a StatefulSet has no pod that could be restarted.
func isIdle(set *appsv1.StatefulSet) bool { return ptr.Deref(set.Spec.Replicas, 1) == 0 }

// restartsSince is when the restart for a change began that is under way in a StatefulSet;
// zero if none is. Its controller counts the pods that have the newest revision.
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

// configMissing holds up updates, too: a member that is recreated would not start.
func configMissing(f *facts) notice {
	t := &f.config.target
	if t.Reason != configuration.ReasonMissing {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonConfigMissing,
		Message: t.Message + ". Members stay as they are until it is there: create it, or make the reference optional"}
}

// configUnread says that it is not known what the pods use.
func configUnread(f *facts) notice {
	t := &f.config.target
	if t.Reason != configuration.ReasonUnreadable {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonConfigUnreadable,
		Message: "spec.updateOnEnvChange is not followed, and no member is restarted for it: " + t.Message}
}

// configChanged says that members are to be restarted for a change, and for what that waits.
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

// explainConfig is what an event says of a change of what the StatefulSet carries.
func explainConfig(event string) string {
	switch event {
	case configuration.EventFollowed:
		return "the ConfigMaps and Secrets that the members use are followed from now on"
	case configuration.EventRestart:
		return "recreating the members one at a time, since a ConfigMap or Secret that they use changed"
	case configuration.EventKeyChanged:
		return "the operator has another key for its hashes of configuration; nothing changed, and nothing is restarted"
	}
	return "recreating the members one at a time: the operator has another key for its hashes of configuration, and a ConfigMap or Secret that they use was edited"
}
