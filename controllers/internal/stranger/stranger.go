// Package stranger sends untrusted input to webhooks in tests: objects of users, and admission requests
// from the API server or any other client that can reach the webhooks.
package stranger

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

// Samples returns the objects of the given kind from the YAML files in a folder, as JSON.
func Samples(f *testing.F, folder, kind string) (objects [][]byte) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			raw, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				f.Fatalf("%s: %v", file, err)
			}
			var meta struct{ Kind string }
			if json.Unmarshal(raw, &meta) == nil && meta.Kind == kind {
				objects = append(objects, raw)
			}
		}
	}
	if len(objects) == 0 {
		f.Fatalf("no %s in %s", kind, folder)
	}
	return objects
}

// Review returns an admission request that creates the object, or updates old to it.
func Review(object, old []byte) []byte {
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "asked", Namespace: "ns", Operation: admissionv1.Create}}
	review.APIVersion, review.Kind = admissionv1.SchemeGroupVersion.String(), "AdmissionReview"
	review.Request.Object = runtime.RawExtension{Raw: object}
	if old != nil {
		review.Request.Operation, review.Request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: old}
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil // a request cannot contain invalid JSON
	}
	return body
}

// Webhook fuzzes the webhook of a kind with arbitrary bodies. The seed corpus creates each sample, and
// updates the first sample to each. The webhook must always respond. If it allows the creation of an
// object, fault must return "" for the object, else a description of the fault.
func Webhook[T runtime.Object](f *testing.F, add func(*runtime.Scheme) error, validator admission.Validator[T], samples [][]byte, fault func(T) string) {
	f.Helper()
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		f.Fatal(err)
	}
	hook := admission.WithValidator(scheme, validator)
	for _, raw := range samples {
		f.Add(Review(raw, nil))
		f.Add(Review(raw, samples[0]))
	}
	for _, request := range []string{"null", `{"operation":"UPDATE","object":{},"oldObject":null}`, `{"operation":"UPDATE","object":null,"oldObject":{}}`} {
		f.Add([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":` + request + `}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bounds.Quantities(body) != nil {
			return
		}
		answer := Ask(t, hook, body)
		var review struct {
			Request struct {
				Operation string
				Object    json.RawMessage
			}
		}
		if json.Unmarshal(body, &review) != nil || review.Request.Operation != "CREATE" || !answer.Allowed {
			return
		}
		object := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
		if raw := review.Request.Object; len(raw) > 0 && json.Unmarshal(raw, object) != nil {
			return
		}
		if found := fault(object); found != "" {
			t.Errorf("it allows an invalid object: %s", found)
		}
	})
}

// Ask sends a body to a webhook and returns the response. It fails the test if there is no valid
// response, if the response is for another request, or if the handler panicked.
func Ask(t *testing.T, hook http.Handler, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	hook.ServeHTTP(recorder, request)
	var answer, asked admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil || recorder.Code != http.StatusOK {
		t.Fatalf("response %d %s is not an admission review: %v", recorder.Code, recorder.Body, err)
	}
	if r := answer.Response.Result; r != nil && strings.Contains(r.Message, "panic:") {
		t.Fatal(r.Message)
	}
	if json.Unmarshal(body, &asked) == nil && asked.Request != nil && answer.Response.Allowed && answer.Response.UID != asked.Request.UID {
		t.Errorf("the response is for %q, want %q", answer.Response.UID, asked.Request.UID)
	}
	return answer.Response
}

// Patched applies the patch in the response to the object, with the library that the API server uses.
func Patched(t *testing.T, object []byte, answer *admissionv1.AdmissionResponse) []byte {
	t.Helper()
	if len(answer.Patch) == 0 {
		return object
	}
	operations, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatalf("%s is not a patch: %v", answer.Patch, err)
	}
	patched, err := operations.Apply(object)
	if err != nil {
		t.Fatalf("%s does not apply to %s: %v", answer.Patch, object, err)
	}
	return patched
}
