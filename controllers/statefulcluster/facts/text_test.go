package facts_test

import (
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

func TestTexts(t *testing.T) {
	ten := strings.Split("a b c d e f g h i j", " ")
	for _, r := range []struct{ got, want string }{
		{facts.MemberCount(0), "0 members"},
		{facts.MemberCount(1), "1 member"},
		{facts.MemberCount(2), "2 members"},
		{facts.SomeOf(nil), ""},
		{facts.SomeOf(ten), "a, b, c, d, e, f, g, h, i, j"},
		{facts.SomeOf(append(ten, "k", "l")), "a, b, c, d, e, f, g, h, i, j and 2 more"},
		{facts.AtMost(1, ten), "a and 9 more"},
	} {
		if r.got != r.want {
			t.Errorf("%q, want %q", r.got, r.want)
		}
	}
}
