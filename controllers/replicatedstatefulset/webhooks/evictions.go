package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/servingcert"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get,roleName=webhook-role
// +kubebuilder:rbac:groups=clusterlabs.org,resources=replicatedstatefulsets,verbs=get,roleName=webhook-role
// The verb create can be restricted to the name because the book is written by server-side apply.
// +kubebuilder:rbac:groups="",namespace=system,roleName=webhook-own-namespace-role,resources=configmaps,resourceNames=stateful-operator-evictions,verbs=get;create;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=stateful-operator-evictions,verbs=get;create;patch,roleName=installer-role

// EvictionPath is the URL path of evictions. The API server prefixes it with a token.
const EvictionPath = "/validate--v1-pod-eviction"

// EvictionWebhook maintains the webhook configuration for evictions. It cannot be in a manifest,
// because the token in its path is created at run time.
type EvictionWebhook struct {
	policy.Keeper
	// Name is the name of the configuration.
	Name string
	// Service is the Service of the webhooks.
	Service types.NamespacedName
	// Namespaces selects the namespaces of the evictions.
	Namespaces *metav1.LabelSelector
	// Caller returns the CA bundle and token for the API server.
	Caller func() servingcert.Caller
}

// Start maintains the configuration until the context ends.
func (w *EvictionWebhook) Start(ctx context.Context) error {
	policy.Look(ctx, "The eviction webhook", policy.Interval, spec.WebhookRetry, func() string {
		caller := w.Caller()
		if caller.Token == "" {
			return "there is no serving certificate yet"
		}
		return policy.Problem(w.KeepWebhooks(ctx, "replicatedstatefulsets."+v1alpha1.GroupVersion.Group, w.Build(caller)))
	})
	return nil
}

// Build sets all defaults explicitly, so that the stored configuration can be compared with it.
func (w *EvictionWebhook) Build(caller servingcert.Caller) *registrationv1.ValidatingWebhookConfiguration {
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "stateful-operator"}},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "evictions.replicatedstatefulsets.clusterlabs.org",
			ClientConfig: registrationv1.WebhookClientConfig{CABundle: caller.Authority, Service: &registrationv1.ServiceReference{
				Namespace: w.Service.Namespace, Name: w.Service.Name, Path: ptr.To("/" + caller.Token + EvictionPath), Port: ptr.To[int32](443)}},
			Rules: []registrationv1.RuleWithOperations{{Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}, Scope: ptr.To(registrationv1.NamespacedScope)}}},
			FailurePolicy: ptr.To(registrationv1.Ignore), TimeoutSeconds: ptr.To[int32](2),
			SideEffects:             ptr.To(registrationv1.SideEffectClassNoneOnDryRun),
			AdmissionReviewVersions: []string{"v1"},
			MatchPolicy:             ptr.To(registrationv1.Equivalent), NamespaceSelector: w.Namespaces, ObjectSelector: &metav1.LabelSelector{},
		}},
	}
}

