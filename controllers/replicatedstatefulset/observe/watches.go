package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// RequestFor returns the request for the set of a child, whose name is in the child's label app.
func RequestFor(o client.Object) []reconcile.Request {
	if name := o.GetLabels()[v1alpha1.LabelApp]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{
			Namespace: o.GetNamespace(),
			Name:      name,
		}}}
	}
	return nil
}

// OnNode returns requests for the sets that have pods on a Node.
func (r *Reader) OnNode(ctx context.Context, n client.Object) []reconcile.Request {
	return r.setsOf(ctx, func(p *corev1.Pod) bool { return p.Spec.NodeName == n.GetName() })
}

// setsOf returns requests for the sets of the pods for which wanted returns true.
func (r *Reader) setsOf(ctx context.Context, wanted func(*corev1.Pod) bool) []reconcile.Request {
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list the pods of all sets")
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if wanted(&pods.Items[i]) {
			requests = append(requests, RequestFor(&pods.Items[i])...)
		}
	}
	return requests
}

// OnConfigMap returns requests for all sets with a ruleSelector, because a ConfigMap that left the
// selection cannot be recognized.
func (r *Reader) OnConfigMap(ctx context.Context, o client.Object) []reconcile.Request {
	var sets v1alpha1.ReplicatedStatefulSetList
	if err := r.Cache.List(ctx, &sets, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list ReplicatedStatefulSets", "namespace", o.GetNamespace())
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		if sets.Items[i].Spec.RuleSelector != nil {
			requests = append(
				requests,
				reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])},
			)
		}
	}
	return requests
}
