package statefulsingleton

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kubeadmissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// known lists the StatefulSingletons of namespace ns, or returns an error.
type known struct {
	items []v1.StatefulSingleton
	err   error
}

func (k known) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	if options.Namespace == "ns" {
		list.(*v1.StatefulSingletonList).Items = k.items
	}
	return k.err
}

// claims are access modes by claim name.
type claims map[string]corev1.PersistentVolumeAccessMode

func (c claims) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	mode, ok := c[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, key.Name)
	}
	obj.(*corev1.PersistentVolumeClaim).Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	return nil
}

func newHandler(t testing.TB, singletons known) *webhooks.PodHandler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &webhooks.PodHandler{Singletons: singletons, Claims: claims{"one-node": corev1.ReadWriteOnce, "one-pod": corev1.ReadWriteOncePod, "many": corev1.ReadWriteMany, "readers": corev1.ReadOnlyMany},
		Decoder: admission.NewDecoder(scheme), Image: gateImage}
}

// asked returns the handler's response to a raw pod.
func asked(h *webhooks.PodHandler, raw string) admission.Response {
	return h.Handle(context.Background(), admission.Request{AdmissionRequest: kubeadmissionv1.AdmissionRequest{
		Namespace: "ns", Object: runtime.RawExtension{Raw: []byte(raw)}}})
}

// TestS3StrangersAreByteIdentical checks that pods that no object selects are not changed.
func TestS3StrangersAreByteIdentical(t *testing.T) {
	db := known{items: all(singleton("db"))}
	for _, r := range []struct {
		name string
		have known
		raw  string
	}{
		{"a pod with other labels", db, `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a"}]}}`},
		{"a pod without labels", db, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a"}]}}`},
		{"a pod whose labels are null", db, `{"metadata":{"name":"x","labels":null},"spec":{"containers":[{"name":"a"}]}}`},
		{"a pod with unknown fields", db, `{"metadata":{"new":1},"spec":{"newer":{"a":[]},"containers":[]}}`},
		{"a pod in a namespace without StatefulSingletons", known{}, `{"metadata":{"labels":{"app":"db"}}}`},
		{"W14 a pod of a terminating object without our finalizer", known{items: all(singleton("db").deleted())}, `{"metadata":{"labels":{"app":"db"}}}`},
		{"any pod while the list of objects fails, so that the guard decides", known{err: errors.New("no")}, `{"metadata":{"labels":{"app":"db"}}}`},
		{"an object that is not a pod", db, `{"metadata":[]}`},
		{"a mirror pod of a static pod", db, `{"metadata":{"labels":{"app":"db"},"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"containers":[{"name":"a"}]}}`},
	} {
		answer := asked(newHandler(t, r.have), r.raw)
		if !answer.Allowed || answer.Patch != nil || answer.Patches != nil || answer.PatchType != nil || answer.Warnings != nil {
			t.Errorf("%s: %v", r.name, answer)
		}
	}
}

func TestAMatchingPodIsPatched(t *testing.T) {
	h := newHandler(t, known{items: all(singleton("db"))})
	answer := asked(h, asJSON(t, &pod().Pod))
	if !answer.Allowed || answer.PatchType == nil || *answer.PatchType != kubeadmissionv1.PatchTypeJSONPatch {
		t.Fatalf("%v", answer)
	}
	var got corev1.Pod
	if err := json.Unmarshal(patched(t, asJSON(t, &pod().Pod), answer.Patch), &got); err != nil {
		t.Fatal(err)
	}
	if !children.HasGate(&got, &singleton("db").StatefulSingleton) {
		t.Errorf("the pod has no gate: %v", got)
	}
}

// TestW14AnObjectThatIsBeingDeletedHoldsNewPods checks new pods of a terminating object:
// the deletion may begin during a rollout.
func TestW14AnObjectThatIsBeingDeletedHoldsNewPods(t *testing.T) {
	going := singleton("db").deleted()
	going.Finalizers = []string{v1.FinalizerSingleton}
	before := asJSON(t, &pod().Pod)
	var got corev1.Pod
	if err := json.Unmarshal(patched(t, before, asked(newHandler(t, known{items: all(going)}), before).Patch), &got); err != nil {
		t.Fatal(err)
	}
	if !children.HasGate(&got, &going.StatefulSingleton) {
		t.Errorf("the pod has no gate: %v", got)
	}
	next := singleton("next").madeAt(99)
	if ruler := spec.RulerOf(pod().Labels, all(going, next)); ruler == nil || ruler.Name != "next" {
		t.Errorf("with a terminating object and another one, %v manages the pod", ruler)
	}
}

func TestAPodThatCannotBeHeldIsRefused(t *testing.T) {
	h := newHandler(t, known{items: all(singleton("db").mode(v1.GateBinary))})
	answer := asked(h, asJSON(t, &pod(container("app")).Pod))
	const want = `StatefulSingleton db cannot hold back this pod: spec.containers[0].command: Required value: gate mode Binary runs`
	if answer.Allowed || answer.Patch != nil || !strings.HasPrefix(answer.Result.Message, want) {
		t.Errorf("%v", answer)
	}
}

// TestS22ClaimsAreLookedAt checks that a pod gets no anti-affinity if only one node at a
// time can mount its volume.
func TestS22ClaimsAreLookedAt(t *testing.T) {
	h := newHandler(t, known{items: all(singleton("db"))})
	for claim, apart := range map[string]bool{"one-node": false, "one-pod": false, "many": true, "readers": true, "not-there-yet": false} {
		before := asJSON(t, &pod().claim(claim).Pod)
		var got corev1.Pod
		if err := json.Unmarshal(patched(t, before, asked(h, before).Patch), &got); err != nil {
			t.Fatal(err)
		}
		if (got.Spec.Affinity.PodAntiAffinity != nil) != apart {
			t.Errorf("claim %s: affinity %v", claim, got.Spec.Affinity)
		}
	}
}

func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// patched applies a patch with the library that the API server uses.
func patched(t *testing.T, raw string, patch []byte) []byte {
	t.Helper()
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := operations.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, patch)
	}
	return out
}

