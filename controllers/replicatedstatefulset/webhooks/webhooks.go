package webhooks

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
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// +kubebuilder:webhook:path=/validate-clusterlabs-org-v1alpha1-replicatedstatefulset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=clusterlabs.org,resources=replicatedstatefulsets,verbs=create;update,versions=v1alpha1,name=replicatedstatefulsets.clusterlabs.org,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups="",resources=services,verbs=get;create,roleName=webhook-role
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;create,roleName=webhook-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;create,roleName=webhook-role

// Validator is the admission webhook. It fails open (failurePolicy Ignore): rules that must always
// hold are in the schema, and a condition reports errors that the webhook missed.
type Validator struct {
	// Live reads from the API server, because a cache is not worthwhile for these few reads.
	Live client.Reader
	// Court makes dry runs of the children for requesters who may create pods themselves.
	Court *trial.Court
	// Kinds maps objects to the names of their kinds.
	Kinds client.Client
	// Agent returns the image with the agent of spec.application. It may be nil.
	Agent func(context.Context) (string, error)
}

var _ admission.Validator[*v1alpha1.ReplicatedStatefulSet] = &Validator{}

// SetupWebhook registers the admission webhooks of ReplicatedStatefulSets and of evictions.
// Requested evictions of primaries are recorded in the book, which is a ConfigMap of that name. The
// eviction webhook serves no request without a token, because only the token restricts the endpoint
// to the API server.
func SetupWebhook(mgr ctrl.Manager, book types.NamespacedName, token func() string, agentImage func(context.Context) (string, error)) error {
	mgr.GetWebhookServer().Register(EvictionPath, OnlyWith(token, &admission.Webhook{Handler: &EvictionHandler{
		Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Book: book, Now: time.Now}}))
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ReplicatedStatefulSet{}).
		WithValidator(&Validator{
			Live:  mgr.GetAPIReader(),
			Court: trial.NewCourt(mgr.GetClient()),
			Kinds: mgr.GetClient(),
			Agent: agentImage,
		}).
		Complete()
}

// ValidateCreate validates a new set. If it is valid, the API server tests its children by a dry
// run.
func (v *Validator) ValidateCreate(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) (admission.Warnings, error) {
	set = spec.WithDefaults(v.withAgent(ctx, set))
	warned, errs := append(Warnings(set), ignoredOrders(set)...), slices.Concat(spec.Validate(set), spec.ValidateOverrides(set), spec.ValidateMaintenance(set))
	if len(errs) == 0 {
		tried, faults := v.tryChildren(ctx, set, v.foreign)
		warned, errs = append(warned, tried...), faults
	}
	return warned, refuse(set, errs)
}

// ValidateUpdate checks only changed fields, so that a finalizer can be removed from an invalid
// set, and an outdated order does not block an update.
func (v *Validator) ValidateUpdate(ctx context.Context, old, set *v1alpha1.ReplicatedStatefulSet) (admission.Warnings, error) {
	if set.DeletionTimestamp != nil {
		return nil, nil
	}
	old.Spec.DeletionProtection = set.Spec.DeletionProtection // it can always be switched off
	same := apiequality.Semantic.DeepEqual
	var errs field.ErrorList
	old, set = spec.WithDefaults(v.withAgent(ctx, old)), spec.WithDefaults(v.withAgent(ctx, set))
	if overrides(old) != overrides(set) {
		errs = spec.ValidateOverrides(set)
	}
	if same(old.Spec, set.Spec) {
		if !same(old.Labels, set.Labels) {
			errs = append(errs, spec.ValidateLabels(set.Labels, field.NewPath("metadata", "labels"))...)
		}
		if same(old.Annotations, set.Annotations) {
			return nil, refuse(set, errs)
		}
		return StrangeAnnotations(set.Annotations), refuse(set, errs)
	}
	if spec.UnreadParts(old).Any() { // the previous spec is unknown
		return v.ValidateCreate(ctx, set)
	}
	errs = append(errs, spec.Validate(set)...)
	errs = append(errs, application.ValidateUpdate(old, set)...)
	if !same(old.Spec.SeedFrom, set.Spec.SeedFrom) || !same(old.Spec.SwitchoverTo, set.Spec.SwitchoverTo) {
		errs = append(errs, spec.ValidateOrders(set)...)
	}
	if !same(old.Spec.Maintenance, set.Spec.Maintenance) {
		errs = append(errs, spec.ValidateMaintenance(set)...)
	}
	errs = append(
		errs,
		claim.CheckChange(
			old.Spec.Pod.VolumeClaimTemplates,
			set.Spec.Pod.VolumeClaimTemplates,
			field.NewPath("spec", "pod", "volumeClaimTemplates"),
		)...,
	)
	warned := Warnings(set)
	// An invalid old spec cannot be built, so the new one always gets a dry run.
	if len(errs) == 0 && (len(spec.Validate(old)) > 0 || !same(wantedChildren(old), wantedChildren(set))) {
		tried, faults := v.tryChildren(ctx, set, ours)
		warned, errs = append(warned, tried...), faults
	}
	return warned, refuse(set, errs)
}

