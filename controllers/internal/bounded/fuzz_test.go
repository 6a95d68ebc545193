package bounded

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzLimit sends arbitrary bodies. A handler must receive a complete body or none, and all acquired
// resources must be released.
func FuzzLimit(f *testing.F) {
	f.Add("")
	f.Add(`{"containers":[null,null]}`)
	f.Add("{" + strings.Repeat(",", 100))
	f.Add("containers:\n" + strings.Repeat("-\n", 100))
	f.Fuzz(func(t *testing.T, body string) {
		seen := false
		handler := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = true }), few)
		status := post(handler, "10.0.0.1", body)
		if seen != (status == http.StatusOK) {
			t.Errorf("response %d, and the handler was called with: %v", status, seen)
		}
		if seen && body != "" && !isObject([]byte(body)) {
			t.Error("a body that is not a JSON object was decoded")
		}
		l := handler.(*limiter)
		if l.arriving.Known()+l.working.Known() > 0 || !l.decoded.TryAcquire(few.memory) {
			t.Error("the memory of the request is still reserved")
		}
	})
}
