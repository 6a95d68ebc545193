package replicatedstatefulset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
)

// +kubebuilder:webhook:path=/validate-clusterlabs-org-v1alpha1-replicatedstatefulset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=clusterlabs.org,resources=replicatedstatefulsets,verbs=create;update,versions=v1alpha1,name=replicatedstatefulsets.clusterlabs.org,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups="",resources=services,verbs=get;create,roleName=webhook-role
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;create,roleName=webhook-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;create,roleName=webhook-role

// validator is the admission webhook. It fails open (failurePolicy Ignore): rules that must always
// hold are in the schema, and a condition reports errors that the webhook missed.
type validator struct {
	// live reads from the API server, because a cache is not worthwhile for these few reads.
	live client.Reader
	// court makes dry runs of the children for requesters who may create pods themselves.
	court *trial.Court
	// kinds maps objects to the names of their kinds.
	kinds client.Client
}

var _ admission.Validator[*v1alpha1.ReplicatedStatefulSet] = &validator{}

// SetupWebhook registers the admission webhooks of ReplicatedStatefulSets and of evictions.
// Requested evictions of primaries are recorded in the book, which is a ConfigMap of that name. The
// eviction webhook serves no request without a token, because only the token restricts the endpoint
// to the API server.
func SetupWebhook(mgr ctrl.Manager, book types.NamespacedName, token func() string) error {
	mgr.GetWebhookServer().Register(EvictionPath, onlyWith(token, &admission.Webhook{Handler: &evictionHandler{
		live: mgr.GetAPIReader(), writer: mgr.GetClient(), book: book, now: time.Now}}))
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ReplicatedStatefulSet{}).
		WithValidator(&validator{
			live:  mgr.GetAPIReader(),
			court: trial.NewCourt(mgr.GetClient()),
			kinds: mgr.GetClient(),
		}).
		Complete()
}

func (v *validator) ValidateCreate(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) (admission.Warnings, error) {
	set = withDefaults(set)
	warned, errs := append(warnings(set), idleOrders(set)...), slices.Concat(validate(set), validateOverrides(set), validateMaintenance(set))
	if len(errs) == 0 {
		tried, faults := v.tryChildren(ctx, set, v.foreign)
		warned, errs = append(warned, tried...), faults
	}
	return warned, refuse(set, errs)
}

// ValidateUpdate checks only changed fields, so that a finalizer can be removed from an invalid
// set, and an outdated order does not block an update.
func (v *validator) ValidateUpdate(ctx context.Context, old, set *v1alpha1.ReplicatedStatefulSet) (admission.Warnings, error) {
	if set.DeletionTimestamp != nil {
		return nil, nil
	}
	old.Spec.DeletionProtection = set.Spec.DeletionProtection // it can always be switched off
	same := apiequality.Semantic.DeepEqual
	var errs field.ErrorList
	old, set = withDefaults(old), withDefaults(set)
	if overrides(old) != overrides(set) {
		errs = validateOverrides(set)
	}
	if same(old.Spec, set.Spec) {
		if !same(old.Labels, set.Labels) {
			errs = append(errs, validateLabels(set.Labels, field.NewPath("metadata", "labels"))...)
		}
		if same(old.Annotations, set.Annotations) {
			return nil, refuse(set, errs)
		}
		return strangeAnnotations(set.Annotations), refuse(set, errs)
	}
	if unreadParts(old).Any() { // the previous spec is unknown
		return v.ValidateCreate(ctx, set)
	}
	errs = append(errs, validate(set)...)
	if !same(old.Spec.SeedFrom, set.Spec.SeedFrom) || !same(old.Spec.SwitchoverTo, set.Spec.SwitchoverTo) {
		errs = append(errs, validateOrders(set)...)
	}
	if !same(old.Spec.Maintenance, set.Spec.Maintenance) {
		errs = append(errs, validateMaintenance(set)...)
	}
	errs = append(
		errs,
		claim.CheckChange(
			old.Spec.Pod.VolumeClaimTemplates,
			set.Spec.Pod.VolumeClaimTemplates,
			field.NewPath("spec", "pod", "volumeClaimTemplates"),
		)...,
	)
	warned := warnings(set)
	// An invalid old spec cannot be built, so the new one always gets a dry run.
	if len(errs) == 0 && (len(validate(old)) > 0 || !same(wantedChildren(old), wantedChildren(set))) {
		tried, faults := v.tryChildren(ctx, set, ours)
		warned, errs = append(warned, tried...), faults
	}
	return warned, refuse(set, errs)
}

func (v *validator) ValidateDelete(context.Context, *v1alpha1.ReplicatedStatefulSet) (admission.Warnings, error) {
	return nil, nil
}

func refuse(set *v1alpha1.ReplicatedStatefulSet, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(
		v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet").GroupKind(),
		set.Name,
		errs,
	)
}

// overrides returns the orders in annotations.
func overrides(set *v1alpha1.ReplicatedStatefulSet) [2]string {
	return [2]string{set.Annotations[v1alpha1.AnnotationSeedFrom], set.Annotations[v1alpha1.AnnotationSwitchoverTo]}
}

