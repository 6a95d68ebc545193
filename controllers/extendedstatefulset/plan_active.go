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
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Where the schema's defaults are missing.
const (
	probePeriod  = 30 * time.Second
	probeTimeout = 5 * time.Second
)

// Reasons of the acts of this rule.
const (
	reasonProbe   = "Probe"
	reasonActive  = "Active"
	reasonPassive = "Passive"
)

// probed is what is known of the probes of one pod. It may be lost: the label
// stays as it is until the question is answered again.
type probed struct {
	// busy is true while a command runs in the pod.
	busy bool
	// results are the newest answers, by the name of the container.
	results map[string]podexec.Result
}

// verdict is what the probes of a pod say together.
type verdict int

const (
	unknown verdict = iota
	passive
	active
)

// followProbes puts the label on the pods that say they are active, and takes it
// off those that do not, or are not Ready. With singleActive it goes on a pod
// only in a world in which no pod has it, read past the cache.
func followProbes(w *world, p *plan) {
	pods := w.probedPods()
	single := false
	for _, probe := range w.set.Spec.ActivePassiveProbes {
		single = single || probe.SingleActive
	}
	var next *corev1.Pod
	held := keepers(w, pods, single)
	taken := slices.ContainsFunc(pods, isActive)
	for _, pod := range pods {
		says := w.verdictOf(pod)
		switch {
		case isActive(pod) && (says == passive || !held.Has(pod.UID)):
			p.Do(action.Chain{label(pod, false)})
		case isActive(pod) || says != active:
		case !single:
			p.Do(action.Chain{label(pod, true)})
		case !taken && next == nil:
			next = pod
		}
		w.ask(p, pod)
	}
	if next != nil {
		p.Do(action.Chain{label(next, true)})
	}
}

// probedPods are the pods in the order in which they are preferred: those of the
// version that serves, then by name.
func (w *world) probedPods() []*corev1.Pod {
	current := w.set.Status.CurrentVersion
	tenants := slices.Clone(w.tenants)
	slices.SortFunc(tenants, func(a, b tenant) int {
		if (a.version == current) != (b.version == current) {
			return map[bool]int{true: -1, false: 1}[a.version == current]
		}
		return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.version, b.version))
	})
	pods := make([]*corev1.Pod, len(tenants))
	for i := range tenants {
		pods[i] = tenants[i].pod
	}
	return pods
}

// keepers are the pods that may keep the label: with single one, and of those
// that have it rather one that says so than one that says nothing.
func keepers(w *world, pods []*corev1.Pod, single bool) sets.Set[types.UID] {
	held := sets.New[types.UID]()
	for _, wanted := range []verdict{active, unknown} {
		for _, pod := range pods {
			if isActive(pod) && w.verdictOf(pod) == wanted && (!single || held.Len() == 0) {
				held.Insert(pod.UID)
			}
		}
	}
	return held
}

func isActive(pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelPodActive] == v1alpha1.PodActive
}

// label is the patch that puts the label on a pod or takes it off. It is bound to what was
// read: one that arrives late must not make two pods active.
func label(pod *corev1.Pod, on bool) action.Action {
	next, reason := pod.DeepCopy(), reasonPassive
	delete(next.Labels, v1alpha1.LabelPodActive)
	if on {
		reason = reasonActive
		metav1.SetMetaDataLabel(&next.ObjectMeta, v1alpha1.LabelPodActive, v1alpha1.PodActive)
	}
	return action.Action{Verb: action.Patch, Object: next, From: pod, Unchanged: true, Reason: reason}
}

// asks tells whether commands are run in a pod: only in one that is ours by the
// UIDs of its owners, Ready and not going.
func (w *world) asks(pod *corev1.Pod) bool {
	ours := slices.ContainsFunc(w.tenants, func(t tenant) bool { return t.pod == pod && t.owned })
	return ours && w.set.DeletionTimestamp == nil && !podstate.Terminating(pod) && podstate.Ready(pod)
}

// verdictOf is what the probes of a pod say: all yes is active, one no passive. A
// pod that nobody asks is passive.
func (w *world) verdictOf(pod *corev1.Pod) verdict {
	if len(w.set.Spec.ActivePassiveProbes) == 0 || !w.asks(pod) {
		return passive
	}
	all := active
	for name, probe := range w.set.Spec.ActivePassiveProbes {
		switch w.answer(pod, name, &probe) {
		case passive:
			return passive
		case unknown:
			all = unknown
		}
	}
	return all
}

// answer is what one probe said of the container that runs now. No answer in time
// is a no, as it is to a kubelet; one that got lost says nothing, nor does one whose
// time passed while this process was frozen.
func (w *world) answer(pod *corev1.Pod, name string, probe *v1alpha1.ActivePassiveProbe) verdict {
	id := containerID(pod, name)
	r, ok := w.probes[pod.UID].results[name]
	switch {
	case id == "":
		return passive
	case !ok || r.ContainerID != id:
		return unknown
	case r.Outcome == podexec.Succeeded:
		return active
	case r.Outcome == podexec.Failed || r.Sent && w.watch.Elapsed(r.Began, r.Ended) >= timeoutOf(probe):
		return passive
	}
	return unknown
}

// containerID is the container of that name that runs; "" if none does.
func containerID(pod *corev1.Pod, name string) string {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name && s.State.Running != nil {
			return s.ContainerID
		}
	}
	return ""
}

// ask sends the first question that is due, one at a time in each pod.
func (w *world) ask(p *plan, pod *corev1.Pod) {
	known := w.probes[pod.UID]
	if known.busy || !w.asks(pod) {
		return // an event tells when that changes
	}
	for _, name := range sets.List(sets.KeySet(w.set.Spec.ActivePassiveProbes)) {
		probe := w.set.Spec.ActivePassiveProbes[name]
		id := containerID(pod, name)
		if id == "" || probe.Exec == nil || len(probe.Exec.Command) == 0 {
			continue
		}
		if r, ok := known.results[name]; ok && r.ContainerID == id {
			if due := r.Began.Add(periodOf(&probe)).Sub(w.now); due > 0 {
				p.LookAgain(due)
				continue
			}
		}
		p.Do(action.Chain{{Verb: action.Exec, Object: pod, Reason: reasonProbe, Detail: name, Command: &podexec.Command{
			Name: name, Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID,
			Container: name, ContainerID: id, Argv: probe.Exec.Command, Timeout: timeoutOf(&probe)}}})
		return
	}
}

func periodOf(probe *v1alpha1.ActivePassiveProbe) time.Duration {
	return cmp.Or(time.Duration(max(0, probe.PeriodSeconds))*time.Second, probePeriod)
}

func timeoutOf(probe *v1alpha1.ActivePassiveProbe) time.Duration {
	return cmp.Or(time.Duration(max(0, probe.TimeoutSeconds))*time.Second, probeTimeout)
}

// asksOnly tells whether the plan does nothing but ask, which an old world cannot
// make wrong.
func (p *plan) asksOnly() bool {
	for _, step := range p.Steps {
		for _, chain := range step {
			if slices.ContainsFunc(chain, func(a action.Action) bool { return a.Verb != action.Exec }) {
				return false
			}
		}
	}
	return !p.books
}
