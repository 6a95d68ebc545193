package bounded

import (
	"bytes"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// head is how many bytes of a review are looked at for its UID. The API server writes it first.
const head = 4 << 10

// deny answers a review with a denial. An answer that is not 200 would be a failure of the webhook:
// with failurePolicy Ignore the API server would take the object that is at fault. Where the body
// is no review, the answer has the code.
func deny(w http.ResponseWriter, body []byte, code int, message string) {
	uid := uidOf(body)
	if uid == "" {
		http.Error(w, message, code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The caller has gone if this fails.
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{UID: uid, Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReasonForbidden, Message: message}},
	})
}

// isOfNew reports whether a fault is one of the new object of a review, and not of the stored one. What is
// stored with a fault must stay open to changes: a denial would keep its finalizers for ever.
func isOfNew(body []byte, faulty func(object []byte) bool) bool {
	now, before, ok := objectsOf(body)
	return ok && faulty(now) && !faulty(before)
}

// objectsOf returns the new and the stored object of a review. They are not decoded, so they take no more
// than their bytes.
func objectsOf(body []byte) (now, before json.RawMessage, ok bool) {
	var review struct {
		Request struct{ Object, OldObject json.RawMessage }
	}
	err := json.Unmarshal(body, &review)
	return review.Request.Object, review.Request.OldObject, err == nil
}

// managedParts returns what weigh counts for parts of the managed fields of an object, without their
// entries.
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

// entryParts is the number of parts of an entry of managed fields without the fields: five commas in it, one
// after it, two braces, and some to spare.
const entryParts = 10

// entries returns the number of objects and lists in a JSON list that are not in another one.
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

// uidOf returns the UID of a review, as it is found in its first bytes; "" if there is none.
func uidOf(body []byte) types.UID {
	d := json.NewDecoder(bytes.NewReader(body[:min(len(body), head)]))
	if !enter(d, "request") || !enter(d, "uid") {
		return ""
	}
	uid, _ := d.Token()
	text, _ := uid.(string)
	return types.UID(text)
}

// enter reads the beginning of an object up to the value of a key, and reports whether the object
// has it.
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
