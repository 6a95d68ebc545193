package decoded

import "testing"

func TestIsEmpty(t *testing.T) {
	for _, empty := range []any{nil, map[string]any{}, []any{}} {
		if !IsEmpty(empty) {
			t.Errorf("%#v is not empty", empty)
		}
	}
	for _, full := range []any{"", false, 0.0, map[string]any{"a": nil}, []any{nil}} {
		if IsEmpty(full) {
			t.Errorf("%#v is empty", full)
		}
	}
}

func TestBelow(t *testing.T) {
	if got := Below(Below("", "spec"), "replicas"); got != "spec.replicas" {
		t.Errorf("the path is %s", got)
	}
}
