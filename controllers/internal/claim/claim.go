// Package claim defines the names of a member's PersistentVolumeClaims, the changes that Kubernetes can
// carry out, and how claims are added to a pod.
package claim

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Name returns the name of a member's claim: set, template and ID of the member.
func Name(set, template, id string) string { return set + "-" + template + "-" + id }

// Mount adds the claims to the volumes of a pod, each under the name of its template. It replaces pod
// volumes of the same name, as StatefulSet does.
func Mount(spec *corev1.PodSpec, templates []corev1.PersistentVolumeClaim, nameOf func(template string) string) {
	mounted := make(map[string]bool, len(templates))
	volumes := make([]corev1.Volume, 0, len(templates)+len(spec.Volumes))
	for _, t := range templates {
		mounted[t.Name] = true
		volumes = append(volumes, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: nameOf(t.Name)},
		}})
	}
	for _, v := range spec.Volumes {
		if !mounted[v.Name] {
			volumes = append(volumes, v)
		}
	}
	spec.Volumes = volumes
}

// Storage returns the storage request of a claim; zero if there is none.
func Storage(c *corev1.PersistentVolumeClaim) resource.Quantity {
	return c.Spec.Resources.Requests[corev1.ResourceStorage]
}

// Adjust returns a copy of live with the mutable fields of the template, and a description of the
// changes; "" if there are none. The storage request only increases. The volumeAttributesClassName
// (KEP-3751) is set if the template specifies one. Otherwise the claim keeps its class, which may be a
// default.
func Adjust(live, template *corev1.PersistentVolumeClaim) (adjusted *corev1.PersistentVolumeClaim, changes string) {
	adjusted = live.DeepCopy()
	var found []string
	if want, have := Storage(template), Storage(live); want.Cmp(have) > 0 {
		if adjusted.Spec.Resources.Requests == nil {
			adjusted.Spec.Resources.Requests = corev1.ResourceList{}
		}
		adjusted.Spec.Resources.Requests[corev1.ResourceStorage] = want
		found = append(found, "grows to "+want.String())
	}
	if class := attributesClass(template); class != "" && class != attributesClass(live) {
		adjusted.Spec.VolumeAttributesClassName = &class
		found = append(found, "gets volumeAttributesClassName "+class)
	}
	return adjusted, strings.Join(found, ", ")
}

// attributesClass returns the volumeAttributesClassName of a claim; "" if there is none.
func attributesClass(c *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(c.Spec.VolumeAttributesClassName, "")
}

// sameButAdjustable reports whether two templates differ only in fields that Adjust changes.
func sameButAdjustable(a, b *corev1.PersistentVolumeClaim) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Spec.Resources.Requests, corev1.ResourceStorage)
	delete(b.Spec.Resources.Requests, corev1.ResourceStorage)
	a.Spec.VolumeAttributesClassName, b.Spec.VolumeAttributesClassName = nil, nil
	a.Status, b.Status = corev1.PersistentVolumeClaimStatus{}, corev1.PersistentVolumeClaimStatus{}
	return apiequality.Semantic.DeepEqual(a, b)
}

// CheckChange returns errors for changes of claim templates that cannot be carried out. Only growth of
// the storage request and a different volumeAttributesClassName are allowed. claims is the path of the
// templates.
func CheckChange(old, set []corev1.PersistentVolumeClaim, claims *field.Path) field.ErrorList {
	var errs field.ErrorList
	was := map[string]*corev1.PersistentVolumeClaim{}
	for i := range old {
		was[old[i].Name] = &old[i]
	}
	for i := range set {
		now := &set[i]
		before := was[now.Name]
		delete(was, now.Name)
		switch {
		case before == nil:
			errs = append(errs, field.Forbidden(claims.Index(i), fmt.Sprintf(
				"claim template %q is new; claim templates cannot be added or renamed after creation", now.Name)))
		case !sameButAdjustable(before, now):
			errs = append(errs, field.Forbidden(claims.Index(i), fmt.Sprintf(
				"only the requested storage and the volumeAttributesClassName of claim template %q may change, and the storage may only grow", now.Name)))
		case attributesClass(before) != "" && attributesClass(now) == "":
			errs = append(errs, field.Forbidden(claims.Index(i).Child("spec", "volumeAttributesClassName"), fmt.Sprintf(
				"the class of a volume cannot be removed; name %q or another VolumeAttributesClass", attributesClass(before))))
		default:
			if have, want := Storage(before), Storage(now); want.Cmp(have) < 0 {
				errs = append(errs, field.Forbidden(claims.Index(i).Child("spec", "resources", "requests", "storage"), fmt.Sprintf(
					"%s is less than the present %s; volumes cannot shrink", want.String(), have.String())))
			}
		}
	}
	for i := range old {
		if name := old[i].Name; was[name] != nil {
			errs = append(errs, field.Forbidden(claims, fmt.Sprintf(
				"claim template %q is missing; claim templates cannot be removed or renamed after creation", name)))
		}
	}
	return errs
}