// TestThePatchTouchesOnlyWhatDiffers checks that the patch turns the pod that was sent into
// the injected pod, and keeps fields that this program does not know: in the pod, and in
// every entry of every list.
func TestThePatchTouchesOnlyWhatDiffers(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 6))
		before := randomPod(r)
		if maybe(r, 3) { // a second call, after an init container by another client
			if children.Inject(before, &singleton("db").StatefulSingleton, around()) != nil {
				continue
			}
			before.Spec.InitContainers = append([]corev1.Container{container("mesh").Container}, before.Spec.InitContainers...)
		}
		after := before.DeepCopy()
		if children.Inject(after, &singleton("db").mode(one(r, modes...)).StatefulSingleton, around()) != nil {
			continue
		}
		patch, err := webhooks.Changes(before, after)
		if err != nil {
			t.Fatal(err)
		}
		raw := tree(t, before)
		unknown := mark(raw)
		var got any
		if err := json.Unmarshal(patched(t, asJSON(t, raw), []byte(asJSON(t, patch))), &got); err != nil {
			t.Fatal(err)
		}
		if left := unmark(got); left != unknown {
			t.Fatalf("seed %d: %d unknown fields were sent, and %d are left", seed, unknown, left)
		}
		if want := tree(t, after); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the patched pod is different: %v %v", seed, lost("", want, got), lost("", got, want))
		}
	}
}

// mark adds an unknown field to every named object in a list of a tree, and returns their
// number.
func mark(node any) (count int) {
	switch node := node.(type) {
	case []any:
		for _, entry := range node {
			if entry, ok := entry.(map[string]any); ok && entry["name"] != nil {
				entry["unknown"] = "kept"
				count++
			}
			count += mark(entry)
		}
	case map[string]any:
		for _, child := range node {
			count += mark(child)
		}
	}
	return count
}

func unmark(node any) (count int) {
	switch node := node.(type) {
	case []any:
		for _, entry := range node {
			count += unmark(entry)
		}
	case map[string]any:
		if node["unknown"] == "kept" {
			delete(node, "unknown")
			count++
		}
		for _, child := range node {
			count += unmark(child)
		}
	}
	return count
}

func TestThePatchOfNothingIsNothing(t *testing.T) {
	p := injected(t, &pod().Pod, singleton("db"))
	if answer := asked(newHandler(t, known{items: all(singleton("db"))}), asJSON(t, p)); !answer.Allowed || answer.Patch != nil {
		t.Errorf("%s", answer.Patch)
	}
}

