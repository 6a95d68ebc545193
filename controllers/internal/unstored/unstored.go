// Package unstored detects fields of a status that the API server does not store, because the installed
// CRD is older than the operator. Without it, such a status would differ in every pass, and be written
// again each time.
package unstored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/stateful-operator/stateful-operator/controllers/internal/decoded"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

// RetryAfter is the time after which a field is written again, because the CRD may have been updated.
const RetryAfter = 10 * time.Minute

// Memory has the fields of the status of one kind that the API server did not store. The zero value is
// ready to use, and safe for concurrent use.
type Memory struct {
	mu     sync.Mutex
	fields map[string]time.Time // when the field was written last, by path
}

// Learn compares a status that was written with the status in the response of the API server.
func (m *Memory) Learn(written, stored any, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.fields) == 0 && bytes.Equal(textOf(written), textOf(stored)) {
		return
	}
	sent, missing := map[string]bool{}, map[string]bool{}
	compare("", valueOf(written), valueOf(stored), sent, missing)
	for path := range sent {
		if !missing[path] {
			delete(m.fields, path)
		}
	}
	for path := range missing {
		if m.fields == nil {
			m.fields = map[string]time.Time{}
		}
		m.fields[path] = now
	}
}

// Same reports whether a wanted status is stored, apart from the fields that the API server does not
// store.
func (m *Memory) Same(stored, wanted any, now time.Time) bool {
	if apiequality.Semantic.DeepEqual(stored, wanted) {
		return true
	}
	fields := m.recent(now)
	if len(fields) == 0 {
		return false
	}
	want, have := valueOf(wanted), valueOf(stored)
	if want == nil || have == nil {
		return false
	}
	all := func(any) bool { return true }
	return reflect.DeepEqual(without("", want, fields, all), without("", have, fields, isZero))
}

// recent returns the fields that were written less than RetryAfter ago, and were not stored.
func (m *Memory) recent(now time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	fields := map[string]bool{}
	for path, at := range m.fields {
		if now.Before(at.Add(RetryAfter)) {
			fields[path] = true
		}
	}
	return fields
}

// Missing returns the paths of the fields that were written and that the API server did not store. The items
// of a list have one path.
func Missing(written, stored any) []string {
	missing := map[string]bool{}
	compare("", valueOf(written), valueOf(stored), map[string]bool{}, missing)
	return slices.Sorted(maps.Keys(missing))
}

// Verify returns rejection.ErrUnstored if the API server did not store fields of a record that it must store.
func Verify(written, stored any) error {
	if missing := Missing(written, stored); len(missing) > 0 {
		return fmt.Errorf("%w status.%s: the CustomResourceDefinition is older than the operator; apply the current one",
			rejection.ErrUnstored, strings.Join(missing, ", status."))
	}
	return nil
}

// compare adds the paths of all fields of an object to sent, and of those that are missing in the response
// to missing. A missing field has its zero value in the type of the response. A field below a missing one
// has no path of its own.
func compare(path string, written, stored any, sent, missing map[string]bool) {
	switch written := written.(type) {
	case map[string]any:
		have, _ := stored.(map[string]any)
		for key, value := range written {
			if isZero(value) {
				continue // it is not known whether it would be stored
			}
			at := decoded.Below(path, key)
			if sent[at] = true; isZero(have[key]) {
				missing[at] = true
			} else {
				compare(at, value, have[key], sent, missing)
			}
		}
	case []any:
		have, _ := stored.([]any)
		for i := range min(len(written), len(have)) {
			compare(path+"[]", written[i], have[i], sent, missing)
		}
	}
}

// without returns a value without those of the fields that drops returns true for, and without empty ones.
func without(path string, value any, fields map[string]bool, drops func(any) bool) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, v := range value {
			at := decoded.Below(path, key)
			if fields[at] && drops(v) {
				continue
			}
			if v = without(at, v, fields, drops); !decoded.IsEmpty(v) {
				kept[key] = v
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for _, v := range value {
			kept = append(kept, without(path+"[]", v, fields, drops))
		}
		return kept
	}
	return value
}

// isZero reports whether a field has the value that a type gives to a missing field.
func isZero(value any) bool {
	switch value {
	case false, "", "0s", json.Number("0"):
		return true
	}
	return decoded.IsEmpty(value)
}

// valueOf returns a status as decoded JSON, or nil if it has no JSON. It keeps the digits of numbers.
func valueOf(status any) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(textOf(status)))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

// textOf returns a status as JSON; nil if it has none.
func textOf(status any) []byte {
	text, err := json.Marshal(status)
	if err != nil {
		return nil
	}
	return text
}
