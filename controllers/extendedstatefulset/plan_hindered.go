package extendedstatefulset

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// The current version has no deadline, and no earlier version to roll back to. If its pods cannot be
// created or started, manual intervention is required.

// hindrance is a pod of the current version that needs manual intervention, and a command that shows
// more details.
type hindrance struct{ pod, command string }

// podsHindered reports the pods of the current version that cannot be created or started. During an
// upgrade it reports nothing: the upgrade may fix the pods, and has a deadline.
func podsHindered(f *facts, _ *plan) notice {
	if u := f.record.Update; u != nil && !u.Returning && !givenUp(f.record) {
		return notice{}
	}
	kept := ""
	if found := causes.Lasting(f.causes.Stopped()); len(found) > 0 {
		kept = causes.TellOf("pod", f.set.Namespace, found)
	}
	number := f.record.CurrentVersion
	first, some := firstHindered(f.world, number)
	if !some {
		if still := stillHindered(f.world, number); still.Reason != "" || kept == "" {
			return still
		}
		return notice{Reason: v1alpha1.ReasonPodsHindered, Message: kept}
	}
	message := fmt.Sprintf("pods of version %d cannot be created or started: %s. ",
		number, strings.TrimPrefix(unready(f.world, number), "; not Ready: "))
	if f.record.Phase == v1alpha1.PhaseWaiting {
		message += "The upgrade to the present template waits for them. " + upgradeAnyway(f.world) + ". "
	}
	message += "For details: " + first.command
	if kept != "" {
		message += "; " + kept
	}
	return notice{Reason: v1alpha1.ReasonPodsHindered, Message: message}
}

// firstHindered returns the first pod of a version that needs manual intervention.
func firstHindered(w *world, number int64) (hindrance, bool) {
	for c, o := range podsOfVersion(w, number) {
		if h := hindranceOn(w, c, o); h.pod != "" {
			return h, true
		}
	}
	return hindrance{}, false
}

// podsOfVersion returns the StatefulSet and the ordinal of each existing or missing pod of a version.
func podsOfVersion(w *world, number int64) iter.Seq2[*child, int32] {
	return func(yield func(*child, int32) bool) {
		for _, c := range w.children.ofVersion(number) {
			if c.terminating() {
				continue
			}
			for o := range c.span().ordinals() {
				if !yield(c, o) {
					return
				}
			}
		}
	}
}

// hindranceOn returns the hindrance of the pod of an ordinal; zero if there is none, or if it has not
// lasted for hinderedTime.
func hindranceOn(w *world, c *child, ordinal int32) hindrance {
	name, namespace := fmt.Sprintf("%s-%d", c.set.Name, ordinal), w.set.Namespace
	pod := c.pods[ordinal]
	switch {
	case pod == nil && w.refusals[name] != "":
		return hindrance{name, fmt.Sprintf("kubectl -n %s describe statefulset %s; after the cause is fixed, to create the pods immediately: kubectl -n %s annotate statefulset %s again=1 --overwrite",
			namespace, c.set.Name, namespace, c.set.Name)}
	case pod == nil || podstate.Terminating(pod):
		return hindrance{}
	case crashes(pod) && !w.now.Before(hinderedAt(w, pod)):
		return hindrance{name, fmt.Sprintf("kubectl -n %s logs %s --all-containers --previous", namespace, name)}
	case needsPerson(pod) && !w.now.Before(hinderedAt(w, pod)):
		return hindrance{name, fmt.Sprintf("kubectl -n %s describe pod %s", namespace, name)}
	}
	return hindrance{}
}

// crashes reports whether a container of a pod restarts repeatedly. The pod may be Ready between two
// crashes.
func crashes(pod *corev1.Pod) bool {
	return causes.Of(pod).Word == causes.CrashLoop || (causes.OfCrash(pod).Known() && restarts(pod) > 1)
}

// needsPerson reports whether a pod cannot start without manual intervention.
func needsPerson(pod *corev1.Pod) bool { return causes.Of(pod).NeedsPerson() }

// restarts returns the number of container restarts of a pod.
func restarts(pod *corev1.Pod) (n int32) {
	for i := range pod.Status.ContainerStatuses {
		n += pod.Status.ContainerStatuses[i].RestartCount
	}
	return n
}

// hinderedAt returns when a pod counts as hindered if it does not become Ready. A crashing pod counts
// until it has been Ready for hinderedTime, so that the condition does not change with each crash.
func hinderedAt(w *world, pod *corev1.Pod) time.Time {
	since, has := podstate.Since(pod, corev1.PodReady)
	if !has || since.Before(pod.CreationTimestamp.Time) {
		since = pod.CreationTimestamp.Time
	}
	switch {
	case !podstate.Ready(pod) && restarts(pod) > 1:
		return since
	case !podstate.Ready(pod):
		return since.Add(hinderedTime)
	case w.now.Before(since.Add(hinderedTime)):
		return since
	}
	return w.now.Add(hinderedTime)
}

// stillHindered returns the present condition if pods are missing and the events with the reasons have
// not been read yet, for example after a restart of the operator.
func stillHindered(w *world, number int64) notice {
	said := meta.FindStatusCondition(w.set.Status.Conditions, v1alpha1.ConditionDegraded)
	if said == nil || said.Status != metav1.ConditionTrue || said.Reason != v1alpha1.ReasonPodsHindered || w.refusals != nil {
		return notice{}
	}
	for _, c := range w.children.ofVersion(number) {
		if c.lacksPods() {
			return notice{Reason: said.Reason, Message: said.Message}
		}
	}
	return notice{}
}

// servingPods returns the pods of the current version, for which causes are read.
func servingPods(w *world) (all []causes.Named) {
	for c, o := range podsOfVersion(w, w.set.Status.CurrentVersion) {
		all = append(all, causes.Named{Name: fmt.Sprintf("%s-%d", c.set.Name, o), Pod: c.pods[o]})
	}
	return all
}

// hindrancePasses reports whether everything that blocks pods of the current version is temporary.
func hindrancePasses(f *facts) bool {
	found := causes.Lasting(f.causes.Stopped())
	known := len(found) > 0
	if slices.ContainsFunc(found, causes.Hindered.NeedsPerson) {
		return false
	}
	for c, o := range podsOfVersion(f.world, f.record.CurrentVersion) {
		h := hindranceOn(f.world, c, o)
		if h.pod == "" {
			continue
		}
		if c.pods[o] != nil || causes.Refused(f.refusals[h.pod]).NeedsPerson() {
			return false
		}
		known = true
	}
	return known
}