// withAgent returns a set whose children can be tested by a dry run before the controller has recorded
// the agent.
func (v *Validator) withAgent(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	if set.Spec.Application == nil || set.Status.Agent != nil || v.Agent == nil {
		return set
	}
	image, err := v.Agent(ctx)
	if err != nil { // a condition of the object reports it
		image = unknownAgent
	}
	set = set.DeepCopy()
	set.Status.Agent = &v1alpha1.AgentStatus{Image: image, Mount: v1alpha1.AgentInitContainer}
	return set
}

// unknownAgent is the image of the agent in a dry run while that of the operator is unknown.
const unknownAgent = "agent"

// ValidateDelete allows every deletion. A policy enforces spec.deletionProtection.
func (v *Validator) ValidateDelete(context.Context, *v1alpha1.ReplicatedStatefulSet) (admission.Warnings, error) {
	return nil, nil
}

// refuse returns the error for these field errors. It returns nil if there are none.
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

// Warnings returns warnings about valid settings that may not be intended.
func Warnings(set *v1alpha1.ReplicatedStatefulSet) admission.Warnings {
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
	if _, ok := pod.Commands[v1alpha1.CommandPreStop]; ok && len(pod.Containers) > 0 && spec.HasPreStop(&pod.Containers[pod.CommandContainer()]) {
		texts = append(
			texts,
			"spec.pod.commands[preStop] is ignored: the container has its own preStop hook",
		)
	}
	texts = append(texts, application.Warnings(set)...)
	texts = append(texts, OddTimes(&set.Spec)...)
	texts = append(texts, missingMaintained(set)...)
	if s := set.Spec.RuleSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		texts = append(texts, "spec.ruleSelector is empty and selects every ConfigMap of the namespace: when one of them changes, all members are recreated; "+
			"select the intended ConfigMaps with matchLabels, or remove it")
	}
	return append(texts, StrangeAnnotations(set.Annotations)...)
}

// ignoredOrders warns of orders in the spec of an object that is being created. A member that no
// longer exists is not an error, because a backup or a repository may contain old orders.
func ignoredOrders(set *v1alpha1.ReplicatedStatefulSet) (texts admission.Warnings) {
	for _, name := range spec.OrderNames {
		if o := spec.OrderIn(&set.Spec, name); o != nil {
			texts = append(texts, fmt.Sprintf(
				"spec.%s.id: order %s is ignored, because the object is created with it; to carry it out, give the order a new id after the object is created", name, o.ID))
		}
	}
	return texts
}

// missingMaintained warns of members in spec.maintenance that do not exist.
func missingMaintained(set *v1alpha1.ReplicatedStatefulSet) (texts admission.Warnings) {
	count := int(max(*set.Spec.Replicas, set.Status.RestoreReplicas))
	for i, name := range set.Spec.Maintenance {
		if n, ok := spec.OrdinalOf(set, name); ok && n >= count {
			texts = append(texts, fmt.Sprintf(
				"spec.maintenance[%d] is %s, and there is no such member; it will be parked when it is created. The members are %s to %s",
				i, name, spec.MemberName(set, 0), spec.MemberName(set, max(0, count-1))))
		}
	}
	return texts
}

// OddTimes warns of durations that are below the min or above the max.
func OddTimes(setSpec *v1alpha1.ReplicatedStatefulSetSpec) (texts admission.Warnings) {
	warn := func(path string, value v1alpha1.Duration, least, most time.Duration) {
		switch d, err := spec.ParseDuration(string(value)); {
		case err != nil || d == 0:
		case d < least:
			texts = append(
				texts,
				fmt.Sprintf(
					"%s is %s, which is replaced by %s, the min; set %s or more",
					path, value, least, least,
				),
			)
		case d > most:
			texts = append(
				texts,
				fmt.Sprintf(
					"%s is %s, which is replaced by %s, the max; set %s or less",
					path, value, most, most,
				),
			)
		}
	}
	warn("spec.reconcileInterval", setSpec.ReconcileInterval, spec.MinInterval, spec.MaxTime)
	warn("spec.failureWindow", setSpec.FailureWindow, 0, spec.MaxWindow)
	for _, name := range slices.Sorted(maps.Keys(setSpec.Pod.Commands)) {
		if name == v1alpha1.CommandPreStop { // its timeout is the grace period
			continue
		}
		warn(fmt.Sprintf("spec.pod.commands[%s].timeout", name), setSpec.Pod.Commands[name].Timeout, spec.MinTimeout, spec.MaxTime)
	}
	return texts
}

