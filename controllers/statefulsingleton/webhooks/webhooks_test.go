package webhooks_test

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
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kubeadmissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// asked returns the handler's response to a raw pod.
func asked(h *webhooks.PodHandler, raw string) admission.Response {
	return h.Handle(context.Background(), admission.Request{AdmissionRequest: kubeadmissionv1.AdmissionRequest{
		Namespace: "ns", Object: runtime.RawExtension{Raw: []byte(raw)}}})
}

// TestS3StrangersAreByteIdentical checks that pods that no object selects are not changed.
func TestS3StrangersAreByteIdentical(t *testing.T) {
	db := fixture.Known{Items: fixture.All(fixture.Singleton("db"))}
	for _, r := range []struct {
		name string
		have fixture.Known
		raw  string
	}{
		{"a pod with other labels", db, `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a"}]}}`},
		{"a pod without labels", db, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a"}]}}`},
		{"a pod whose labels are null", db, `{"metadata":{"name":"x","labels":null},"spec":{"containers":[{"name":"a"}]}}`},
		{"a pod with unknown fields", db, `{"metadata":{"new":1},"spec":{"newer":{"a":[]},"containers":[]}}`},
		{"a pod in a namespace without StatefulSingletons", fixture.Known{}, `{"metadata":{"labels":{"app":"db"}}}`},
		{"W14 a pod of a terminating object without our finalizer", fixture.Known{Items: fixture.All(fixture.Singleton("db").Deleted())}, `{"metadata":{"labels":{"app":"db"}}}`},
		{"any pod while the list of objects fails, so that the guard decides", fixture.Known{Err: errors.New("no")}, `{"metadata":{"labels":{"app":"db"}}}`},
		{"an object that is not a pod", db, `{"metadata":[]}`},
		{"a mirror pod of a static pod", db, `{"metadata":{"labels":{"app":"db"},"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"containers":[{"name":"a"}]}}`},
	} {
		answer := asked(fixture.NewHandler(t, r.have), r.raw)
		if !answer.Allowed || answer.Patch != nil || answer.Patches != nil || answer.PatchType != nil || answer.Warnings != nil {
			t.Errorf("%s: %v", r.name, answer)
		}
	}
}

func TestAMatchingPodIsPatched(t *testing.T) {
	h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db"))})
	answer := asked(h, asJSON(t, &fixture.Pod().Pod))
	if !answer.Allowed || answer.PatchType == nil || *answer.PatchType != kubeadmissionv1.PatchTypeJSONPatch {
		t.Fatalf("%v", answer)
	}
	var got corev1.Pod
	if err := json.Unmarshal(patched(t, asJSON(t, &fixture.Pod().Pod), answer.Patch), &got); err != nil {
		t.Fatal(err)
	}
	if !children.HasGate(&got, &fixture.Singleton("db").StatefulSingleton) {
		t.Errorf("the pod has no gate: %v", got)
	}
}

// TestS48TheWebhookReadsTheNodes checks both volumes of the gate.
func TestS48TheWebhookReadsTheNodes(t *testing.T) {
	for version, want := range map[string]bool{"v1.35.0": true, "v1.34.2": false} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version, ContainerRuntimeVersion: "containerd://2.1.4"}}}
		h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db"))})
		h.ImageVolumes = &nodestate.ImageVolumes{Nodes: fake.NewClientBuilder().WithObjects(node).Build(), Now: time.Now}
		var got corev1.Pod
		if err := json.Unmarshal(patched(t, asJSON(t, &fixture.Pod().Pod), asked(h, asJSON(t, &fixture.Pod().Pod)).Patch), &got); err != nil {
			t.Fatal(err)
		}
		if mounted := got.Spec.Volumes[1].Image != nil; mounted != want || len(got.Spec.InitContainers) == 0 != want {
			t.Errorf("with %s the pod is %+v", version, got.Spec)
		}
	}
}

// TestW14AnObjectThatIsBeingDeletedHoldsNewPods checks new pods of a terminating object:
// the deletion may begin during a rollout.
func TestW14AnObjectThatIsBeingDeletedHoldsNewPods(t *testing.T) {
	going := fixture.Singleton("db").Deleted()
	going.Finalizers = []string{v1.FinalizerSingleton}
	before := asJSON(t, &fixture.Pod().Pod)
	var got corev1.Pod
	if err := json.Unmarshal(patched(t, before, asked(fixture.NewHandler(t, fixture.Known{Items: fixture.All(going)}), before).Patch), &got); err != nil {
		t.Fatal(err)
	}
	if !children.HasGate(&got, &going.StatefulSingleton) {
		t.Errorf("the pod has no gate: %v", got)
	}
	next := fixture.Singleton("next").MadeAt(99)
	if ruler := spec.RulerOf(fixture.Pod().Labels, fixture.All(going, next)); ruler == nil || ruler.Name != "next" {
		t.Errorf("with a terminating object and another one, %v manages the pod", ruler)
	}
}

