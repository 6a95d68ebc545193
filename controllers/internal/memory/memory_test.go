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
		t.Errorf("the first time: %d, %v", *value, isNew)
	}
	*value = 7
	if value, isNew = m.Get(key, "1"); isNew || *value != 7 {
		t.Errorf("the second time: %d, %v", *value, isNew)
	}
	if value, isNew = m.Get(key, "2"); !isNew || *value != 0 {
		t.Errorf("another object of the same name: %d, %v", *value, isNew)
	}
	if !m.Forget(key) || m.Forget(key) {
		t.Error("something is known once, and then no more")
	}
	if _, isNew = m.Get(key, "2"); !isNew {
		t.Error("it is known after it was forgotten")
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
		{"once may be of a moment", forbidden, false},
		{"twice is told", forbidden, true},
		{"a failure of another kind changes nothing", errors.New("no answer"), true},
		{"a write that passed ends it", nil, false},
		{"no answer", errors.New("no answer"), false},
		{"is no refusal", errors.New("no answer"), false},
		{"a write that was changed is told as well", fmt.Errorf("patch: %w", rejection.ErrChanged), true},
	} {
		if r.Learn(step.failed); (r.Text() != "") != step.told {
			t.Errorf("%s: %q", step.says, r.Text())
		}
	}
}