// StrangeAnnotations warns of unknown annotations that look like an order. Otherwise nothing would
// report that such an order is ignored.
func StrangeAnnotations(annotations map[string]string) (texts admission.Warnings) {
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

// wantedChildren returns the objects that the operator creates for a set, whatever its number of
// members.
func wantedChildren(set *v1alpha1.ReplicatedStatefulSet) []client.Object {
	objects := []client.Object{children.BuildStatefulSet(set, 1, children.Hashes{})}
	if spec.HasBudgets(set) {
		objects = append(objects, children.BuildBudget(set))
	}
	if spec.HasBudgets(set) && spec.HandsOver(set) {
		objects = append(objects, children.BuildPrimaryBudget(set, 1))
	}
	for _, service := range children.BuildServices(set) {
		objects = append(objects, service)
	}
	return objects
}

// tryChildren tests by dry run whether the API server would accept the children. Invalid (422)
// rejects the set. Forbidden may be a temporary quota or policy, and other errors are unrelated to
// the set: both are warnings. taken handles an object whose name exists. Errors about fields refer
// to the fields that the user wrote. All other text is our own. The results are only for requesters
// who may create pods themselves.
func (v *Validator) tryChildren(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet,
	taken func(context.Context, *v1alpha1.ReplicatedStatefulSet, client.Object) field.ErrorList) (admission.Warnings, field.ErrorList) {
	end, why := v.Court.Open(ctx, set.Namespace)
	if why != "" {
		return admission.Warnings{"spec.pod was not tested by a dry run: " + why}, nil
	}
	defer end()
	var warned admission.Warnings
	for _, object := range wantedChildren(set) {
		object.SetOwnerReferences(nil) // the owner may not exist yet
		leftOut, err := v.Court.Try(ctx, object, spec.PathInSet)
		warned = append(warned, leftOut...)
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			if errs := taken(ctx, set, object); len(errs) > 0 {
				return warned, errs
			}
		case apierrors.IsInvalid(err):
			return warned, rejection.Explain(err, spec.Places{Set: set}.OfChild)
		default:
			warned = append(
				warned,
				fmt.Sprintf(
					"%s could not be tested by a dry run, and cannot be created until this is resolved: %s",
					describe(v.Kinds, object), trial.WhyNot(err),
				),
			)
		}
	}
	return warned, v.tryPod(ctx, set)
}

// tryPod makes dry runs of a pod of the set and its claims, because older API servers do not
// validate the templates of a StatefulSet. Other errors were reported for the StatefulSet already,
// or are temporary.
func (v *Validator) tryPod(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	stateful := children.BuildStatefulSet(set, 1, children.Hashes{})
	pod := children.BuildPod(stateful, 0)
	pod.SetOwnerReferences(nil) // the StatefulSet may not exist yet
	for i := range stateful.Spec.VolumeClaimTemplates {
		c := stateful.Spec.VolumeClaimTemplates[i].DeepCopy()
		c.Namespace = stateful.Namespace
		if errs := v.dryRun(ctx, c, fmt.Sprintf("spec.volumeClaimTemplates[%d]", i)); len(errs) > 0 {
			return errs
		}
	}
	return v.dryRun(ctx, pod, "spec.template")
}

// dryRun returns why the API server would reject an object, with paths of the set. below is the
// path in the StatefulSet from which the object is built.
func (v *Validator) dryRun(ctx context.Context, object client.Object, below string) field.ErrorList {
	at := func(path string) string { return spec.PathInSet(strings.TrimSuffix(below+"."+path, ".")) }
	if _, err := v.Court.Try(ctx, object, at); apierrors.IsInvalid(err) {
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
func (v *Validator) foreign(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, object client.Object) field.ErrorList {
	found := object.DeepCopyObject().(client.Object)
	if err := v.Live.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return nil // gone meanwhile; otherwise a condition reports it
	}
	if owner := metav1.GetControllerOf(found); owner != nil && owner.Kind == "ReplicatedStatefulSet" && owner.Name == set.Name {
		if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && gv.Group == v1alpha1.GroupVersion.Group {
			return nil
		}
	}
	whose := "belongs to another object"
	if children.WasChild(found) {
		whose = "has no owner, like an object restored from a backup"
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), set.Name, fmt.Sprintf(
		"%s already exists and %s; choose another name, or delete it", describe(v.Kinds, found), whose))}
}

// describe returns the kind and name of an object.
func describe(c client.Client, object client.Object) string {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return object.GetName()
	}
	return gvk.Kind + " " + object.GetName()
}
