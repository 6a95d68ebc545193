// Package identity generates unique random IDs.
package identity

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// Length is the number of characters of an ID. Ten characters of base32 are 50 bits: with 20,000
// members, the chance that a new ID equals an existing one is below 1 in 10^10. The caller checks for
// that too.
const Length = 10

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Fresh returns n distinct IDs that are not in taken. An ID is lower-case base32 from crypto/rand.
func Fresh(n int, taken func(string) bool) []string {
	ids := make([]string, 0, n)
	seen := make(map[string]bool, n)
	for len(ids) < n {
		var b [7]byte
		_, _ = rand.Read(b[:]) // never fails (crypto/rand, since Go 1.24)
		id := encoding.EncodeToString(b[:])[:Length]
		if !seen[id] && !taken(id) {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// Valid reports whether s has the form of an ID.
func Valid(s string) bool {
	return len(s) == Length && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
