package simtest

import "testing"

func TestOrders(t *testing.T) {
	for _, row := range []struct {
		text         string
		first, count int
		fails        bool
	}{
		{"", 0, 7, false},
		{"12", 0, 12, false},
		{"30+2", 30, 2, false},
		{"many", 0, 0, true},
		{"3+", 3, 0, true},
	} {
		first, count, err := parseOrders(row.text, 7)
		if (err != nil) != row.fails || (!row.fails && (first != row.first || count != row.count)) {
			t.Errorf("-orders=%q: first %d, count %d, error %v", row.text, first, count, err)
		}
	}
}

func TestStoryFile(t *testing.T) {
	if got, want := storyFile("W12 the pod's image, and (then) its end"), "testdata/stories/W12-the-pod-s-image-and-then-its-end.story"; got != want {
		t.Errorf("the file is %s, want %s", got, want)
	}
}
