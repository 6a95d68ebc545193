package extendedstatefulset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

// +kubebuilder:webhook:path=/mutate-fissile-cloudfoundry-org-v1alpha1-pod,mutating=true,failurePolicy=fail,sideEffects=None,groups="",resources=pods,verbs=create,versions=v1,name=pods.extendedstatefulsets.fissile.cloudfoundry.org,admissionReviewVersions=v1,timeoutSeconds=10,patch=`{"objectSelector":{"matchExpressions":[{"key":"fissile.cloudfoundry.org/extendedstatefulset","operator":"Exists"}]}}`
// +kubebuilder:webhook:path=/mutate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset,mutating=true,failurePolicy=ignore,sideEffects=None,groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=create;update,versions=v1alpha1,name=replicas.extendedstatefulsets.fissile.cloudfoundry.org,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:webhook:path=/validate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=create;update,versions=v1alpha1,name=extendedstatefulsets.fissile.cloudfoundry.org,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=get,roleName=webhook-role
// Pods are created by dry run only, to warn at admission of what would refuse them.
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;create,roleName=webhook-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;create,roleName=webhook-role
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;create,roleName=webhook-role
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;create,roleName=webhook-role

// Where the API server sends new pods of ours, and objects.
const (
	podPath      = "/mutate-fissile-cloudfoundry-org-v1alpha1-pod"
	replicasPath = "/mutate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset"
)

// trialTime is how long all trials together may take, so that the rest of the
// answer comes before the API server stops waiting for it.
const trialTime = 3 * time.Second

// SetupWebhook registers the admission of ExtendedStatefulSets and of their pods.
func SetupWebhook(mgr ctrl.Manager) error {
	server := mgr.GetWebhookServer()
	server.Register(podPath, &admission.Webhook{Handler: &podHandler{mgr.GetAPIReader()}})
	server.Register(replicasPath, &admission.Webhook{Handler: admission.HandlerFunc(defaultReplicas)})
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ExtendedStatefulSet{}).
		WithValidator(&validator{live: mgr.GetAPIReader(), dryRun: client.NewDryRunClient(mgr.GetClient())}).
		Complete()
}

// podHandler gives new pods what their ordinal has in every version. It fails
// closed: a pod that it did not see waits for a claim that never exists.
type podHandler struct{ live client.Reader }

// Handle answers for one new pod.
func (h *podHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	pod, err := readNewborn(json.NewDecoder(whileAsked{ctx, bytes.NewReader(req.Object.Raw)}))
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the pod: %w", err))
	}
	changes, why := inject(pod)
	if why != "" {
		ctrl.LoggerFrom(ctx).Info("A pod with our label is none of ours", "namespace", req.Namespace, "pod", pod.Name, "why", why)
		return admission.Allowed("").WithWarnings("ExtendedStatefulSet gives this pod no claims: " + why)
	}
	if why, err := denial(ctx, h.live, req.Namespace, pod); err != nil {
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

// whileAsked reads a request as long as somebody waits for the answer. It lives as long
// as that, and so does its context.
type whileAsked struct {
	ctx  context.Context
	from io.Reader
}

func (r whileAsked) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(into)
}

// defaultReplicas writes the smallest legal number where an object says none.
// The schema cannot say it, and without a number /scale cannot be read, which an
// autoscaler has to. It adds this one field and nothing else: what a user leaves
// out and never applies, no apply takes away again. It fails open; the operator
// then counts as if it were there.
func defaultReplicas(_ context.Context, req admission.Request) admission.Response {
	var object struct {
		Spec struct {
			Scaling  *v1alpha1.Scaling
			Template struct {
				Spec *struct{ Replicas *int32 }
			}
		}
	}
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return admission.Allowed("") // the schema says what is wrong
	}
	n := smallestLegal(object.Spec.Scaling)
	filled := &v1alpha1.ExtendedStatefulSetSpec{Scaling: object.Spec.Scaling}
	filled.Template.Spec.Replicas = &n
	t := object.Spec.Template.Spec
	if t == nil || t.Replicas != nil || len(validateReplicas(filled, nil)) > 0 { // rules that allow nothing are at fault, not a number
		return admission.Allowed("")
	}
	answer := admission.Allowed("")
	answer.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/spec/template/spec/replicas","value":%d}]`, n)
	answer.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	return answer
}

// validator answers admission. It fails open (failurePolicy Ignore): what must
// never slip past is a rule of the schema, and what does is a condition.
type validator struct {
	// live reads from the API server: who has a name is not worth a cache.
	live client.Reader
	// dryRun creates objects with the API server's dry run.
	dryRun client.Client
}

var _ admission.Validator[*v1alpha1.ExtendedStatefulSet] = &validator{}

func (v *validator) ValidateCreate(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) (admission.Warnings, error) {
	warned := append(warnings(set), warnOfAZ(ctx, set)...)
	set = withDefaults(set)
	errs := validate(set)
	if len(errs) == 0 {
		errs = slices.Concat(v.claimsInUse(ctx, set), v.leftBehind(ctx, set))
	}
	if len(errs) == 0 {
		tried, faults := v.try(ctx, set, trials(set), v.foreign)
		warned, errs = append(warned, tried...), faults
	}
	return warned, refuse(set, errs)
}

