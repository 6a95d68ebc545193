package statefulsingleton

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// node is what matters of a pod's Node.
type node struct {
	ready, outOfService bool
	missing             bool // there is no Node of that name
	missingSince        time.Time
}

func nodeOf(n *corev1.Node) node {
	var known node
	known.ready = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	known.outOfService = slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	})
	return known
}

// fenced tells whether the machine of the pod is off, by an administrator's word.
func (w *world) fenced(m *member) bool {
	return m.node.outOfService || m.node.missing && w.now.Sub(m.node.missingSince) >= fenceAfter
}

// fenceAfter is for how long a Node must be gone before its machine counts as
// off: one that is deleted by mistake comes back when its kubelet restarts.
const fenceAfter = time.Minute

// revoke sees to it that a pod whose machine is off does not start its program
// when that machine is switched on again: one with the gate loses its grant, and
// asks for another; one without is deleted. It comes before the next pod is
// granted.
func revoke(w *world, p *plan) {
	if w.object == nil || w.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range w.pods {
		if !w.fenced(m) || stopped(m.pod) {
			continue
		}
		switch {
		case m.granted():
			pod := m.pod.DeepCopy()
			delete(pod.Annotations, v1.AnnotationGrant)
			controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
			chains = append(chains, action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonFenced,
				Detail: "its Node " + pod.Spec.NodeName + " is out of service"}})
		case !m.gated && !m.terminating() && !podstate.Ended(m.pod) && !isMirror(m.pod) && !w.newcomer(m):
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonFenced,
				Detail: "its Node " + m.pod.Spec.NodeName + " is out of service"}})
		}
	}
	p.do(chains...)
}
