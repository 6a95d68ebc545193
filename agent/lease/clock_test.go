package lease

import "testing"

func TestTheClockAdvances(t *testing.T) {
	first := sinceBoot()
	if first <= 0 || first == never {
		t.Fatalf("the time since boot is %s", first)
	}
	for sinceBoot() == first {
	}
	if now := sinceBoot(); now < first {
		t.Errorf("%s is before %s", now, first)
	}
}
