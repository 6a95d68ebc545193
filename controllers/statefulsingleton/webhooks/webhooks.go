package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,sideEffects=None,groups="",resources=pods,verbs=create,versions=v1,name=mpod.kb.io,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded,timeoutSeconds=2
// +kubebuilder:webhook:path=/validate-apps-openshift-statefulsingleton-com-v1-statefulsingleton,mutating=false,failurePolicy=ignore,sideEffects=None,groups=apps.openshift.statefulsingleton.com,resources=statefulsingletons,verbs=create;update,versions=v1,name=statefulsingletons.apps.openshift.statefulsingleton.com,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups=apps.openshift.statefulsingleton.com,resources=statefulsingletons,verbs=list;watch,roleName=webhook-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get,roleName=webhook-role
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch,roleName=webhook-cluster-scoped-role

// PodPath is the path of the webhook for new pods.
const PodPath = "/mutate--v1-pod"

// SetupWebhook registers the webhooks for pods and StatefulSingletons. image is the
// operator's image, which contains the gate, and volumes reports whether pods can mount it.
// namespace is the operator's namespace.
func SetupWebhook(mgr ctrl.Manager, image string, volumes *nodestate.ImageVolumes, namespace string) error {
	// The Nodes are read before the first pod. The servers start without the right to read them.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &corev1.Node{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	mgr.GetWebhookServer().Register(PodPath, &admission.Webhook{Handler: &PodHandler{
		Singletons: mgr.GetCache(), Claims: mgr.GetAPIReader(), Decoder: admission.NewDecoder(mgr.GetScheme()),
		Image: image, ImageVolumes: volumes}})
	return ctrl.NewWebhookManagedBy(mgr, &v1.StatefulSingleton{}).
		WithValidator(&Validator{Singletons: mgr.GetCache(), Namespace: namespace}).
		Complete()
}

// lister lists the StatefulSingletons of a namespace from a cache, without copies. They
// must not be modified.
type lister interface {
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
}

// getter gets a claim live. Few pods have a gate, and a cache would hold all claims of the
// cluster for them.
type getter interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
}

// PodHandler adds the gate to pods. A pod that it cannot process is admitted unchanged: the
// pod may not match any object, and if it needs the gate, the guard rejects it.
type PodHandler struct {
	Singletons lister
	Claims     getter
	Decoder    admission.Decoder
	Image      string
	// ImageVolumes reports whether pods can mount Image.
	ImageVolumes *nodestate.ImageVolumes
}

// outline is the part of a pod that determines whether the rest is decoded.
type outline struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Containers     []struct{} `json:"containers"`
		InitContainers []struct{} `json:"initContainers"`
	} `json:"spec"`
}

// Handle handles one new pod. If no object selects the pod, only its outline is decoded.
func (h *PodHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var all v1.StatefulSingletonList
	if err := h.Singletons.List(ctx, &all, client.InNamespace(req.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Allowing a pod unchanged: failed to list the StatefulSingletons of its namespace")
		return admission.Allowed("")
	}
	if len(all.Items) == 0 {
		return admission.Allowed("")
	}
	var seen outline
	if err := utiljson.Unmarshal(req.Object.Raw, &seen); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Allowing a pod unchanged: failed to decode it")
		return admission.Allowed("")
	}
	ruler := spec.RulerOf(seen.Metadata.Labels, all.Items)
	if ruler == nil || facts.IsMirror(&seen.Metadata) {
		return admission.Allowed("")
	}
	if count := len(seen.Spec.Containers) + len(seen.Spec.InitContainers); count > 2*spec.MaxContainers+spec.MaxOurs {
		return refused(ruler, field.ErrorList{children.TooManyContainers(count)})
	}
	if ctx.Err() != nil { // the request has ended
		return admission.Errored(http.StatusServiceUnavailable, ctx.Err())
	}
	return h.hold(ctx, req, ruler)
}

// refused returns the response that rejects a pod.
func refused(ruler *v1.StatefulSingleton, errs field.ErrorList) admission.Response {
	errs = errs[:min(len(errs), spec.MaxFaults)]
	return admission.Denied(fmt.Sprintf("StatefulSingleton %s cannot hold back this pod: %v", ruler.Name, errs.ToAggregate()))
}

