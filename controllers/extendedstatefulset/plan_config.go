package extendedstatefulset

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// stampOf returns the configuration stamp of a StatefulSet.
func stampOf(child *appsv1.StatefulSet) configuration.Stamp {
	return configuration.Stamp{
		Hash:   child.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash],
		Record: child.Annotations[v1alpha1.AnnotationConfigRecord],
	}
}

// recordOf returns the configuration record of a StatefulSet; nil if it is missing or invalid.
func recordOf(child *appsv1.StatefulSet) *configuration.Record {
	return configuration.ParseRecord(stampOf(child).Record)
}

// viewOf returns a view of a StatefulSet without the state of its configuration.
func viewOf(child *appsv1.StatefulSet) *configuration.View {
	return &configuration.View{Carried: stampOf(child), Idle: idle(child)}
}

// idle reports whether a StatefulSet has 0 replicas, so that no pod could be restarted.
func idle(child *appsv1.StatefulSet) bool {
	return child.Spec.Replicas != nil && *child.Spec.Replicas == 0
}

// holdsRestart returns the reason why the pods of a version must not be restarted now; "" if they may.
// During an upgrade a restart could make two serving pods unavailable at the same time.
func holdsRestart(s *v1alpha1.ExtendedStatefulSetStatus, number int64) string {
	if s.Update == nil || givenUp(s) || number != s.CurrentVersion {
		return ""
	}
	return "an upgrade is in progress"
}

// look is the state of the configuration of an object's StatefulSets.
type look struct {
	views map[types.UID]*configuration.View // empty if pods are not restarted for changes
	// fresh is for StatefulSets that do not exist yet; nil if there are none.
	fresh *configuration.State
}

// configFacts is the effect of the configuration on the StatefulSets of an object.
type configFacts struct {
	// stamps are the wanted stamps by StatefulSet name, including StatefulSets that do not exist yet. A
	// StatefulSet without an entry keeps its stamp.
	stamps map[string]configStamp
	// missing has the required configuration that is missing or unreadable, by StatefulSet name, with a
	// reason of condition ConfigMissing.
	missing map[string]notice
	// restart is the reason why pods still have to be restarted for a configuration change.
	restart notice
	// cached lists the pods that may have old content of an immutable ConfigMap or Secret.
	cached notice
	// wait is the time until the next configuration check; 0 means never.
	wait time.Duration
}

// configure returns the wanted stamps of existing and coming StatefulSets.
func configure(w *world, l look, coming []string) configFacts {
	f := configFacts{stamps: map[string]configStamp{}, missing: map[string]notice{}}
	for _, c := range w.children {
		v, followed := l.views[c.set.UID]
		if !followed {
			f.stamps[c.set.Name] = stampFor(configuration.Unfollowed(stampOf(c.set)))
			continue
		}
		target := v.Target(w.now)
		f.noteCached(w, &target)
		f.stamps[c.set.Name] = stampFor(target)
		switch target.Reason {
		case "":
		case v1alpha1.ReasonConfigMissing, v1alpha1.ReasonConfigUnreadable:
			f.missing[c.set.Name] = notice{Reason: target.Reason, Message: target.Message}
		default:
			f.restart = notice{Reason: target.Reason, Message: c.set.Name + ": " + target.Message}
		}
		f.wait = soonest(f.wait, target.Wait)
	}
	if l.fresh == nil {
		return f
	}
	stamp, problem := freshStamp(l.fresh, w.children)
	for _, name := range coming {
		f.stamps[name] = stamp
		if problem.Reason == "" {
			continue
		}
		f.missing[name] = problem
		f.wait = soonest(f.wait, w.set.CreationTimestamp.Add(missingGrace).Sub(w.now))
		if problem.Reason == v1alpha1.ReasonConfigUnreadable {
			f.wait = soonest(f.wait, configuration.Retry)
		}
	}
	return f
}

// stampFor returns the stamp of a target.
func stampFor(t configuration.Target) configStamp { return configStamp{t.Hash, t.Record, t.Event} }

// freshStamp returns the stamp of a StatefulSet that does not exist yet, and the reason why it must not
// be created yet, if any: the content with which its pods start would be unknown.
func freshStamp(c *configuration.State, beside siblings) (stamp configStamp, problem notice) {
	switch {
	case c.Unreadable != "":
		return configStamp{}, notice{Reason: v1alpha1.ReasonConfigUnreadable, Message: c.Unreadable}
	case len(c.Missing) > 0:
		problem = notice{Reason: v1alpha1.ReasonConfigMissing, Message: strings.Join(c.Missing, "; ")}
	}
	var earlier []*configuration.Record
	for _, child := range beside {
		earlier = append(earlier, recordOf(child.set))
	}
	return configStamp{hash: c.Hash, record: c.RecordAfter(earlier...).String()}, problem
}

// noteCached records the pods that may have old content of a ConfigMap or Secret that was deleted and
// recreated.
func (f *configFacts) noteCached(w *world, target *configuration.Target) {
	pods := make([]configuration.Pod, 0, len(w.pods))
	for _, t := range w.pods {
		pods = append(pods, configuration.PodOf(t.pod, v1alpha1.AnnotationConfigHash))
	}
	if said := target.NoteCached(w.set.Namespace, pods); said != "" {
		f.cached = notice{Reason: v1alpha1.ReasonConfigCached, Message: said}
	}
}

// configHolds reports whether a StatefulSet must not be created yet because of its configuration.
func (w *world) configHolds(name string) bool {
	switch w.config.missing[name].Reason {
	case v1alpha1.ReasonConfigUnreadable:
		return true
	case v1alpha1.ReasonConfigMissing:
		return len(w.children) == 0 && w.now.Before(w.set.CreationTimestamp.Add(missingGrace))
	}
	return false
}

// rolls reports whether a rolling update of a StatefulSet is in progress. The StatefulSet controller
// sets both revisions to the same value when all pods have the new one and are Ready.
func rolls(child *appsv1.StatefulSet) bool {
	s := &child.Status
	if child.DeletionTimestamp != nil || idle(child) {
		return false
	}
	return s.ObservedGeneration < child.Generation || s.CurrentRevision != s.UpdateRevision
}

// restartsSince returns the start of the configuration restart in progress; zero if there is none.
func restartsSince(child *appsv1.StatefulSet) time.Time {
	if r := recordOf(child); r != nil && r.Restarted != nil && rolls(child) {
		return r.Restarted.Time
	}
	return time.Time{}
}
