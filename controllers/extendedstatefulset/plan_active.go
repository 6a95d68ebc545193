package extendedstatefulset

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Reasons of the writes of this rule.
const (
	reasonProbe   = "Probe"
	reasonActive  = "Active"
	reasonPassive = "Passive"
)

// probed is the state of the probes of one pod. It may be lost: the label does not change until the
// next result.
type probed struct {
	// busy is true while a command runs in the pod.
	busy bool
	// results are the latest results, by container name.
	results map[string]podexec.Result
}

// verdict is the combined result of the probes of a pod.
type verdict int

const (
	unknown verdict = iota
	passive
	active
)

// followProbes sets the label on pods whose probes succeed, and removes it from pods whose probes fail
// or that are not Ready. With singleActive it sets the label only if a live read shows that no pod has
// it.
func followProbes(f *facts, p *plan) {
	w, single := f.world, singleActive(f.set)
	pods := podsToProbe(w)
	var next *corev1.Pod
	held := keepers(w, pods, single)
	taken := slices.ContainsFunc(pods, isActive)
	for _, pod := range pods {
		says := verdictOf(w, pod)
		loses := says == passive || !held.Has(pod.UID)
		switch {
		case isActive(pod) && loses:
			p.Do(action.Chain{label(pod, false)})
		case isActive(pod) || says != active:
		case !single:
			p.Do(action.Chain{label(pod, true)})
		case !taken && next == nil:
			next = pod
		}
		question, due := nextProbe(w, pod)
		p.Do(question...)
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
func podsToProbe(w *world) []*corev1.Pod {
	current := w.set.Status.CurrentVersion
	all := slices.Clone(w.pods)
	slices.SortFunc(all, func(a, b podOfOrdinal) int {
		if first := a.version == current; first != (b.version == current) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.version, b.version))
	})
	pods := make([]*corev1.Pod, len(all))
	for i := range all {
		pods[i] = all[i].pod
	}
	return pods
}

// keepers returns the pods that may keep the label. If single is true, it returns at most one; a pod
// whose probes succeed takes precedence over a pod whose result is unknown.
func keepers(w *world, pods []*corev1.Pod, single bool) sets.Set[types.UID] {
	held := sets.New[types.UID]()
	for _, wanted := range []verdict{active, unknown} {
		for _, pod := range pods {
			if single && held.Len() > 0 {
				return held
			}
			if isActive(pod) && verdictOf(w, pod) == wanted {
				held.Insert(pod.UID)
			}
		}
	}
	return held
}

func isActive(pod *corev1.Pod) bool {
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

// asks reports whether commands are run in a pod. Its owners must match by UID, and it must be Ready
// and not terminating.
func asks(w *world, pod *corev1.Pod) bool {
	ours := slices.ContainsFunc(w.pods, func(p podOfOrdinal) bool { return p.pod == pod && p.owned })
	return ours && w.set.DeletionTimestamp == nil && serves(pod)
}

// verdictOf returns the combined result of the probes of a pod: active if all succeed, passive if one
// fails. A pod in which no probes are run is passive.
func verdictOf(w *world, pod *corev1.Pod) verdict {
	if len(w.set.Spec.ActivePassiveProbes) == 0 || !asks(w, pod) {
		return passive
	}
	all := active
	for name, probe := range w.set.Spec.ActivePassiveProbes {
		switch answer(w, pod, name, &probe) {
		case passive:
			return passive
		case unknown:
			all = unknown
		}
	}
	return all
}

// answer returns the result of one probe in the running container. A timeout counts as failure, as it
// does for a kubelet. The result is unknown if it was lost, or if the timeout passed while this process
// was frozen.
func answer(w *world, pod *corev1.Pod, name string, probe *v1alpha1.ActivePassiveProbe) verdict {
	id := containerID(pod, name)
	r, ok := w.probes[pod.UID].results[name]
	late := r.Sent && w.watch.Elapsed(r.Began, r.Ended) >= timeoutOf(probe)
	switch {
	case id == "":
		return passive
	case !ok, r.ContainerID != id:
		return unknown
	case r.Outcome == podexec.Succeeded:
		return active
	case r.Outcome == podexec.Failed, late:
		return passive
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
func nextProbe(w *world, pod *corev1.Pod) (chains []action.Chain, next time.Duration) {
	known := w.probes[pod.UID]
	if known.busy || !asks(w, pod) {
		return nil, 0 // a watch event follows when that changes
	}
	for _, name := range sets.List(sets.KeySet(w.set.Spec.ActivePassiveProbes)) {
		probe := w.set.Spec.ActivePassiveProbes[name]
		id := containerID(pod, name)
		if id == "" || probe.Exec == nil || len(probe.Exec.Command) == 0 {
			continue
		}
		due := time.Duration(0)
		if r, ok := known.results[name]; ok && r.ContainerID == id {
			due = r.Began.Add(periodOf(&probe)).Sub(w.now)
		}
		if due <= 0 {
			return []action.Chain{{{Verb: action.Exec, Object: pod, Reason: reasonProbe, Detail: name, Command: &podexec.Command{
				Name: name, Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID,
				Container: name, ContainerID: id, Argv: probe.Exec.Command, Timeout: timeoutOf(&probe)}}}}, next
		}
		next = soonest(next, due)
	}
	return nil, next
}

func periodOf(probe *v1alpha1.ActivePassiveProbe) time.Duration {
	return cmp.Or(time.Duration(max(0, probe.PeriodSeconds))*time.Second, probePeriod)
}

func timeoutOf(probe *v1alpha1.ActivePassiveProbe) time.Duration {
	return cmp.Or(time.Duration(max(0, probe.TimeoutSeconds))*time.Second, probeTimeout)
}

// asksOnly reports whether the plan only runs probes. An outdated world cannot make probes wrong.
func (p *plan) asksOnly() bool {
	for _, step := range p.Steps {
		for _, chain := range step {
			if slices.ContainsFunc(chain, func(a action.Action) bool { return a.Verb != action.Exec }) {
				return false
			}
		}
	}
	return !p.recordFirst
}
