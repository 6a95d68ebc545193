package identity

import "testing"

func TestFresh(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range Fresh(5000, func(string) bool { return false }) {
		if seen[id] || !Valid(id) {
			t.Fatalf("SC-35 %q is a duplicate or not a valid ID", id)
		}
		seen[id] = true
	}
	if len(seen) != 5000 {
		t.Errorf("%d IDs, want 5000", len(seen))
	}
	if ids := Fresh(0, nil); len(ids) != 0 {
		t.Errorf("generated although not requested: %q", ids)
	}
}

func TestATakenIDIsNotGiven(t *testing.T) {
	asked := ""
	ids := Fresh(1, func(id string) bool {
		if asked == "" {
			asked = id
			return true
		}
		return false
	})
	if ids[0] == asked {
		t.Errorf("%q is already in use", asked)
	}
}

func TestValid(t *testing.T) {
	for id, want := range map[string]bool{
		"abcdefghij": true, "234567abcd": true,
		"": false, "abcdefghi": false, "abcdefghijk": false, "abcdefghi1": false, "Abcdefghij": false, "abcde-ghij": false,
	} {
		if Valid(id) != want {
			t.Errorf("Valid(%q) is %t", id, !want)
		}
	}
}
