package lease

import (
	"strings"
	"testing"
)

func TestGrant(t *testing.T) {
	const uid = "0a1b"
	for _, row := range []struct{ grant, uid, want string }{
		{uid + " 7", uid, "7"},
		{uid + " 123456789012345678", uid, "123456789012345678"},
		{"", uid, ""},
		{"", "", ""},
		{" 7", "", ""},
		{uid, uid, ""},
		{uid + " ", uid, ""},
		{uid + " 0", uid, ""},
		{uid + " 07", uid, ""},
		{uid + " -7", uid, ""},
		{uid + " 7\n", uid, ""},
		{uid + "  7", uid, ""},
		{uid + " 7 7", uid, ""},
		{uid + " 1234567890123456789", uid, ""},
		{uid + "\n 7", uid + "\n", ""},
		{"ffff 7", uid, ""},
		{uid + " 7", "", ""},
		{strings.Repeat("a", 2000) + " 7", strings.Repeat("a", 2000), ""},
	} {
		f := Folders{Signal: t.TempDir()}
		write(t, f.Signal, grantFile, row.grant)
		write(t, f.Signal, podUIDFile, row.uid)
		if got := f.grant(); got != row.want {
			t.Errorf("grant %q for pod %q: %q, want %q", row.grant, row.uid, got, row.want)
		}
	}
	if got := (Folders{Signal: t.TempDir()}).grant(); got != "" {
		t.Errorf("without files: %q", got)
	}
}
