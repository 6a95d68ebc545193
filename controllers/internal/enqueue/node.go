package enqueue

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// NodeTurned accepts Node events that can change whether a pod is lost or its Node is cordoned.
var NodeTurned = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, wasNode := e.ObjectOld.(*corev1.Node)
		now, isNode := e.ObjectNew.(*corev1.Node)
		return wasNode && isNode && (was.UID != now.UID || was.Spec.Unschedulable != now.Spec.Unschedulable ||
			!apiequality.Semantic.DeepEqual(was.Spec.Taints, now.Spec.Taints) ||
			nodeReadiness(was) != nodeReadiness(now))
	},
}

// nodeReadiness returns the status of condition Ready of a Node.
func nodeReadiness(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}