// ValidateUpdate looks at what was changed, so that a finalizer can be taken off
// an object whose spec cannot be served.
func (v *validator) ValidateUpdate(ctx context.Context, old, set *v1alpha1.ExtendedStatefulSet) (admission.Warnings, error) {
	same := apiequality.Semantic.DeepEqual
	if set.DeletionTimestamp != nil || same(old.Spec, set.Spec) {
		return nil, nil
	}
	warned := append(warnings(set), warnOfAZ(ctx, set)...)
	old, set = withDefaults(old), withDefaults(set)
	errs := append(validate(set), validateChange(old, set)...)
	if len(errs) == 0 && (len(validate(old)) > 0 || !same(asked(trials(old)), asked(trials(set)))) {
		tried, faults := v.try(ctx, set, trials(set), ours)
		warned, errs = append(warned, tried...), faults
	}
	return warned, refuse(set, errs)
}

func (v *validator) ValidateDelete(context.Context, *v1alpha1.ExtendedStatefulSet) (admission.Warnings, error) {
	return nil, nil
}

func refuse(set *v1alpha1.ExtendedStatefulSet, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind).GroupKind(), set.Name, errs)
}

// warnings are about what is taken as it is written, and has no effect.
func warnings(set *v1alpha1.ExtendedStatefulSet) admission.Warnings {
	var texts admission.Warnings
	template, at := &set.Spec.Template, "spec.template."
	pod := &template.Spec.Template.Spec
	for _, w := range []struct {
		said bool
		text string
	}{
		{template.Name != "" || template.GenerateName != "", at + "metadata.name is ignored: the StatefulSets are named after the ExtendedStatefulSet and the version"},
		{template.Namespace != "" && template.Namespace != set.Namespace, at + "metadata.namespace is ignored: the StatefulSets are where the ExtendedStatefulSet is"},
		{len(template.OwnerReferences)+len(template.Finalizers) > 0, at + "metadata: ownerReferences and finalizers are ignored"},
		{template.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement, at + "spec.podManagementPolicy is ignored: pods are started and stopped in parallel"},
		{holdsBack(&template.Spec.UpdateStrategy), at + "spec.updateStrategy holds back pods when configuration changes, and not when the template does: that makes a new version, for which there is spec.updateStrategy"},
		{deletesClaims(template.Spec.PersistentVolumeClaimRetentionPolicy), at + "spec.persistentVolumeClaimRetentionPolicy is ignored: claims are kept until you delete them"},
		{pod.Hostname != "" || pod.Subdomain != "", at + "spec.template.spec: hostname and subdomain are ignored: pods have their own name or that of their ordinal, and serviceName"},
		{pod.NodeName != "", at + "spec.template.spec.nodeName puts all pods on Node " + pod.NodeName + " past the scheduler, which then looks at no taints, room or zone; use nodeSelector, which it follows"},
	} {
		if w.said {
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

// warnOfAZ speaks of the field of the original's example, which is there as null.
func warnOfAZ(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) admission.Warnings {
	said := set.Spec.AZ != nil
	if req, err := admission.RequestFromContext(ctx); err == nil {
		var object struct{ Spec map[string]json.RawMessage }
		if json.Unmarshal(req.Object.Raw, &object) == nil {
			_, said = object.Spec["az"]
		}
	}
	if said {
		return admission.Warnings{"spec.az is ignored; list the zones in spec.zones"}
	}
	return nil
}

// trial is an object that the operator would create, and how the paths of its
// fields become those of the set.
type trial struct {
	object client.Object
	at     func(path string) string
}

// trials are what the API server is asked about: the first StatefulSet, a claim
// of each template, and the jobs. Their owner may not exist yet.
func trials(set *v1alpha1.ExtendedStatefulSet) []trial {
	z := zone{index: noZone}
	if len(set.Spec.Zones) > 0 {
		z = zone{name: set.Spec.Zones[0]}
	}
	child := buildChild(set, z, version{number: 1}, span{})
	all := []trial{{child, func(path string) string { return placeOfChild(set, child, path) }}}
	for i := range set.Spec.Template.Spec.VolumeClaimTemplates {
		all = append(all, trial{buildClaim(set, &set.Spec.Template.Spec.VolumeClaimTemplates[i], z, 0),
			below("spec.template.spec.volumeClaimTemplates[" + strconv.Itoa(i) + "]")})
	}
	strategy := &set.Spec.UpdateStrategy
	if strategy.PreUpdateJob != nil {
		all = append(all, trial{buildJob(set, strategy.PreUpdateJob, preJob, 1, 1), below("spec.updateStrategy.preUpdateJob")})
	}
	if strategy.PostUpdateJob != nil {
		all = append(all, trial{buildJob(set, strategy.PostUpdateJob, postJob, 1, 1), below("spec.updateStrategy.postUpdateJob")})
	}
	for _, t := range all {
		t.object.SetOwnerReferences(nil)
	}
	return all
}

// tryPod asks, by dry run, whether the API server would take a pod. What it says
// against one may be of the moment, so these are warnings.
func (v *validator) tryPod(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) admission.Warnings {
	pod := buildTrialPod(trials(set)[0].object.(*appsv1.StatefulSet))
	err := v.dryRun.Create(ctx, pod)
	// One that takes the place of another needs no more room.
	replaces := set.Status.CurrentVersion != 0 && handoverOf(set) == v1alpha1.HandoverPerOrdinal
	if err == nil || apierrors.IsAlreadyExists(err) || replaces && strings.Contains(err.Error(), "exceeded quota") {
		return nil
	}
	return admission.Warnings{fmt.Sprintf("pods like %s cannot be created while this lasts: %v", pod.Name, err)}
}

func asked(trials []trial) []client.Object {
	all := make([]client.Object, len(trials))
	for i := range trials {
		all[i] = trials[i].object
	}
	return all
}

func below(parent string) func(string) string {
	return func(path string) string { return strings.TrimSuffix(parent+"."+path, ".") }
}

var (
	volumeIn = regexp.MustCompile(`^spec\.template\.spec\.volumes\[([0-9]+)\]`)
	envIn    = regexp.MustCompile(`^(spec\.template\.spec\.)(initContainers|containers)\[([0-9]+)\]\.env\[([0-9]+)\]`)
)

// placeOfChild is where a field of a StatefulSet is in the set. What the operator
// puts before the user's volumes and variables does not count there.
func placeOfChild(set *v1alpha1.ExtendedStatefulSet, child *appsv1.StatefulSet, path string) string {
	const parent = "spec.template."
	if path == "metadata.name" {
		return path
	}
	if m := volumeIn.FindStringSubmatch(path); m != nil {
		n, _ := strconv.Atoi(m[1])
		n -= len(set.Spec.Template.Spec.VolumeClaimTemplates)
		return fmt.Sprintf("%sspec.template.spec.volumes[%d]%s", parent, n, path[len(m[0]):])
	}
	if m := envIn.FindStringSubmatch(path); m != nil {
		c, _ := strconv.Atoi(m[3])
		e, _ := strconv.Atoi(m[4])
		made, from := &child.Spec.Template.Spec, &set.Spec.Template.Spec.Template.Spec
		in, out := made.Containers, from.Containers
		if m[2] == "initContainers" {
			in, out = made.InitContainers, from.InitContainers
		}
		if c < len(in) && c < len(out) && e < len(in[c].Env) {
			name := in[c].Env[e].Name
			e = slices.IndexFunc(out[c].Env, func(v corev1.EnvVar) bool { return v.Name == name })
		}
		return fmt.Sprintf("%s%s%s[%d].env[%d]%s", parent, m[1], m[2], c, e, path[len(m[0]):])
	}
	return strings.TrimSuffix(parent+path, ".")
}

// try asks the API server, by dry run, whether it would take the objects. Invalid
// (422) refuses. Forbidden may be a quota or a policy of the moment, and any other
// answer says nothing about the set: both are warnings. taken looks at an object
// whose name is taken.
func (v *validator) try(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, trials []trial,
	taken func(context.Context, *v1alpha1.ExtendedStatefulSet, client.Object) field.ErrorList) (admission.Warnings, field.ErrorList) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	var warned admission.Warnings
	for _, t := range trials {
		switch err := v.dryRun.Create(ctx, t.object); {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			if errs := taken(ctx, set, t.object); len(errs) > 0 {
				return warned, errs
			}
		case apierrors.IsInvalid(err):
			return warned, rejection.Explain(err, t.at)
		default:
			warned = append(warned, fmt.Sprintf("%s %s could not be tried out; it cannot be created while this lasts: %v", kindOf(t.object), t.object.GetName(), err))
		}
	}
	return append(warned, v.tryPod(ctx, set)...), nil
}

// ours takes an object of a name for the one that the operator made.
func ours(context.Context, *v1alpha1.ExtendedStatefulSet, client.Object) field.ErrorList {
	return nil
}

// foreign refuses the name of a new set if an object of a name that it needs
// belongs to somebody else. One of a set of the same name, which was deleted just
// now, will be gone soon; claims are looked at by claimsInUse.
func (v *validator) foreign(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, object client.Object) field.ErrorList {
	if _, ok := object.(*corev1.PersistentVolumeClaim); ok {
		return nil
	}
	found := object.DeepCopyObject().(client.Object)
	if err := v.live.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return nil // gone meanwhile; if not, a condition will say
	}
	return elsewhere(set, found)
}

// elsewhere refuses the name of a new set for the sake of an object that is none of
// a set of that name.
func elsewhere(set *v1alpha1.ExtendedStatefulSet, found client.Object) field.ErrorList {
	if owner := metav1.GetControllerOf(found); owner != nil && owner.Kind == v1alpha1.Kind && owner.Name == set.Name &&
		strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), set.Name, fmt.Sprintf(
		"%s %s is there already and belongs to somebody else; choose another name, or delete it", kindOf(found), found.GetName()))}
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	}
	return "Job"
}
