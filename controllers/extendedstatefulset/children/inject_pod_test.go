package children_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
)

// asPod returns the JSON of a pod that includes the given fields.
func asPod(meta, spec string) []byte {
	return fmt.Appendf(nil, `{"metadata": {"name": "db-v1-2", %s "uid": null}, "spec": {%s "x": null}}`, meta, spec)
}

// handled returns the response of the webhook to a raw pod.
func handled(ctx context.Context, raw []byte) admission.Response {
	return (&webhooks.PodHandler{Live: fixture.NoAnswer{}}).Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns", Object: runtime.RawExtension{Raw: raw}}})
}

// TestAPodOfAnySizeIsReadOnceAndNotKept verifies that the webhook reads a pod once and keeps only the
// fields that it needs.
func TestAPodOfAnySizeIsReadOnceAndNotKept(t *testing.T) {
	many := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	labels := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `"k%d":"",`, i)
		}
		return all.String()
	}
	for _, row := range []struct {
		name string
		raw  func(n int) []byte
	}{
		{"containers", func(n int) []byte { return asPod("", `"containers": [`+many(`{"name":""}`, n)+`],`) }},
		{"volumes", func(n int) []byte { return asPod("", `"volumes": [`+many(`{}`, n)+`],`) }},
		{"volumes with an unassigned claim", func(n int) []byte {
			return asPod("", `"volumes": [`+many(`{"persistentVolumeClaim":{"claimName":"db-unassigned"}}`, n)+`],`)
		}},
		{"labels", func(n int) []byte { return asPod(`"labels": {`+labels(n)+`"a": "b"},`, "") }},
		{"owners", func(n int) []byte { return asPod(`"ownerReferences": [`+many(`{"controller":true}`, n)+`],`, "") }},
		{"nested arrays", func(n int) []byte { return asPod("", `"deep": `+strings.Repeat("[", n)+strings.Repeat("]", n)+`,`) }},
		{"one long string", func(n int) []byte { return asPod(`"annotations": {"a": "`+strings.Repeat("x", 10*n)+`"},`, "") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			raw := row.raw(200_000)
			began := time.Now()
			n, err := children.ReadIncomingPod(json.NewDecoder(bytes.NewReader(raw)))
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("parsing %d bytes takes %s", len(raw), took)
			}
			if len(n.Labels)+len(n.Annotations)+len(n.OwnerReferences)+len(n.Waiting) > spec.MaxVolumes+1 {
				t.Errorf("kept %d labels, %d annotations, %d owners, %d volumes", len(n.Labels), len(n.Annotations), len(n.OwnerReferences), len(n.Waiting))
			}
			if got := handled(context.Background(), raw); !got.Allowed || len(got.Patch) > 0 || len(got.Warnings) != 1 {
				t.Errorf("got response %v for a pod of another application", got)
			}
		})
	}
}

// TestAPodOfARequestThatEndedIsLeft verifies that the webhook stops reading when the request has ended,
// and sends no request to the API server.
func TestAPodOfARequestThatEndedIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := handled(ctx, asPod("", "")); got.Allowed || !strings.Contains(got.Result.Message, context.Canceled.Error()) {
		t.Errorf("got response %v", got)
	}
}

func TestWhatIsNoPodIsRefused(t *testing.T) {
	for _, raw := range []string{"", "[]", `"pod"`, "{", `{"metadata": []}`, `{"metadata": {"labels": {"a": 1}}}`, `{"spec": {"volumes": {}}}`,
		`{"spec": {"volumes": [1]}}`, `{"metadata": {"ownerReferences": [{"controller": "yes"}]}}`, `{"spec": {"a": [}}`} {
		if got := handled(context.Background(), []byte(raw)); got.Allowed || got.Result.Code != 400 {
			t.Errorf("%s: got response %v", raw, got)
		}
	}
}

// TestAPodWithMoreClaimsThanThereMayBe verifies the limit of claims: a pod has at most one volume for
// each claim template.
func TestAPodWithMoreClaimsThanThereMayBe(t *testing.T) {
	for _, row := range []struct {
		volumes int
		patched bool
	}{{spec.MaxClaimsOf, true}, {spec.MaxClaimsOf + 1, false}, {spec.MaxVolumes, false}, {spec.MaxVolumes + 1, false}} {
		pod := fixture.NewPod(fixture.Volumes(), children.Zone{Index: children.NoZone}, 1)
		pod.Spec.Volumes = slices.Repeat(pod.Spec.Volumes[:1], row.volumes)
		changes, why := children.Inject(fixture.ReadBorn(t, pod))
		if len(changes) > 0 != row.patched || !row.patched && why != "more than 16 volumes use claim db-unassigned" {
			t.Errorf("%d volumes: %d changes, %s", row.volumes, len(changes), why)
		}
	}
}

// FuzzReadIncomingPod verifies that the fields read from a pod equal those of a full decode.
func FuzzReadIncomingPod(f *testing.F) {
	for _, pod := range []*corev1.Pod{fixture.NewPod(fixture.Volumes(), children.Zone{Index: children.NoZone}, 1), fixture.NewPod(fixture.Zoned(3, "a"), children.Zone{Name: "a", Index: 0}, 12), {}} {
		raw, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"spec": {"volumes": [null, {"name": null, "persistentVolumeClaim": null}]}, "metadata": null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := children.ReadIncomingPod(json.NewDecoder(bytes.NewReader(raw)))
		var pod corev1.Pod
		strict := json.NewDecoder(bytes.NewReader(raw))
		if err != nil || strict.Decode(&pod) != nil {
			return // the API server never sends such an object
		}
		again, err := json.Marshal(&pod) // as the API server writes it: each name once, in its exact case
		if err != nil {
			return
		}
		n, err := children.ReadIncomingPod(json.NewDecoder(bytes.NewReader(again)))
		if err != nil {
			t.Fatal(err)
		}
		if n.Name != pod.Name || n.Hostname != pod.Spec.Hostname || n.Annotations[v1alpha1.AnnotationHostnames] != pod.Annotations[v1alpha1.AnnotationHostnames] {
			t.Errorf("parsed %+v from %s", n, again)
		}
		for _, label := range children.ReadLabels {
			if n.Labels[label] != pod.Labels[label] {
				t.Errorf("label %s is parsed as %q", label, n.Labels[label])
			}
		}
		a, b := metav1.GetControllerOf(n), metav1.GetControllerOf(&pod)
		if (a == nil) != (b == nil) || a != nil && (a.Kind != b.Kind || a.Name != b.Name || a.APIVersion != b.APIVersion) {
			t.Errorf("the controller is parsed as %v", a)
		}
		var want []children.UnassignedVolume
		for i, v := range pod.Spec.Volumes {
			if c := v.PersistentVolumeClaim; c != nil && strings.HasSuffix(c.ClaimName, v1alpha1.UnassignedClaim) {
				want = append(want, children.UnassignedVolume{At: i, Name: v.Name, Claim: c.ClaimName})
			}
		}
		if !n.More && !slices.Equal(n.Waiting, want) {
			t.Errorf("got unassigned volumes %v, want %v", n.Waiting, want)
		}
	})
}
