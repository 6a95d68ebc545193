package facts

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// ViewOf returns the view of a StatefulSet without the state of its configuration, which the caller
// reads.
func ViewOf(child *appsv1.StatefulSet) *configuration.View {
	return &configuration.View{Carried: StampOf(child), Idle: idle(child)}
}

// HoldsRestart returns the reason why the pods of a version must not be restarted because of the phase
// of an upgrade; "" if they may. During an upgrade a restart of the current version could make two
// serving pods unavailable at the same time. World.HoldsPods has the other reasons.
func HoldsRestart(s *v1alpha1.ExtendedStatefulSetStatus, number int64) string {
	if s.Update == nil || GivenUp(s) || number != s.CurrentVersion {
		return ""
	}
	return "an upgrade is in progress"
}

// Configure returns the wanted stamps of existing StatefulSets and of those that do not exist yet, whose
// names are in coming. It also returns what is missing, and why pods wait for their restart.
func Configure(w *World, in ConfigInput, coming []string) ConfigFacts {
	f := ConfigFacts{Stamps: map[string]children.ConfigStamp{}, Missing: map[string]Notice{}}
	for _, c := range w.Children {
		v, followed := in.Views[c.Set.UID]
		if !followed {
			f.Stamps[c.Set.Name] = StampFor(configuration.Unfollowed(StampOf(c.Set)))
			continue
		}
		target := v.Target(w.Now)
		f.noteCached(w, &target)
		f.Stamps[c.Set.Name] = StampFor(target)
		switch target.Reason {
		case "":
		case v1alpha1.ReasonConfigMissing, v1alpha1.ReasonConfigUnreadable:
			f.Missing[c.Set.Name] = Notice{Reason: target.Reason, Message: target.Message}
		default:
			f.Restart = Notice{Reason: target.Reason, Message: c.Set.Name + ": " + target.Message}
		}
		f.Wait = Soonest(f.Wait, target.Wait)
	}
	if in.Fresh == nil {
		return f
	}
	stamp, problem := freshStamp(in.Fresh, w.Children)
	for _, name := range coming {
		f.Stamps[name] = stamp
		if problem.Reason == "" {
			continue
		}
		f.Missing[name] = problem
		f.Wait = Soonest(f.Wait, w.Set.CreationTimestamp.Add(spec.MissingGrace).Sub(w.Now))
		if problem.Reason == v1alpha1.ReasonConfigUnreadable {
			f.Wait = Soonest(f.Wait, configuration.Retry)
		}
	}
	return f
}

// StampFor returns the stamp of a target.
func StampFor(t configuration.Target) children.ConfigStamp {
	return children.ConfigStamp{Hash: t.Hash, Record: t.Record, Event: t.Event}
}

// freshStamp returns the stamp of a StatefulSet that does not exist yet, and the problem of its
// configuration, if any. With unreadable configuration there is no stamp, because the content with which
// its pods start would be unknown. existing are the StatefulSets of the set that exist.
func freshStamp(c *configuration.State, existing Siblings) (stamp children.ConfigStamp, problem Notice) {
	switch {
	case c.Unreadable != "":
		return children.ConfigStamp{}, Notice{Reason: v1alpha1.ReasonConfigUnreadable, Message: c.Unreadable}
	case len(c.Missing) > 0:
		problem = Notice{Reason: v1alpha1.ReasonConfigMissing, Message: strings.Join(c.Missing, "; ")}
	}
	var earlier []*configuration.Record
	for _, child := range existing {
		earlier = append(earlier, RecordOf(child.Set))
	}
	return children.ConfigStamp{Hash: c.Hash, Record: c.RecordAfter(earlier...).String()}, problem
}

// noteCached records the pods that may have old content of a ConfigMap or Secret that was deleted and
// recreated.
func (f *ConfigFacts) noteCached(w *World, target *configuration.Target) {
	pods := make([]configuration.Pod, 0, len(w.Pods))
	for _, t := range w.Pods {
		pods = append(pods, configuration.PodOf(t.Pod, v1alpha1.AnnotationConfigHash))
	}
	if message := target.NoteCached(w.Set.Namespace, pods); message != "" {
		f.Cached = Notice{Reason: v1alpha1.ReasonConfigCached, Message: message}
	}
}

// ConfigHolds reports whether a StatefulSet must not be created yet because of its configuration: it is
// unreadable, or part of it is missing and the object has just been created.
func (w *World) ConfigHolds(name string) bool {
	switch w.Config.Missing[name].Reason {
	case v1alpha1.ReasonConfigUnreadable:
		return true
	case v1alpha1.ReasonConfigMissing:
		return len(w.Children) == 0 && w.Now.Before(w.Set.CreationTimestamp.Add(spec.MissingGrace))
	}
	return false
}
