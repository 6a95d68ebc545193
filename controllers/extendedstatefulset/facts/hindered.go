package facts

import (
	"fmt"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// This file finds pods of the current version that need manual intervention. That version has no
// deadline, and no earlier version to roll back to, so a condition must report such pods. causes.go
// describes why any pod is not Ready.

// hindrance is a pod of the current version that needs manual intervention, and a command that shows
// more details.
type hindrance struct{ Pod, Command string }

// FirstHindered returns the first pod of a version that needs manual intervention.
func FirstHindered(w *World, number int64) (hindrance, bool) {
	for c, o := range PodsOfVersion(w, number) {
		if h := HindranceOn(w, c, o); h.Pod != "" {
			return h, true
		}
	}
	return hindrance{}, false
}

// PodsOfVersion returns the StatefulSet and the ordinal of each existing or missing pod of a version.
func PodsOfVersion(w *World, number int64) iter.Seq2[*Child, int32] {
	return func(yield func(*Child, int32) bool) {
		for _, c := range w.Children.OfVersion(number) {
			if c.Terminating() {
				continue
			}
			for o := range c.Span().Ordinals() {
				if !yield(c, o) {
					return
				}
			}
		}
	}
}

// HindranceOn returns the hindrance of the pod of an ordinal; zero if there is none, or if it has not
// lasted for HinderedTime.
func HindranceOn(w *World, c *Child, ordinal int32) hindrance {
	name, namespace := fmt.Sprintf("%s-%d", c.Set.Name, ordinal), w.Set.Namespace
	pod := c.Pods[ordinal]
	switch {
	case pod == nil && w.Refusals[name] != "":
		return hindrance{name, fmt.Sprintf("kubectl -n %s describe statefulset %s; after the cause is fixed, to create the pods immediately: kubectl -n %s annotate statefulset %s again=1 --overwrite",
			namespace, c.Set.Name, namespace, c.Set.Name)}
	case pod == nil || podstate.Terminating(pod):
		return hindrance{}
	case crashes(pod) && !w.Now.Before(HinderedAt(w, pod)):
		return hindrance{name, fmt.Sprintf("kubectl -n %s logs %s --all-containers --previous", namespace, name)}
	case NeedsPerson(pod) && !w.Now.Before(HinderedAt(w, pod)):
		return hindrance{name, fmt.Sprintf("kubectl -n %s describe pod %s", namespace, name)}
	}
	return hindrance{}
}

// crashes reports whether a container of a pod restarts repeatedly. The pod may be Ready between two
// crashes.
func crashes(pod *corev1.Pod) bool {
	return causes.Of(pod).Word == causes.CrashLoop || (causes.OfCrash(pod).Known() && restarts(pod) > 1)
}

// NeedsPerson reports whether a pod cannot start without manual intervention.
func NeedsPerson(pod *corev1.Pod) bool { return causes.Of(pod).NeedsPerson() }

// restarts returns the number of container restarts of a pod.
func restarts(pod *corev1.Pod) (n int32) {
	for i := range pod.Status.ContainerStatuses {
		n += pod.Status.ContainerStatuses[i].RestartCount
	}
	return n
}

// HinderedAt returns when a pod counts as hindered if it does not become Ready. A crashing pod counts
// until it has been Ready for HinderedTime, so that the condition does not change with each crash.
func HinderedAt(w *World, pod *corev1.Pod) time.Time {
	since, some := podstate.Since(pod, corev1.PodReady)
	if !some || since.Before(pod.CreationTimestamp.Time) {
		since = pod.CreationTimestamp.Time
	}
	switch {
	case !podstate.Ready(pod) && restarts(pod) > 1:
		return since
	case !podstate.Ready(pod):
		return since.Add(spec.HinderedTime)
	case w.Now.Before(since.Add(spec.HinderedTime)):
		return since
	}
	return w.Now.Add(spec.HinderedTime)
}

// CurrentPods returns the existing and missing pods of the current version, for which causes are read.
func CurrentPods(w *World) (all []causes.Named) {
	for c, o := range PodsOfVersion(w, w.Set.Status.CurrentVersion) {
		all = append(all, causes.Named{Name: fmt.Sprintf("%s-%d", c.Set.Name, o), Pod: c.Pods[o]})
	}
	return all
}