// OnlyWith serves requests while there is a token. Without a token, any client could cause
// handovers. The server checks the token.
func OnlyWith(token func() string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token() == "" {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const (
	// MaxEntries is the max number of pods in the book.
	MaxEntries = 256
	// maxRequester is the max length in bytes of a stored requester name.
	maxRequester = 128
)

// EvictionHandler handles evictions of primaries and notifies the controllers of them. It does not
// protect a primary: the budget of the primaries does, whether the webhook is available or not.
type EvictionHandler struct {
	// Live reads from the API server, because evictions are few.
	Live client.Reader
	// Writer writes the book, which is the ConfigMap of the name Book.
	Writer applier
	Book   types.NamespacedName
	Now    func() time.Time
}

// applier writes the book.
type applier interface {
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error
}

// Handle refuses the eviction of a primary that its budget refuses as well, with a message about
// the handover. It allows everything else, so that the eviction API decides.
func (h *EvictionHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var eviction policyv1.Eviction
	if err := json.Unmarshal(req.Object.Raw, &eviction); err != nil {
		return admission.Allowed("")
	}
	pod, set, err := h.protectedPrimary(ctx, types.NamespacedName{Namespace: req.Namespace, Name: req.Name})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Allowing an eviction if the budgets allow it: cannot read its pod, set or budget")
	}
	if err != nil || pod == nil || isForEarlierPod(&eviction, pod) {
		return admission.Allowed("")
	}
	var waits time.Time
	if !isDryRun(&eviction, req.DryRun) {
		e := facts.Entry{Namespace: pod.Namespace, Pod: pod.Name, Set: set.Name, At: h.Now().UTC(), By: req.UserInfo.Username}
		if waits, err = h.record(ctx, pod.UID, e); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot record an eviction for the controllers in the eviction ConfigMap")
		}
	}
	if !podstate.Ready(pod) { // budgets may not block the eviction of an unready pod
		return admission.Allowed("")
	}
	return handingOver(set, pod, waits)
}

// protectedPrimary returns the pod of that name and its set, if the pod is a primary whose budget
// allows no eviction. Otherwise the pod is nil.
func (h *EvictionHandler) protectedPrimary(ctx context.Context, key types.NamespacedName) (*corev1.Pod, *v1alpha1.ReplicatedStatefulSet, error) {
	pod, err := observe.Find[corev1.Pod](ctx, h.Live, key)
	if err != nil || pod == nil || !isShownAsPrimary(pod) {
		return nil, nil, err
	}
	key.Name = pod.Labels[v1alpha1.LabelApp]
	set, err := observe.Find[v1alpha1.ReplicatedStatefulSet](ctx, h.Live, key)
	if err != nil || set == nil || !slices.Contains(set.Status.Members.Primary, pod.Name) {
		return nil, nil, err
	}
	key.Name = spec.PrimaryBudgetName(set)
	budget, err := observe.Find[policyv1.PodDisruptionBudget](ctx, h.Live, key)
	if err != nil || budget == nil || budget.Status.DisruptionsAllowed > 0 {
		return nil, nil, err
	}
	return pod, set, nil
}

// isShownAsPrimary reports whether a pod runs and has the labels of a primary.
func isShownAsPrimary(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	return pod.Labels[v1alpha1.LabelManaged] == v1alpha1.True && pod.Labels[v1alpha1.LabelRole] == v1alpha1.RolePrimary
}

// isForEarlierPod reports whether the eviction is for an earlier pod of the same name.
func isForEarlierPod(eviction *policyv1.Eviction, pod *corev1.Pod) bool {
	if eviction.DeleteOptions == nil || eviction.DeleteOptions.Preconditions == nil {
		return false
	}
	return ptr.Deref(eviction.DeleteOptions.Preconditions.UID, pod.UID) != pod.UID
}

// isDryRun reports whether an eviction is a dry run, by the request or by its delete options.
func isDryRun(eviction *policyv1.Eviction, inRequest *bool) bool {
	inOptions := eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0
	return inOptions || ptr.Deref(inRequest, false)
}

// handingOver refuses an eviction temporarily: clients that support Retry-After retry it, and
// succeed once the role has moved. waits is when the next eviction without a cordon is recorded. It
// is zero if this one was.
func handingOver(set *v1alpha1.ReplicatedStatefulSet, pod *corev1.Pod, waits time.Time) admission.Response {
	to := "another member"
	if names := set.Status.Members.Secondary; len(names) > 0 {
		to = strings.Join(names, " or ")
	}
	message := fmt.Sprintf("%s is a primary of ReplicatedStatefulSet %s: handing over to %s first. If it takes long, condition Draining reports the reason: kubectl -n %s get rss %s -o yaml",
		pod.Name, set.Name, to, set.Namespace, set.Name)
	if !waits.IsZero() {
		message = fmt.Sprintf("%s is a primary of ReplicatedStatefulSet %s: handing over to %s first if Node %s is cordoned, for example by kubectl drain. Without a cordon, evictions cause at most one handover in %s, next at %s",
			pod.Name, set.Name, to, pod.Spec.NodeName, spec.EvictionEvery, waits.UTC().Format("15:04:05"))
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusTooManyRequests,
		Reason:  metav1.StatusReasonTooManyRequests,
		Message: message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}}
}

