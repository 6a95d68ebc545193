package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
)

// +kubebuilder:webhook:path=/mutate-fissile-cloudfoundry-org-v1alpha1-pod,mutating=true,failurePolicy=fail,sideEffects=None,groups="",resources=pods,verbs=create,versions=v1,name=pods.extendedstatefulsets.fissile.cloudfoundry.org,admissionReviewVersions=v1,timeoutSeconds=10,patch=`{"objectSelector":{"matchExpressions":[{"key":"fissile.cloudfoundry.org/extendedstatefulset","operator":"Exists"}]}}`
// +kubebuilder:webhook:path=/mutate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset,mutating=true,failurePolicy=ignore,sideEffects=None,groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=create;update,versions=v1alpha1,name=replicas.extendedstatefulsets.fissile.cloudfoundry.org,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:webhook:path=/validate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=create;update,versions=v1alpha1,name=extendedstatefulsets.fissile.cloudfoundry.org,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=get,roleName=webhook-role
// Pods are created only as a dry run, to warn at admission if they would be denied.
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;create,roleName=webhook-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;create,roleName=webhook-role
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;create,roleName=webhook-role
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;create,roleName=webhook-role

const (
	// PodPath is the webhook path for new pods of ExtendedStatefulSets.
	PodPath = "/mutate-fissile-cloudfoundry-org-v1alpha1-pod"
	// ReplicasPath is the webhook path that sets the default replicas of ExtendedStatefulSets.
	ReplicasPath = "/mutate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset"
)

// SetupWebhook registers the webhooks of ExtendedStatefulSets and of their pods.
func SetupWebhook(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	server.Register(PodPath, &admission.Webhook{Handler: &PodHandler{mgr.GetAPIReader()}})
	server.Register(ReplicasPath, &admission.Webhook{Handler: admission.HandlerFunc(DefaultReplicas)})
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ExtendedStatefulSet{}).
		WithValidator(&Validator{Live: mgr.GetAPIReader(), Court: trial.NewCourt(mgr.GetClient())}).
		Complete()
}

// PodHandler assigns the claims and the host name of its ordinal to a new pod. It fails closed: a pod
// that bypassed it waits for a claim that never exists.
type PodHandler struct{ Live client.Reader }

// Handle handles the admission request of one new pod.
func (h *PodHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	pod, err := children.ReadIncomingPod(json.NewDecoder(contextReader{ctx, bytes.NewReader(req.Object.Raw)}))
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read pod: %w", err))
	}
	changes, why := children.Inject(pod)
	if why != "" {
		ctrl.LoggerFrom(ctx).Info(
			"Pod has the label of the operator but belongs to no ExtendedStatefulSet",
			"namespace",
			req.Namespace,
			"pod",
			pod.Name,
			"why",
			why,
		)
		return admission.Allowed("").WithWarnings("ExtendedStatefulSet assigns no claims to this pod: " + why)
	}
	if why, err := observe.Denial(ctx, h.Live, req.Namespace, pod); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	} else if why != "" {
		return admission.Denied(why)
	}
	answer := admission.Allowed("")
	if len(changes) == 0 {
		return answer
	}
	if answer.Patch, err = json.Marshal(changes); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	answer.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	return answer
}

// contextReader reads a request until its context ends. It stores the context because it lives only as
// long as the request.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

// Read reads from the request, or returns the error of the context.
func (r contextReader) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(into)
}

// DefaultReplicas sets missing replicas to the smallest allowed number. A schema cannot express this
// default, and without replicas an autoscaler cannot read /scale. It sets only this field, because
// apply does not remove a field that the user never applied. It fails open; the operator then uses the
// same default.
func DefaultReplicas(_ context.Context, req admission.Request) admission.Response {
	var object struct {
		Spec struct {
			Scaling  *v1alpha1.Scaling
			Template struct {
				Spec *struct{ Replicas *int32 }
			}
		}
	}
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return admission.Allowed("") // the schema reports the error
	}
	n := spec.SmallestLegal(object.Spec.Scaling)
	filled := &v1alpha1.ExtendedStatefulSetSpec{Scaling: object.Spec.Scaling}
	filled.Template.Spec.Replicas = &n
	t := object.Spec.Template.Spec
	if t == nil || t.Replicas != nil || len(spec.ValidateReplicas(filled, nil)) > 0 { // validation reports rules that allow no number
		return admission.Allowed("")
	}
	answer := admission.Allowed("")
	answer.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/spec/template/spec/replicas","value":%d}]`, n)
	answer.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	return answer
}

// Validator validates ExtendedStatefulSets at admission. It fails open (failurePolicy Ignore): critical
// rules are in the schema, and other violations become a condition.
type Validator struct {
	// Live reads from the API server. Admission needs few reads by name, so a cache is not worthwhile.
	Live client.Reader
	// Court makes dry runs of the objects that the operator would create.
	Court *trial.Court
}

var _ admission.Validator[*v1alpha1.ExtendedStatefulSet] = &Validator{}

// ValidateCreate validates a new object. The dry runs, which read other objects of the namespace, are
// made only if the object itself is valid.
func (v *Validator) ValidateCreate(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) (admission.Warnings, error) {
	warned := slices.Concat(Warnings(set), warnOfAZ(ctx, set), WarnOfApproval(&v1alpha1.ExtendedStatefulSet{}, set))
	set = spec.WithDefaults(set)
	errs := spec.Validate(set)
	if len(errs) == 0 {
		dryRunWarnings, faults := v.ifPermitted(ctx, set, func() (admission.Warnings, field.ErrorList) {
			if errs := slices.Concat(v.claimsInUse(ctx, set), v.orphansExist(ctx, set)); len(errs) > 0 {
				return nil, errs
			}
			return v.try(ctx, set, Trials(set), v.foreign)
		})
		warned, errs = append(warned, dryRunWarnings...), faults
	}
	return warned, refuse(set, errs)
}

