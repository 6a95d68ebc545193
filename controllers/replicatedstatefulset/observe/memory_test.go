package observe_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

// TestMemoryKnowsWhoseGrantWentLast tests that a proven stop of the primary applies to the last
// primary only.
func TestMemoryKnowsWhoseGrantWentLast(t *testing.T) {
	r := &observe.Reader{}
	seen := func(holders ...types.UID) types.UID {
		set := fixture.SetOf(3, 2)
		set.UID = "set"
		for _, uid := range holders {
			set.Status.Grants = append(set.Status.Grants, v1alpha1.Grant{UID: uid})
		}
		w := &facts.World{Set: set}
		r.Recall(w)
		return w.LossOf
	}
	for _, row := range []struct {
		says    string
		holders []types.UID
		want    types.UID
	}{
		{"all grants exist", []types.UID{"a", "b", "c"}, ""},
		{"one grant was removed", []types.UID{"b", "c"}, "a"},
		{"no further grant was removed", []types.UID{"b", "c"}, "a"},
		{"two grants were removed at once", nil, ""},
		{"a grant returned after two were removed at once", []types.UID{"a"}, ""},
		{"the returned grant was removed", nil, "a"},
	} {
		if got := seen(row.holders...); got != row.want {
			t.Errorf("%s: the last removed grant is of %q, want %q", row.says, got, row.want)
		}
	}
}
