package excerpt

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, row := range []struct {
		text string
		most int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"abä", 3, "ab"}, {"aä", 3, "aä"}, {"a", 0, ""}} {
		if got := Of(row.text, row.most); got != row.want {
			t.Errorf("excerpt of %d bytes of %q is %q, want %q", row.most, row.text, got, row.want)
		}
	}
	if got := Message(strings.Repeat("a", 1001)); len(got) != 1000 {
		t.Errorf("a message has %d bytes", len(got))
	}
}