// TestS26TheWebhookRefuses checks the errors about overlap and about the limit of objects.
func TestS26TheWebhookRefuses(t *testing.T) {
	var hundred []v1.StatefulSingleton
	for i := range spec.MaxPerNamespace {
		hundred = append(hundred, singleton(fmt.Sprintf("s%03d", i)).selecting(labelled("app", fmt.Sprint(i))).StatefulSingleton)
	}
	const prefix = `StatefulSingleton.apps.openshift.statefulsingleton.com "db" is invalid: `
	const overlapping = `spec.selector: Invalid value: "app=db": a pod could also match StatefulSingleton other, which selects app=db, but may belong to only one; use a label with a different value in each selector, for example app`
	for _, r := range []struct {
		name string
		have known
		s    *singletonFixture
		want string
	}{
		{"the first object of a namespace", known{}, singleton("db"), ""},
		{"an object whose selector does not overlap", known{items: all(singleton("web").selecting(labelled("app", "web")))}, singleton("db"), ""},
		{"an object whose selector overlaps", known{items: all(singleton("other"))}, singleton("db"), prefix + overlapping},
		{"an object whose selector overlaps with that of a terminating object", known{items: all(singleton("other").deleted())}, singleton("db"), prefix + overlapping + ", or wait until it is gone, because it is being deleted"},
		{"an object with the name of an existing one", known{items: all(singleton("db"))}, singleton("db"), ""},
		{"the 100th object", known{items: hundred[1:]}, singleton("db"), ""},
		{"the 101st object", known{items: hundred}, singleton("db"), prefix + `metadata.namespace: Forbidden: a namespace may have at most 100 StatefulSingletons, because the API server compares every new pod with all of them, and ns has reached this limit; use another namespace`},
		{"an invalid object", known{}, singleton("db").containers("status-sidecar"), prefix + `spec.containers[0]: Forbidden: this is the operator's own container, not the program`},
		{"any object while the list of others fails", known{err: errors.New("no")}, singleton("db"), ""},
	} {
		_, err := (&webhooks.Validator{Singletons: r.have}).ValidateCreate(context.Background(), &r.s.StatefulSingleton)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestUpdatesOfBookkeepingPass(t *testing.T) {
	v, ctx := &webhooks.Validator{Singletons: known{}}, context.Background()
	faulty := singleton("db").containers("status-sidecar")
	relabelled := faulty.DeepCopy()
	relabelled.Finalizers = []string{v1.FinalizerSingleton}
	if _, err := v.ValidateUpdate(ctx, &faulty.StatefulSingleton, relabelled); err != nil {
		t.Errorf("a finalizer on an invalid object is refused: %v", err)
	}
	changed := faulty.DeepCopy()
	changed.Spec.GateMode = v1.GateInit
	if _, err := v.ValidateUpdate(ctx, &faulty.StatefulSingleton, changed); err == nil {
		t.Error("a change of an invalid spec was accepted")
	}
	changed.DeletionTimestamp = &metav1.Time{}
	if _, err := v.ValidateUpdate(ctx, &faulty.StatefulSingleton, changed); err != nil {
		t.Errorf("an update of a terminating object is refused: %v", err)
	}
	warned, err := v.ValidateCreate(ctx, &singleton("db").mode(v1.GateInit).containers("app").StatefulSingleton)
	if err != nil || len(warned) != 1 {
		t.Errorf("containers in mode Init: %v, %v", warned, err)
	}
	if _, err := v.ValidateDelete(ctx, nil); err != nil {
		t.Error(err)
	}
}

// TestS6OnlyNewPodsAreSentToUs checks for which pods the API server calls our webhook (S6,
// S3), and its behavior if the webhook does not respond.
func TestS6OnlyNewPodsAreSentToUs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "webhook", "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		if configuration.Kind != "MutatingWebhookConfiguration" {
			continue
		}
		w := configuration.Webhooks[0]
		if w.Name != "mpod.kb.io" || *w.ClientConfig.Service.Path != webhooks.PodPath || len(w.Rules) != 1 || !reflect.DeepEqual(w.Rules[0].Operations, []admissionregistrationv1.OperationType{"CREATE"}) ||
			!reflect.DeepEqual(w.Rules[0].Resources, []string{"pods"}) || *w.FailurePolicy != "Ignore" || *w.TimeoutSeconds != 2 || *w.ReinvocationPolicy != "IfNeeded" || *w.SideEffects != "None" {
			t.Errorf("%+v", w)
		}
		return
	}
	t.Error("the mutating webhook is missing")
}