// warnings returns warnings about valid settings that may not be intended.
func warnings(set *v1alpha1.ReplicatedStatefulSet) admission.Warnings {
	var texts admission.Warnings
	switch *set.Spec.Replicas {
	case 1:
		texts = append(
			texts,
			"spec.replicas is 1: if this member is lost, no other member can take over",
		)
	case 2:
		texts = append(
			texts,
			"spec.replicas is 2: if one member is lost, no majority is left; the min to survive a loss is 3",
		)
	}
	pod := &set.Spec.Pod
	if _, ok := pod.Commands[v1alpha1.CommandPreStop]; ok && len(pod.Containers) > 0 && hasPreStop(&pod.Containers[commandContainer(pod)]) {
		texts = append(
			texts,
			"spec.pod.commands[preStop] is ignored: the container has its own preStop hook",
		)
	}
	texts = append(texts, oddTimes(&set.Spec)...)
	texts = append(texts, oddMaintenance(set)...)
	if s := set.Spec.RuleSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		texts = append(texts, "spec.ruleSelector is empty and selects every ConfigMap of the namespace: when one of them changes, all members are recreated; "+
			"select the intended ConfigMaps with matchLabels, or remove it")
	}
	return append(texts, strangeAnnotations(set.Annotations)...)
}

// idleOrders warns of orders in the spec of an object that is being created. A member that no
// longer exists is not an error, because a backup or a repository may contain old orders.
func idleOrders(set *v1alpha1.ReplicatedStatefulSet) (texts admission.Warnings) {
	for _, name := range orderNames {
		if o := orderIn(&set.Spec, name); o != nil {
			texts = append(texts, fmt.Sprintf(
				"spec.%s.id: order %s is ignored, because the object is created with it; to carry it out, give the order a new id after the object is created", name, o.ID))
		}
	}
	return texts
}

// oddMaintenance warns of members in spec.maintenance that do not exist.
func oddMaintenance(set *v1alpha1.ReplicatedStatefulSet) (texts admission.Warnings) {
	count := int(max(*set.Spec.Replicas, set.Status.RestoreReplicas))
	for i, name := range set.Spec.Maintenance {
		if n, ok := ordinalOf(set, name); ok && n >= count {
			texts = append(texts, fmt.Sprintf(
				"spec.maintenance[%d] is %s, and there is no such member; it will be parked when it is created. The members are %s to %s",
				i, name, memberName(set, 0), memberName(set, max(0, count-1))))
		}
	}
	return texts
}

// oddTimes warns of durations that are below the min or above the max.
func oddTimes(setSpec *v1alpha1.ReplicatedStatefulSetSpec) (texts admission.Warnings) {
	warn := func(path string, said v1alpha1.Duration, least, most time.Duration) {
		switch d, err := parseDuration(string(said)); {
		case err != nil || d == 0:
		case d < least:
			texts = append(
				texts,
				fmt.Sprintf(
					"%s is %s, which is replaced by %s, the min; set %s or more",
					path, said, least, least,
				),
			)
		case d > most:
			texts = append(
				texts,
				fmt.Sprintf(
					"%s is %s, which is replaced by %s, the max; set %s or less",
					path, said, most, most,
				),
			)
		}
	}
	warn("spec.reconcileInterval", setSpec.ReconcileInterval, minInterval, maxTime)
	warn("spec.failureWindow", setSpec.FailureWindow, 0, maxWindow)
	for _, name := range slices.Sorted(maps.Keys(setSpec.Pod.Commands)) {
		if name == v1alpha1.CommandPreStop { // its timeout is the grace period
			continue
		}
		warn(fmt.Sprintf("spec.pod.commands[%s].timeout", name), setSpec.Pod.Commands[name].Timeout, minTimeout, maxTime)
	}
	return texts
}

// strangeAnnotations warns of unknown annotations that look like an order. Otherwise nothing would
// report that such an order is ignored.
func strangeAnnotations(annotations map[string]string) (texts admission.Warnings) {
	orders := []string{v1alpha1.AnnotationSeedFrom, v1alpha1.AnnotationSwitchoverTo}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		_, name, _ := strings.Cut(key, "/")
		meant := func(order string) bool {
			return letters(strings.TrimPrefix(order, v1alpha1.Prefix)) == letters(cmp.Or(name, key))
		}
		if !slices.Contains(orders, key) && (strings.HasPrefix(key, v1alpha1.Prefix) || slices.ContainsFunc(orders, meant)) {
			texts = append(
				texts,
				fmt.Sprintf(
					"metadata.annotations[%s] is unknown and ignored; the operator supports %s",
					key, strings.Join(orders, " and "),
				),
			)
		}
	}
	return texts
}

// letters returns the letters of a name in lower case, so that seedFrom, seed_from and seed-from
// are equal.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// wantedChildren returns the objects that the operator creates for a set, whatever its number of members.
func wantedChildren(set *v1alpha1.ReplicatedStatefulSet) []client.Object {
	objects := []client.Object{buildStatefulSet(set, 1, hashes{})}
	if hasBudgets(set) {
		objects = append(objects, buildBudget(set))
	}
	if hasBudgets(set) && handsOver(set) {
		objects = append(objects, buildPrimaryBudget(set, 1))
	}
	for _, service := range buildServices(set) {
		objects = append(objects, service)
	}
	return objects
}

