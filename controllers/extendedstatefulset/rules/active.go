package rules

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// state is what the results of probes show about a pod.
type state int

const (
	// unknown: a result is missing. The label does not change.
	unknown state = iota
	// Passive: a probe failed, or no probes are run in the pod. The pod must not have the label.
	Passive
	// active: all probes succeeded. The pod may get the label.
	active
)

// FollowProbes sets the label on pods whose probes succeed, and removes it from pods whose probes fail
// or that are not Ready. With singleActive it sets the label only if a live read shows that no pod has
// it.
func FollowProbes(f *facts.Facts, p *Plan) {
	w, single := f.World, singleActive(f.Set)
	pods := podsToProbe(w)
	var next *corev1.Pod
	keep := mayKeepLabel(w, pods, single)
	labeled := slices.ContainsFunc(pods, IsActive)
	for _, pod := range pods {
		s := stateOf(w, pod)
		loses := s == Passive || !keep.Has(pod.UID)
		switch {
		case IsActive(pod) && loses:
			p.Do(action.Chain{label(pod, false)})
		case IsActive(pod) || s != active:
		case !single:
			p.Do(action.Chain{label(pod, true)})
		case !labeled && next == nil:
			next = pod
		}
		probe, due := nextProbe(w, pod)
		p.Do(probe...)
		p.LookAgain(due)
	}
	if next != nil {
		p.Do(action.Chain{label(next, true)})
	}
}

// singleActive reports whether at most one pod may be active.
func singleActive(set *v1alpha1.ExtendedStatefulSet) bool {
	for _, probe := range set.Spec.ActivePassiveProbes {
		if probe.SingleActive {
			return true
		}
	}
	return false
}

// podsToProbe returns the pods in order of preference: those of the current version first, then by
// zone, ordinal and version.
func podsToProbe(w *facts.World) []*corev1.Pod {
	current := w.Set.Status.CurrentVersion
	all := slices.Clone(w.Pods)
	slices.SortFunc(all, func(a, b facts.PodOfOrdinal) int {
		if first := a.Version == current; first != (b.Version == current) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Version, b.Version))
	})
	pods := make([]*corev1.Pod, len(all))
	for i := range all {
		pods[i] = all[i].Pod
	}
	return pods
}

// mayKeepLabel returns the pods that have the label and may keep it. If single is true, it returns at
// most one; a pod whose probes succeed takes precedence over a pod whose result is unknown.
func mayKeepLabel(w *facts.World, pods []*corev1.Pod, single bool) sets.Set[types.UID] {
	keep := sets.New[types.UID]()
	for _, wanted := range []state{active, unknown} {
		for _, pod := range pods {
			if single && keep.Len() > 0 {
				return keep
			}
			if IsActive(pod) && stateOf(w, pod) == wanted {
				keep.Insert(pod.UID)
			}
		}
	}
	return keep
}

// IsActive reports whether a pod has the label of active pods.
func IsActive(pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelPodActive] == v1alpha1.PodActive
}

// label returns the patch that sets or removes the label of a pod. The patch fails if the pod has
// changed since it was read, so that a late patch cannot make two pods active.
func label(pod *corev1.Pod, on bool) action.Action {
	next, reason := pod.DeepCopy(), reasonPassive
	delete(next.Labels, v1alpha1.LabelPodActive)
	if on {
		reason = reasonActive
		metav1.SetMetaDataLabel(&next.ObjectMeta, v1alpha1.LabelPodActive, v1alpha1.PodActive)
	}
	return action.Action{Verb: action.Patch, Object: next, From: pod, Unchanged: true, Reason: reason}
}

// isProbed reports whether commands are run in a pod. Its owners must match by UID, and it must be Ready
// and not terminating.
func isProbed(w *facts.World, pod *corev1.Pod) bool {
	ours := slices.ContainsFunc(w.Pods, func(p facts.PodOfOrdinal) bool { return p.Pod == pod && p.Owned })
	return ours && w.Set.DeletionTimestamp == nil && facts.Healthy(pod)
}

// stateOf returns the combined result of the probes of a pod: active if all succeed, passive if one
// fails. A pod in which no probes are run is passive.
func stateOf(w *facts.World, pod *corev1.Pod) state {
	if len(w.Set.Spec.ActivePassiveProbes) == 0 || !isProbed(w, pod) {
		return Passive
	}
	all := active
	for name, probe := range w.Set.Spec.ActivePassiveProbes {
		switch Answer(w, pod, name, &probe) {
		case Passive:
			return Passive
		case unknown:
			all = unknown
		}
	}
	return all
}

// Answer returns the result of one probe in the running container. A timeout counts as failure, as it
// does for a kubelet. The result is unknown if it was lost, or if the timeout passed while this process
// was frozen.
func Answer(w *facts.World, pod *corev1.Pod, name string, probe *v1alpha1.ActivePassiveProbe) state {
	id := containerID(pod, name)
	r, ok := w.Probes[pod.UID].Results[name]
	late := r.Sent && w.Watch.Elapsed(r.Began, r.Ended) >= timeoutOf(probe)
	switch {
	case id == "":
		return Passive
	case !ok, r.ContainerID != id:
		return unknown
	case r.Outcome == podexec.Succeeded:
		return active
	case r.Outcome == podexec.Failed, late:
		return Passive
	}
	return unknown
}

// containerID returns the ID of the running container with the given name; "" if it does not run.
func containerID(pod *corev1.Pod, name string) string {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name && s.State.Running != nil {
			return s.ContainerID
		}
	}
	return ""
}

// nextProbe returns the first probe of a pod that is due, or the time until the next one is due. Only
// one probe runs in a pod at a time.
func nextProbe(w *facts.World, pod *corev1.Pod) (chains []action.Chain, next time.Duration) {
	probed := w.Probes[pod.UID]
	if probed.Busy || !isProbed(w, pod) {
		return nil, 0 // a watch event follows when that changes
	}
	for _, name := range sets.List(sets.KeySet(w.Set.Spec.ActivePassiveProbes)) {
		probe := w.Set.Spec.ActivePassiveProbes[name]
		id := containerID(pod, name)
		if id == "" || probe.Exec == nil || len(probe.Exec.Command) == 0 {
			continue
		}
		due := time.Duration(0)
		if r, ok := probed.Results[name]; ok && r.ContainerID == id {
			due = r.Began.Add(periodOf(&probe)).Sub(w.Now)
		}
		if due <= 0 {
			return []action.Chain{{{Verb: action.Exec, Object: pod, Reason: reasonProbe, Detail: name, Command: &podexec.Command{
				Name: name, Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID,
				Container: name, ContainerID: id, Argv: probe.Exec.Command, Timeout: timeoutOf(&probe)}}}}, next
		}
		next = facts.Soonest(next, due)
	}
	return nil, next
}

// periodOf returns periodSeconds of a probe, or the default.
func periodOf(probe *v1alpha1.ActivePassiveProbe) time.Duration {
	return cmp.Or(time.Duration(max(0, probe.PeriodSeconds))*time.Second, spec.ProbePeriod)
}

// timeoutOf returns timeoutSeconds of a probe, or the default.
func timeoutOf(probe *v1alpha1.ActivePassiveProbe) time.Duration {
	return cmp.Or(time.Duration(max(0, probe.TimeoutSeconds))*time.Second, spec.ProbeTimeout)
}
