package facts

import (
	"fmt"
	"strings"
)

// MemberCount returns a number of members as text for users.
func MemberCount(n int32) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// SomeOf returns up to 10 names as text.
func SomeOf(names []string) string { return AtMost(10, names) }

// AtMost returns the first n names as text, and the number of the others.
func AtMost(n int, names []string) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