// hold handles a pod that the object manages.
func (h *PodHandler) hold(ctx context.Context, req admission.Request, ruler *v1.StatefulSingleton) admission.Response {
	var before corev1.Pod
	if err := h.Decoder.Decode(req, &before); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Allowing a pod unchanged: failed to decode it")
		return admission.Allowed("")
	}
	after := before.DeepCopy()
	if errs := children.Inject(after, ruler, h.surroundings(ctx, req.Namespace, after)); len(errs) > 0 {
		return refused(ruler, errs)
	}
	if ctx.Err() != nil {
		return admission.Errored(http.StatusServiceUnavailable, ctx.Err())
	}
	answer := admission.Allowed("").WithWarnings(PodWarnings(&before, ruler)...)
	patch, err := Changes(&before, after)
	if err == nil && len(patch) > 0 {
		answer.Patch, err = json.Marshal(patch)
		answer.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Allowing a pod unchanged: failed to encode its changes")
		return admission.Allowed("")
	}
	return answer
}

// surroundings reads the inputs of the injection. If the Nodes cannot be read, the gate is copied, which
// works on all of them.
func (h *PodHandler) surroundings(ctx context.Context, namespace string, pod *corev1.Pod) children.Surroundings {
	mounted, err := h.ImageVolumes.Supported(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Copying the gate into a pod: failed to determine whether the pod can mount it")
	}
	return children.Surroundings{Image: h.Image, ImageVolumes: mounted, OneNodeClaims: h.OneNodeClaims(ctx, namespace, pod)}
}

// PodWarnings returns warnings about effects that the author of a pod may not expect.
func PodWarnings(pod *corev1.Pod, s *v1.StatefulSingleton) []string {
	missing := children.Lacking(pod, s)
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("StatefulSingleton %s holds back this pod as a whole, because it has no container %s, which spec.containers of the StatefulSingleton lists as part of the program", s.Name, strings.Join(missing, ", "))}
}

// MaxClaims is the max number of claims of a pod that are read.
const MaxClaims = 32

