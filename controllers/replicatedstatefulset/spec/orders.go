package spec

import v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"

// OrderNames are all orders, in the order of their evaluation.
var OrderNames = []v1alpha1.OrderName{v1alpha1.OrderSeedFrom, v1alpha1.OrderSwitchoverTo}

// AnnotationOf maps an order to the annotation by which a user gives it once.
var AnnotationOf = map[v1alpha1.OrderName]string{
	v1alpha1.OrderSeedFrom:     v1alpha1.AnnotationSeedFrom,
	v1alpha1.OrderSwitchoverTo: v1alpha1.AnnotationSwitchoverTo,
}

// OrderIn returns the order of that name in a spec. It returns nil if there is none.
func OrderIn(spec *v1alpha1.ReplicatedStatefulSetSpec, name v1alpha1.OrderName) *v1alpha1.MemberOrder {
	if name == v1alpha1.OrderSeedFrom {
		return spec.SeedFrom
	}
	return spec.SwitchoverTo
}
