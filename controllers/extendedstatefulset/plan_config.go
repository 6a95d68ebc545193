package extendedstatefulset

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// stampOf is what a StatefulSet carries of the configuration.
func stampOf(child *appsv1.StatefulSet) configuration.Stamp {
	return configuration.Stamp{
		Hash:   child.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash],
		Record: child.Annotations[v1alpha1.AnnotationConfigRecord],
	}
}

// recordOf reads the record of a StatefulSet; nil if there is none, or none that
// can be read.
func recordOf(child *appsv1.StatefulSet) *configuration.Record {
	return configuration.ParseRecord(stampOf(child).Record)
}

// viewOf is a view of a StatefulSet of whose configuration nothing is known yet.
func viewOf(child *appsv1.StatefulSet) *configuration.View {
	return &configuration.View{Carried: stampOf(child), Idle: idle(child)}
}

// idle reports whether a StatefulSet has no pod that could be restarted.
func idle(child *appsv1.StatefulSet) bool {
	return child.Spec.Replicas != nil && *child.Spec.Replicas == 0
}

// holdsRestart says why the pods of a StatefulSet must not be restarted now; "" if
// they may. Beside an upgrade, what serves would have two pods down at a time.
func holdsRestart(s *v1alpha1.ExtendedStatefulSetStatus, number int64) string {
	if s.Update == nil || givenUp(s) || number != s.CurrentVersion {
		return ""
	}
	return "an upgrade is under way"
}

// look is what is known about the configuration of the StatefulSets of one object.
type look struct {
	views map[types.UID]*configuration.View // none if they are not restarted for changes
	// fresh is for StatefulSets that are yet to be made; nil if none are.
	fresh *configuration.State
}

// configFacts is what follows from the configuration for the StatefulSets of an object.
type configFacts struct {
	// stamps are, by the name of a StatefulSet that is there or to be made, what it has to
	// carry of the configuration. One that is not here keeps what it has.
	stamps map[string]configStamp
	// missing says, by the name of a StatefulSet, what it requires and what is not
	// there or cannot be read, with a reason of condition ConfigMissing.
	missing map[string]notice
	// restart says why pods are yet to be restarted for a change of configuration.
	restart notice
	// cached says which pods may have old contents of an immutable ConfigMap or Secret.
	cached notice
	// wait is when to look at the configuration again; 0 is never.
	wait time.Duration
}

// configure says of each StatefulSet, and of those that come, what it has to carry.
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

// stampFor is what is written for a target.
func stampFor(t configuration.Target) configStamp { return configStamp{t.Hash, t.Record, t.Event} }

// freshStamp is for a StatefulSet that is yet to be made, and why it must not be made
// yet: it would not be known what its pods start with.
func freshStamp(c *configuration.State, beside children) (stamp configStamp, problem notice) {
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

// noteCached notes the pods that may have old contents of what was deleted and created again.
func (f *configFacts) noteCached(w *world, target *configuration.Target) {
	pods := make([]configuration.Pod, 0, len(w.pods))
	for _, t := range w.pods {
		pods = append(pods, configuration.PodOf(t.pod, v1alpha1.AnnotationConfigHash))
	}
	if said := target.NoteCached(w.set.Namespace, pods); said != "" {
		f.cached = notice{Reason: v1alpha1.ReasonConfigCached, Message: said}
	}
}

// configHolds reports whether a StatefulSet must not be made yet.
func (w *world) configHolds(name string) bool {
	switch w.config.missing[name].Reason {
	case v1alpha1.ReasonConfigUnreadable:
		return true
	case v1alpha1.ReasonConfigMissing:
		return len(w.children) == 0 && w.now.Before(w.set.CreationTimestamp.Add(missingGrace))
	}
	return false
}

// rolls reports whether the pods of a StatefulSet are being replaced by such of
// another revision. The StatefulSet controller makes the revisions equal when all
// pods have the new one and are Ready.
func rolls(child *appsv1.StatefulSet) bool {
	s := &child.Status
	if child.DeletionTimestamp != nil || idle(child) {
		return false
	}
	return s.ObservedGeneration < child.Generation || s.CurrentRevision != s.UpdateRevision
}

// restartsSince is when the restart for a change began that is under way; zero if
// none is.
func restartsSince(child *appsv1.StatefulSet) time.Time {
	if r := recordOf(child); r != nil && r.Restarted != nil && rolls(child) {
		return r.Restarted.Time
	}
	return time.Time{}
}
