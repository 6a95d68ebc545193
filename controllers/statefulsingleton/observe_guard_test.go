package statefulsingleton

import (
	"context"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// TestObjectsAreLookedAtWhenTheirGuardChanges checks that objects at rest are requeued when
// the policy changes, because they get no watch event of it.
func TestObjectsAreLookedAtWhenTheirGuardChanges(t *testing.T) {
	_, cached := crowd(t, 3, 1, 0)
	to := mapper{&observe.Reader{Cache: cached}}
	if woken := to.allObjects(context.Background(), nil); len(woken) != 3 {
		t.Errorf("objects %v are requeued", woken)
	}
}
