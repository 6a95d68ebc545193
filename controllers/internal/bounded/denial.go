package bounded

import (
	"bytes"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// head is how many bytes of a review are searched for its UID. The API server writes the UID first.
const head = 4 << 10

// deny responds to a review with a denial. Any status other than 200 would be a failure of the webhook:
// with failurePolicy Ignore, the API server would then accept the faulty object. If the body is not a
// review, deny responds with the status code instead.
func deny(w http.ResponseWriter, body []byte, code int, message string) {
	uid := uidOf(body)
	if uid == "" {
		http.Error(w, message, code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// An error means that the client disconnected.
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{UID: uid, Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReasonForbidden, Message: message}},
	})
}

// isOfNew reports whether the new object of a review is faulty and the stored one is not. An object
// that was stored with a fault must remain editable: otherwise its finalizers could never be removed.
func isOfNew(body []byte, faulty func(object []byte) bool) bool {
	now, before, ok := objectsOf(body)
	return ok && faulty(now) && !faulty(before)
}

// objectsOf returns the new and the stored object of a review. It does not decode them, so they take no
// more memory than their bytes.
func objectsOf(body []byte) (now, before json.RawMessage, ok bool) {
	var review struct {
		Request struct{ Object, OldObject json.RawMessage }
	}
	err := json.Unmarshal(body, &review)
	return review.Request.Object, review.Request.OldObject, err == nil
}

// managedParts returns the weight that weigh assigns to the managed fields of an object, without the
// weight of the entries themselves.
func managedParts(object []byte) int64 {
	var o struct {
		Metadata struct{ ManagedFields json.RawMessage }
	}
	if len(object) == 0 || json.Unmarshal(object, &o) != nil {
		return 0
	}
	fields := o.Metadata.ManagedFields
	return partWeight * max(0, parts(fields)-entryParts*int64(entries(fields)))
}

// entryParts is the number of parts of one managed fields entry without its fields: five commas in it,
// one after it, two braces, and a reserve.
const entryParts = 10

// entries returns the number of top-level objects and lists in a JSON list.
func entries(list []byte) (n int) {
	depth, quoted := 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth == 2 {
				n++
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return n
}

// uidOf returns the UID of a review, or "" if its first bytes contain none.
func uidOf(body []byte) types.UID {
	d := json.NewDecoder(bytes.NewReader(body[:min(len(body), head)]))
	if !enter(d, "request") || !enter(d, "uid") {
		return ""
	}
	uid, _ := d.Token()
	text, _ := uid.(string)
	return types.UID(text)
}

// enter reads the beginning of an object up to the value of key. It reports whether the object has the
// key.
func enter(d *json.Decoder, key string) bool {
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false
		}
		if name == key {
			return true
		}
		var other json.RawMessage
		if d.Decode(&other) != nil {
			return false
		}
	}
	return false
}
