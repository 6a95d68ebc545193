package memory

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

func TestOf(t *testing.T) {
	var m Of[int]
	key := types.NamespacedName{Namespace: "ns", Name: "db"}
	value, isNew := m.Get(key, "1")
	if !isNew || *value != 0 {
		t.Errorf("first get: %d, %v", *value, isNew)
	}
	*value = 7
	if value, isNew = m.Get(key, "1"); isNew || *value != 7 {
		t.Errorf("second get: %d, %v", *value, isNew)
	}
	if value, isNew = m.Get(key, "2"); !isNew || *value != 0 {
		t.Errorf("another object of the same name: %d, %v", *value, isNew)
	}
	if !m.Forget(key) || m.Forget(key) {
		t.Error("forget reports one removed entry, then none")
	}
	if _, isNew = m.Get(key, "2"); !isNew {
		t.Error("an entry exists after it was removed")
	}
}

func TestRefusal(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db", errors.New("quota"))
	var r Refusal
	for _, step := range []struct {
		says   string
		failed error
		told   bool
	}{
		{"a single refusal is not reported", forbidden, false},
		{"a repeated refusal is reported", forbidden, true},
		{"a failure of another kind keeps the refusal", errors.New("no response"), true},
		{"a successful write clears the refusal", nil, false},
		{"an error without a status", errors.New("no response"), false},
		{"not a refusal", errors.New("no response"), false},
		{"a write that was not stored is reported as well", fmt.Errorf("patch: %w", rejection.ErrUnstored), true},
		{"a write that was changed is reported as well", fmt.Errorf("patch: %w", rejection.ErrChanged), true},
	} {
		if r.Learn(step.failed); (r.Text() != "") != step.told {
			t.Errorf("%s: %q", step.says, r.Text())
		}
	}
}