func TestAPodThatCannotBeHeldIsRefused(t *testing.T) {
	h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db").Mode(v1.GateBinary))})
	answer := asked(h, asJSON(t, &fixture.Pod(fixture.Container("app")).Pod))
	const want = `StatefulSingleton db cannot hold back this pod: spec.containers[0].command: Required value: gate mode Binary runs`
	if answer.Allowed || answer.Patch != nil || !strings.HasPrefix(answer.Result.Message, want) {
		t.Errorf("%v", answer)
	}
}

// TestS22ClaimsAreLookedAt checks that a pod gets no anti-affinity if only one node at a
// time can mount its volume.
func TestS22ClaimsAreLookedAt(t *testing.T) {
	h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db"))})
	for claim, apart := range map[string]bool{"one-node": false, "one-pod": false, "many": true, "readers": true, "not-there-yet": false} {
		before := asJSON(t, &fixture.Pod().Claim(claim).Pod)
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
		before := fixture.RandomPod(r)
		if fixture.Maybe(r, 3) { // a second call, after an init container by another client
			if children.Inject(before, &fixture.Singleton("db").StatefulSingleton, fixture.Around()) != nil {
				continue
			}
			before.Spec.InitContainers = append([]corev1.Container{fixture.Container("mesh").Container}, before.Spec.InitContainers...)
		}
		after := before.DeepCopy()
		if children.Inject(after, &fixture.Singleton("db").Mode(fixture.One(r, fixture.Modes...)).StatefulSingleton, fixture.Around()) != nil {
			continue
		}
		patch, err := webhooks.Changes(before, after)
		if err != nil {
			t.Fatal(err)
		}
		raw := fixture.Tree(t, before)
		unknown := mark(raw)
		var got any
		if err := json.Unmarshal(patched(t, asJSON(t, raw), []byte(asJSON(t, patch))), &got); err != nil {
			t.Fatal(err)
		}
		if left := unmark(got); left != unknown {
			t.Fatalf("seed %d: %d unknown fields were sent, and %d are left", seed, unknown, left)
		}
		if want := fixture.Tree(t, after); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the patched pod is different: %v %v", seed, fixture.Lost("", want, got), fixture.Lost("", got, want))
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
	p := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db"))
	if answer := asked(fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db"))}), asJSON(t, p)); !answer.Allowed || answer.Patch != nil {
		t.Errorf("%s", answer.Patch)
	}
}

// TestS26TheWebhookRefuses checks the errors about overlap and about the limit of objects.
func TestS26TheWebhookRefuses(t *testing.T) {
	var hundred []v1.StatefulSingleton
	for i := range spec.MaxPerNamespace {
		hundred = append(hundred, fixture.Singleton(fmt.Sprintf("s%03d", i)).Selecting(fixture.Labelled("app", fmt.Sprint(i))).StatefulSingleton)
	}
	const prefix = `StatefulSingleton.apps.openshift.statefulsingleton.com "db" is invalid: `
	const overlapping = `spec.selector: Invalid value: "app=db": a pod could also match StatefulSingleton other, which selects app=db, but may belong to only one; use a label with a different value in each selector, for example app`
	for _, r := range []struct {
		name string
		have fixture.Known
		s    *fixture.SingletonFixture
		want string
	}{
		{"the first object of a namespace", fixture.Known{}, fixture.Singleton("db"), ""},
		{"an object whose selector does not overlap", fixture.Known{Items: fixture.All(fixture.Singleton("web").Selecting(fixture.Labelled("app", "web")))}, fixture.Singleton("db"), ""},
		{"an object whose selector overlaps", fixture.Known{Items: fixture.All(fixture.Singleton("other"))}, fixture.Singleton("db"), prefix + overlapping},
		{"an object whose selector overlaps with that of a terminating object", fixture.Known{Items: fixture.All(fixture.Singleton("other").Deleted())}, fixture.Singleton("db"), prefix + overlapping + ", or wait until it is gone, because it is being deleted"},
		{"an object with the name of an existing one", fixture.Known{Items: fixture.All(fixture.Singleton("db"))}, fixture.Singleton("db"), ""},
		{"the 100th object", fixture.Known{Items: hundred[1:]}, fixture.Singleton("db"), ""},
		{"the 101st object", fixture.Known{Items: hundred}, fixture.Singleton("db"), prefix + `metadata.namespace: Forbidden: a namespace may have at most 100 StatefulSingletons, because the API server compares every new pod with all of them, and ns has reached this limit; use another namespace`},
		{"an invalid object", fixture.Known{}, fixture.Singleton("db").Containers("status-sidecar"), prefix + `spec.containers[0]: Forbidden: this is the operator's own container, not the program`},
		{"any object while the list of others fails", fixture.Known{Err: errors.New("no")}, fixture.Singleton("db"), ""},
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
	v, ctx := &webhooks.Validator{Singletons: fixture.Known{}}, context.Background()
	faulty := fixture.Singleton("db").Containers("status-sidecar")
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
	warned, err := v.ValidateCreate(ctx, &fixture.Singleton("db").Mode(v1.GateInit).Containers("app").StatefulSingleton)
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
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "webhook", "manifests.yaml"))
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