// homes maps path prefixes of children to paths in the set. The first match wins.
var homes = []struct{ child, set string }{
	{"spec.template.spec.tolerations", "spec.tolerations"},
	{"spec.template.spec.affinity", "spec.affinity"},
	{"spec.template.spec.imagePullSecrets", "spec.imagePullSecrets"},
	{"spec.template.spec.serviceAccountName", "spec.serviceAccountName"},
	{"spec.template.spec", "spec.pod"},
	{"spec.template.metadata", "spec.pod"},
	{"spec.template", "spec.pod"},
	{"spec.volumeClaimTemplates", "spec.pod.volumeClaimTemplates"},
	{"spec.ports", "spec.servicePorts"},
}

// pathInSet returns the path in the set for the path of a child's field.
func pathInSet(path string) string {
	for _, p := range homes {
		if rest, ok := strings.CutPrefix(path, p.child); ok {
			return p.set + rest
		}
	}
	if path == "" {
		return "spec"
	}
	return path
}

// tryChildren tests by dry run whether the API server would accept the children. Invalid (422)
// rejects the set. Forbidden may be a temporary quota or policy, and other errors are unrelated to
// the set: both are warnings. taken handles an object whose name exists. Errors about fields refer
// to the fields that the user wrote. All other text is our own. The results are only for requesters
// who may create pods themselves.
func (v *validator) tryChildren(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet,
	taken func(context.Context, *v1alpha1.ReplicatedStatefulSet, client.Object) field.ErrorList) (admission.Warnings, field.ErrorList) {
	end, why := v.court.Open(ctx, set.Namespace)
	if why != "" {
		return admission.Warnings{"spec.pod was not tested by a dry run: " + why}, nil
	}
	defer end()
	var warned admission.Warnings
	for _, object := range wantedChildren(set) {
		object.SetOwnerReferences(nil) // the owner may not exist yet
		leftOut, err := v.court.Try(ctx, object, pathInSet)
		warned = append(warned, leftOut...)
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			if errs := taken(ctx, set, object); len(errs) > 0 {
				return warned, errs
			}
		case apierrors.IsInvalid(err):
			return warned, rejection.Explain(err, places{set}.ofChild)
		default:
			warned = append(
				warned,
				fmt.Sprintf(
					"%s could not be tested by a dry run, and cannot be created until this is resolved: %s",
					describe(v.kinds, object), trial.WhyNot(err),
				),
			)
		}
	}
	return warned, v.tryPod(ctx, set)
}

// tryPod makes dry runs of a pod of the set and its claims, because older API servers do not
// validate the templates of a StatefulSet. Other errors were reported for the StatefulSet already,
// or are temporary.
func (v *validator) tryPod(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	stateful := buildStatefulSet(set, 1, hashes{})
	pod := buildPod(stateful, 0)
	pod.SetOwnerReferences(nil) // the StatefulSet may not exist yet
	for i := range stateful.Spec.VolumeClaimTemplates {
		c := stateful.Spec.VolumeClaimTemplates[i].DeepCopy()
		c.Namespace = stateful.Namespace
		if errs := v.invalid(ctx, c, fmt.Sprintf("spec.volumeClaimTemplates[%d]", i)); len(errs) > 0 {
			return errs
		}
	}
	return v.invalid(ctx, pod, "spec.template")
}

// invalid returns why the API server would reject an object, with paths of the set. below is the
// path in the StatefulSet from which the object is built.
func (v *validator) invalid(ctx context.Context, object client.Object, below string) field.ErrorList {
	at := func(path string) string { return pathInSet(strings.TrimSuffix(below+"."+path, ".")) }
	if _, err := v.court.Try(ctx, object, at); apierrors.IsInvalid(err) {
		return rejection.Explain(err, at)
	}
	return nil
}

// ours accepts any existing object as the one that the operator created.
func ours(context.Context, *v1alpha1.ReplicatedStatefulSet, client.Object) field.ErrorList {
	return nil
}

// foreign rejects the name of a new set if another object already has the name of a child. It
// accepts a child of a just deleted set of the same name, which will be gone soon.
func (v *validator) foreign(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, object client.Object) field.ErrorList {
	found := object.DeepCopyObject().(client.Object)
	if err := v.live.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return nil // gone meanwhile; otherwise a condition reports it
	}
	if owner := metav1.GetControllerOf(found); owner != nil && owner.Kind == "ReplicatedStatefulSet" && owner.Name == set.Name {
		if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && gv.Group == v1alpha1.GroupVersion.Group {
			return nil
		}
	}
	whose := "belongs to another object"
	if wasChild(found) {
		whose = "has no owner, like an object restored from a backup"
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), set.Name, fmt.Sprintf(
		"%s already exists and %s; choose another name, or delete it", describe(v.kinds, found), whose))}
}

// describe returns the kind and name of an object.
func describe(c client.Client, object client.Object) string {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return object.GetName()
	}
	return gvk.Kind + " " + object.GetName()
}
