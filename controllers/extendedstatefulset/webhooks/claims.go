package webhooks

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// orphansExist rejects the name of a deleted set whose StatefulSets were orphaned. Their pods use the
// claims that the new set would use.
func (v *Validator) orphansExist(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	var list appsv1.StatefulSetList
	if v.Live.List(ctx, &list, observe.OfSet(set)...) != nil {
		return nil // the operator reports it in a condition
	}
	for i := range list.Items {
		if _, _, ok := children.ParseChild(set.Name, list.Items[i].Name); ok {
			if errs := elsewhere(set, &list.Items[i]); len(errs) > 0 {
				return errs
			}
		}
	}
	return nil
}

// claimsTrial is the max number of claims of a new set that admission reads. The operator reports
// problems with further claims in a condition.
const claimsTrial = 32

// claimsInUse rejects a new set whose claims would belong to another owner: to a StatefulSet with the
// same claim names, or to the owner of existing claims that has not given consent.
func (v *Validator) claimsInUse(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, spec.ClaimsTrialTime)
	defer cancel()
	at := field.NewPath("metadata", "name")
	w := &facts.World{Set: set, Zones: children.ZonesOf(set, &set.Status), Replicas: spec.ReplicasOf(set)}
	read, taken := 0, []metav1.Object(nil)
	for _, name := range facts.ClaimNames(w) {
		if read++; read > claimsTrial {
			break
		}
		var one corev1.PersistentVolumeClaim
		if v.Live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, &one) == nil && !children.MayHave(set.Name, &one) {
			taken = append(taken, &one)
		}
	}
	for _, t := range set.Spec.Template.Spec.VolumeClaimTemplates {
		other, err := observe.ClaimantOf(ctx, v.Live, set.Namespace, t.Name, w.Zones[0].Stem(set.Name))
		if err == nil && other != "" {
			return field.ErrorList{field.Invalid(at, set.Name, fmt.Sprintf(
				"the claims of template %q have the same names as those of StatefulSet %s; choose another name, or delete the StatefulSet first: its claims are kept, and you can assign each of them: %s",
				t.Name, other, children.Consent(set.Namespace, set.Name, "<claim>")))}
		}
	}
	if len(taken) > 0 {
		return field.ErrorList{field.Invalid(at, set.Name, children.AskOwner(set.Namespace, set.Name, taken...)+"; or choose another name")}
	}
	return nil
}