// OneNodeClaims returns the claims of the pod that only one node at a time can mount. A
// claim that is not read counts as one: a missing anti-affinity does no harm.
func (h *PodHandler) OneNodeClaims(ctx context.Context, namespace string, pod *corev1.Pod) sets.Set[string] {
	claims, read := sets.New[string](), 0
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		if read++; read > MaxClaims {
			claims.Insert(source.ClaimName)
			continue
		}
		var claim corev1.PersistentVolumeClaim
		err := h.Claims.Get(ctx, types.NamespacedName{Namespace: namespace, Name: source.ClaimName}, &claim)
		if err != nil || children.OnOneNode(&claim) {
			claims.Insert(source.ClaimName)
		}
	}
	return claims
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`
}

// Changes returns the JSON patch from one pod to the other. It changes only the
// differences: a pod may have fields that this program does not know, and replacing a whole
// container would remove them.
func Changes(before, after *corev1.Pod) ([]operation, error) {
	var from, to any
	for pod, tree := range map[*corev1.Pod]*any{before: &from, after: &to} {
		text, err := json.Marshal(pod)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, tree); err != nil {
			return nil, err
		}
	}
	return differ("", from, to), nil
}

// differ returns the JSON patch from one value to another at a path.
func differ(path string, from, to any) []operation {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	switch to := to.(type) {
	case map[string]any:
		if from, ok := from.(map[string]any); ok {
			return differInMap(path, from, to)
		}
	case []any:
		if from, ok := from.([]any); ok {
			return differInList(path, from, to)
		}
	}
	return []operation{{Op: "replace", Path: path, Value: to}}
}

// differInMap returns the JSON patch from one map to another. It removes no key, because an
// injection only adds.
func differInMap(path string, from, to map[string]any) []operation {
	var patch []operation
	for _, key := range sets.List(sets.KeySet(to)) {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		if old, ok := from[key]; ok {
			patch = append(patch, differ(at, old, to[key])...)
		} else {
			patch = append(patch, operation{Op: "add", Path: at, Value: to[key]})
		}
	}
	return patch
}

// differInList returns the JSON patch from one list to another. It removes no entry, because an
// injection only adds entries, and changes the order of init containers.
func differInList(path string, from, to []any) []operation {
	var patch []operation
	from = slices.Clone(from)
	for i, entry := range to {
		at := fmt.Sprintf("%s/%d", path, i)
		found := slices.IndexFunc(from[i:], func(old any) bool { return Alike(old, entry) }) + i
		if found < i {
			patch = append(patch, operation{Op: "add", Path: at, Value: entry})
			from = slices.Insert(from, i, entry)
			continue
		}
		if found > i {
			patch = append(patch, operation{Op: "move", From: fmt.Sprintf("%s/%d", path, found), Path: at})
			moved := from[found]
			from = slices.Insert(slices.Delete(from, found, found+1), i, moved)
		}
		patch = append(patch, differ(at, from[i], entry)...)
	}
	return patch
}

// Alike reports whether two entries of a list have the same name, or are equal.
func Alike(a, b any) bool {
	first, ok := a.(map[string]any)
	second, alsoOK := b.(map[string]any)
	if ok && alsoOK && first["name"] != nil {
		return first["name"] == second["name"]
	}
	return reflect.DeepEqual(a, b)
}

// Validator validates StatefulSingletons. It fails open (failurePolicy Ignore): rules that
// must always hold are in the schema, and a condition reports violations of the others.
type Validator struct {
	Singletons lister
	Namespace  string // the operator's own namespace
}

var _ admission.Validator[*v1.StatefulSingleton] = &Validator{}

// ValidateCreate validates a new object.
func (v *Validator) ValidateCreate(ctx context.Context, s *v1.StatefulSingleton) (admission.Warnings, error) {
	s = spec.WithDefaults(s)
	errs := spec.Validate(s)
	if len(errs) == 0 {
		errs = v.validateAmongOthers(ctx, s)
	}
	return append(spec.Warnings(s, v.Namespace), spec.AnnotationWarnings(s)...), refuse(s, errs)
}

// ValidateUpdate validates a changed object.
func (v *Validator) ValidateUpdate(_ context.Context, old, s *v1.StatefulSingleton) (admission.Warnings, error) {
	var warnings admission.Warnings
	if !maps.Equal(old.Annotations, s.Annotations) {
		warnings = spec.AnnotationWarnings(s)
	}
	old.Spec.DeletionProtection = s.Spec.DeletionProtection // it can always be switched off
	if s.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(old.Spec, s.Spec) {
		return warnings, nil // changes of finalizers and labels are allowed with any spec
	}
	s = spec.WithDefaults(s)
	return append(spec.Warnings(s, v.Namespace), warnings...), refuse(s, spec.Validate(s))
}

// ValidateDelete admits all deletions.
func (v *Validator) ValidateDelete(context.Context, *v1.StatefulSingleton) (admission.Warnings, error) {
	return nil, nil
}

// validateAmongOthers validates an object against the existing ones. A condition reports a violation
// that a lagging cache lets pass.
func (v *Validator) validateAmongOthers(ctx context.Context, s *v1.StatefulSingleton) field.ErrorList {
	var all v1.StatefulSingletonList
	if err := v.Singletons.List(ctx, &all, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Allowing a StatefulSingleton without a check for overlaps: failed to list the others")
		return nil
	}
	if len(all.Items) >= spec.MaxPerNamespace {
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
			"a namespace may have at most %d StatefulSingletons, because the API server compares every new pod with all of them, and %s has reached this limit; use another namespace",
			spec.MaxPerNamespace, s.Namespace))}
	}
	if others := spec.Conflicting(s, all.Items); len(others) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(s.Spec.Selector), spec.OverlapText(others[0]))}
	}
	return nil
}

// refuse returns the error that rejects an object; nil if there are no errors.
func refuse(s *v1.StatefulSingleton, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1.GroupVersion.WithKind("StatefulSingleton").GroupKind(), s.Name, errs)
}
