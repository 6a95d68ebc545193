package bounds

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// TestQuantities covers a past bug: decoding a quantity of 30 characters used all memory.
func TestQuantities(t *testing.T) {
	claim := func(size string) string { return `{"spec":{"resources":{"requests":{"storage":` + size + `}}}}` }
	for _, r := range []struct {
		name, json string
		taken      bool
	}{
		{"common quantities", claim(`"1.5Gi"`), true},
		{"an exponent of two digits", claim(`"12345678901234567890e+99"`), true},
		{"an exponent of three digits", claim(`"1e100"`), false},
		{"a quantity that needs too much memory", claim(`"12345678901234567890e2000000000"`), false},
		{"a negative exponent of three digits", claim(`"-1E-1000000"`), false},
		{"a quantity without quotes", claim(`1e2000000000`), false},
		{"64 digits", claim(`"` + strings.Repeat("9", 64) + `"`), true},
		{"65 digits", claim(`"` + strings.Repeat("9", 65) + `"`), false},
		{"a key in different case", strings.Replace(claim(`"1e1000000"`), "requests", `\u0072equests`, 1), false},
		{"a divisor", `[{"divisor":"1e1000"}]`, false},
		{"a limit of a volume", `{"emptyDir":{"sizeLimit":"1e1000"}}`, false},
		{"a quantity after a nested list", `{"requests":{"a":[1,{"b":2}],"cpu":"1e1000"}}`, false},
		{"a label that looks like a quantity", `{"labels":{"sha":"1e234567"},"a":{"capacity":{"cpu":"1"}},"b":"1e1000"}`, true},
		{"N2 an annotation with the name of a quantity", `{"metadata":{"annotations":{"divisor":"1e9999"}},"spec":{"template":{"metadata":{"annotations":{"sizeLimit":"1e9999"}}}}}`, true},
		{"a resource named metadata", strings.Replace(claim(`"1e9999"`), "storage", "metadata", 1), false},
		{"a quantity after metadata", `{"metadata":{"annotations":{"a":"b"}},"divisor":"1e9999"}`, false},
		{"an environment variable that looks like a quantity", `{"env":[{"name":"requests","value":"12345e6789"}]}`, true},
		{"nested lists", strings.Repeat("[", 20000) + `"1e1000"`, false},
		{"invalid JSON", `{"a" "1e1000"}`, false},
		{"nothing", "", true},
	} {
		if err := Quantities([]byte(r.json)); (err == nil) != r.taken {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

// FuzzQuantities fuzzes a pod and a claim with untrusted input. If Quantities accepts the input, it
// must be possible to decode, compare and write it quickly.
func FuzzQuantities(f *testing.F) {
	for _, size := range []string{"1Gi", "1e99", "-1e-99", ".5", "12345678901234567890e99", "1e1000", "9223372036854775807Ei"} {
		f.Add([]byte(`{"spec":{"resources":{"requests":{"storage":"` + size + `"},"limits":{"cpu":` + `1e5}}},"status":{"capacity":{"a":"` + size + `"}}}`))
		f.Add([]byte(`{"spec":{"overhead":{"cpu":"` + size + `"},"volumes":[{"emptyDir":{"sizeLimit":"` + size + `"}}],"containers":[{"resources":{"limits":{"cpu":"` + size + `"}}}]}}`))
	}
	f.Add([]byte(`{"metadata":{"labels":{"sha":"1e234567"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if Quantities(body) != nil {
			return
		}
		for _, objects := range [][2]any{{&corev1.Pod{}, &corev1.Pod{}}, {&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}}} {
			began := time.Now()
			if json.Unmarshal(body, objects[0]) != nil {
				continue
			}
			text, err := json.Marshal(objects[0])
			if err != nil {
				t.Fatalf("cannot encode the decoded object: %v", err)
			}
			if err := json.Unmarshal(text, objects[1]); err != nil {
				t.Fatalf("cannot decode the encoded object: %v", err)
			}
			apiequality.Semantic.DeepEqual(objects[0], objects[1])
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%d bytes take %s", len(body), took)
			}
		}
	})
}