// ValidateUpdate validates only if the spec changed, so that a finalizer can be removed from an invalid
// object.
func (v *Validator) ValidateUpdate(ctx context.Context, old, set *v1alpha1.ExtendedStatefulSet) (admission.Warnings, error) {
	old.Spec.DeletionProtection = set.Spec.DeletionProtection // it can be disabled whatever else the spec has
	same := apiequality.Semantic.DeepEqual
	if set.DeletionTimestamp != nil || same(old.Spec, set.Spec) {
		return nil, nil
	}
	warned := slices.Concat(Warnings(set), warnOfAZ(ctx, set), WarnOfApproval(old, set))
	old, set = spec.WithDefaults(old), spec.WithDefaults(set)
	errs := append(spec.Validate(set), spec.ValidateChange(old, set)...)
	if len(errs) == 0 && (len(spec.Validate(old)) > 0 || !same(objectsOf(Trials(old)), objectsOf(Trials(set)))) {
		dryRunWarnings, faults := v.ifPermitted(ctx, set, func() (admission.Warnings, field.ErrorList) {
			return v.try(ctx, set, Trials(set), ours)
		})
		warned, errs = append(warned, dryRunWarnings...), faults
	}
	return warned, refuse(set, errs)
}

// ValidateDelete accepts all deletions. The webhook is not called for them; policies of the API server
// implement spec.deletionProtection.
func (v *Validator) ValidateDelete(context.Context, *v1alpha1.ExtendedStatefulSet) (admission.Warnings, error) {
	return nil, nil
}

// refuse returns the errors as an error of the API; nil if there are none.
func refuse(set *v1alpha1.ExtendedStatefulSet, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind).GroupKind(), set.Name, errs)
}

// Warnings returns a warning for each field that is accepted but has no effect.
func Warnings(set *v1alpha1.ExtendedStatefulSet) admission.Warnings {
	var texts admission.Warnings
	template, at := &set.Spec.Template, "spec.template."
	pod := &template.Spec.Template.Spec
	for _, w := range []struct {
		applies bool
		text    string
	}{
		{template.Name != "" || template.GenerateName != "", at + "metadata.name is ignored: the StatefulSets are named after the ExtendedStatefulSet and the version"},
		{template.Namespace != "" && template.Namespace != set.Namespace, at + "metadata.namespace is ignored: the StatefulSets are in the namespace of the ExtendedStatefulSet"},
		{len(template.OwnerReferences)+len(template.Finalizers) > 0, at + "metadata: ownerReferences and finalizers are ignored"},
		{template.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement, at + "spec.podManagementPolicy is ignored: pods are started and stopped in parallel"},
		{spec.HoldsBack(&template.Spec.UpdateStrategy), at + "spec.updateStrategy applies only to restarts after configuration changes; a template change creates a new version, which follows spec.updateStrategy"},
		{spec.DeletesClaims(template.Spec.PersistentVolumeClaimRetentionPolicy), at + "spec.persistentVolumeClaimRetentionPolicy is ignored: claims are kept until you delete them"},
		{pod.Hostname != "" || pod.Subdomain != "", at + "spec.template.spec: hostname and subdomain are ignored: the host name is the pod name or the name of the ordinal, and the subdomain is serviceName"},
		{pod.NodeName != "", at + "spec.template.spec.nodeName assigns all pods to Node " + pod.NodeName + " without the scheduler, so taints, resources and zones are not checked; use nodeSelector instead"},
	} {
		if w.applies {
			texts = append(texts, w.text)
		}
	}
	for name, job := range map[string]*v1alpha1.UpdateJob{"preUpdateJob": set.Spec.UpdateStrategy.PreUpdateJob, "postUpdateJob": set.Spec.UpdateStrategy.PostUpdateJob} {
		if job != nil && (job.Spec.Suspend != nil || job.Spec.TTLSecondsAfterFinished != nil) {
			texts = append(texts, "spec.updateStrategy."+name+".spec: suspend and ttlSecondsAfterFinished are ignored: the operator sets them")
		}
	}
	return texts
}

// WarnOfApproval returns a warning if a newly approved revision has no effect.
func WarnOfApproval(old, set *v1alpha1.ExtendedStatefulSet) admission.Warnings {
	approved := set.Spec.ApprovedRevision
	switch {
	case approved == "" || approved == old.Spec.ApprovedRevision:
	case !spec.NeedsApproval(&set.Spec):
		return admission.Warnings{"spec.approvedRevision is ignored while spec.approval is Automatic"}
	case approved != old.Status.UpdateRevision:
		return admission.Warnings{fmt.Sprintf(
			"spec.approvedRevision: %q is ignored because it is not the revision of an upgrade in progress; status.updateRevision is %q",
			approved,
			old.Status.UpdateRevision,
		)}
	}
	return nil
}

// warnOfAZ returns a warning if spec.az is present. The example of the original project has it with
// value null.
func warnOfAZ(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) admission.Warnings {
	present := set.Spec.AZ != nil
	if req, err := admission.RequestFromContext(ctx); err == nil {
		var object struct{ Spec map[string]json.RawMessage }
		if json.Unmarshal(req.Object.Raw, &object) == nil {
			_, present = object.Spec["az"]
		}
	}
	if present {
		return admission.Warnings{"spec.az is ignored; list the zones in spec.zones"}
	}
	return nil
}