// record writes an entry into the book. It retries conflicts with other replicas a few times. If
// the entry is lost, the client's next eviction request writes it. If the eviction of another pod
// of the set was recorded recently, it writes nothing, and waits is the end of that period.
func (h *EvictionHandler) record(ctx context.Context, pod types.UID, e facts.Entry) (waits time.Time, err error) {
	e.By = e.By[:min(len(e.By), maxRequester)]
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		have, err := observe.Find[corev1.ConfigMap](ctx, h.Live, h.Book)
		if err != nil {
			return err
		}
		book := corev1apply.ConfigMap(h.Book.Name, h.Book.Namespace)
		entries := map[types.UID]facts.Entry{}
		if have != nil {
			book.WithResourceVersion(have.ResourceVersion)
			entries = facts.EntriesOf(have.Data)
		}
		if waits = WaitsUntil(entries, pod, e); !waits.IsZero() {
			return nil
		}
		if !AddEntry(entries, pod, e) {
			return nil
		}
		for uid, one := range entries {
			text, err := json.Marshal(one)
			if err != nil {
				return err
			}
			book.WithData(map[string]string{string(uid): string(text)})
		}
		return h.Writer.Apply(ctx, book, client.FieldOwner("stateful-operator-webhook"), client.ForceOwnership)
	})
	return waits, err
}

// WaitsUntil returns the end of the period in which the eviction of a pod is not recorded because
// that of another pod of its set was. It returns zero if the eviction can be recorded.
func WaitsUntil(entries map[types.UID]facts.Entry, pod types.UID, e facts.Entry) (until time.Time) {
	for uid, one := range entries {
		of := one.Namespace == e.Namespace && one.Set != "" && one.Set == e.Set
		if of && uid != pod && one.IsWithin(spec.EvictionEvery, e.At) && one.At.Add(spec.EvictionEvery).After(until) {
			until = one.At.Add(spec.EvictionEvery)
		}
	}
	return until
}

// AddEntry adds an entry to the book and removes expired entries. It reports whether the change
// should be written. If the book is full, the oldest entry of the namespace with the most entries
// is removed, so that a requester with many evictions cannot displace the entries of other
// namespaces.
func AddEntry(entries map[types.UID]facts.Entry, pod types.UID, e facts.Entry) bool {
	if last, ok := entries[pod]; ok && last.IsWithin(spec.EvictionNoted, e.At) {
		return false
	}
	of := map[string]int{}
	for uid, one := range entries {
		if uid == pod || !one.IsWithin(spec.EvictionEvery, e.At) {
			delete(entries, uid)
			continue
		}
		of[one.Namespace]++
	}
	for len(entries) >= MaxEntries {
		oldest := oldestOfMost(entries, of)
		if of[e.Namespace] >= of[entries[oldest].Namespace] {
			return false
		}
		of[entries[oldest].Namespace]--
		delete(entries, oldest)
	}
	entries[pod] = e
	return true
}

// oldestOfMost returns the oldest entry of the namespace with the most entries.
func oldestOfMost(entries map[types.UID]facts.Entry, of map[string]int) (oldest types.UID) {
	for uid, one := range entries {
		first := entries[oldest]
		more, as := of[one.Namespace]-of[first.Namespace], one.At.Before(first.At)
		if oldest == "" || more > 0 || (more == 0 && as) {
			oldest = uid
		}
	}
	return oldest
}
