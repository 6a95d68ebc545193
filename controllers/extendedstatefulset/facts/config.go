package facts

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// ViewOf returns a view of a StatefulSet without the state of its configuration.
func ViewOf(child *appsv1.StatefulSet) *configuration.View {
	return &configuration.View{Carried: StampOf(child), Idle: idle(child)}
}

// HoldsRestart returns the reason why the pods of a version must not be restarted now; "" if they may.
// During an upgrade a restart could make two serving pods unavailable at the same time.
func HoldsRestart(s *v1alpha1.ExtendedStatefulSetStatus, number int64) string {
	if s.Update == nil || GivenUp(s) || number != s.CurrentVersion {
		return ""
	}
	return "an upgrade is in progress"
}

// Configure returns the wanted stamps of existing and coming StatefulSets.
func Configure(w *World, l Look, coming []string) ConfigFacts {
	f := ConfigFacts{Stamps: map[string]children.ConfigStamp{}, Missing: map[string]Notice{}}
	for _, c := range w.Children {
		v, followed := l.Views[c.Set.UID]
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
	if l.Fresh == nil {
		return f
	}
	stamp, problem := freshStamp(l.Fresh, w.Children)
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

// freshStamp returns the stamp of a StatefulSet that does not exist yet, and the reason why it must not
// be created yet, if any: the content with which its pods start would be unknown.
func freshStamp(c *configuration.State, beside Siblings) (stamp children.ConfigStamp, problem Notice) {
	switch {
	case c.Unreadable != "":
		return children.ConfigStamp{}, Notice{Reason: v1alpha1.ReasonConfigUnreadable, Message: c.Unreadable}
	case len(c.Missing) > 0:
		problem = Notice{Reason: v1alpha1.ReasonConfigMissing, Message: strings.Join(c.Missing, "; ")}
	}
	var earlier []*configuration.Record
	for _, child := range beside {
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
	if said := target.NoteCached(w.Set.Namespace, pods); said != "" {
		f.Cached = Notice{Reason: v1alpha1.ReasonConfigCached, Message: said}
	}
}

// ConfigHolds reports whether a StatefulSet must not be created yet because of its configuration.
func (w *World) ConfigHolds(name string) bool {
	switch w.Config.Missing[name].Reason {
	case v1alpha1.ReasonConfigUnreadable:
		return true
	case v1alpha1.ReasonConfigMissing:
		return len(w.Children) == 0 && w.Now.Before(w.Set.CreationTimestamp.Add(spec.MissingGrace))
	}
	return false
}
