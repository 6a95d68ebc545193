package children_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

func TestShortList(t *testing.T) {
	var list children.ShortList
	for i, want := range []string{"", "a", "a, b", "a, b, c", "a, b, c and 1 more", "a, b, c and 2 more"} {
		if got := list.String(); got != want {
			t.Errorf("%d names: %q, want %q", i, got, want)
		}
		list.Add(string(rune('a' + i)))
	}
}
