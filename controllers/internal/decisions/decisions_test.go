package decisions

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, time.November, 25, 12, 0, 0, 0, time.UTC)

// after returns a decision that was made some seconds after noon.
func after(seconds int, reason, message string) Decision {
	return Decision{Time: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)), Reason: reason, Message: message}
}

// times returns the decision with a count.
func times(n int32, d Decision) Decision {
	d.Count = n
	return d
}

// many returns n different decisions.
func many(n int) (all []Decision) {
	for i := range n {
		all = append(all, after(i, "Promoted", fmt.Sprint(i)))
	}
	return all
}

func TestAppend(t *testing.T) {
	long := strings.Repeat("ä", 100)
	for _, row := range []struct {
		name             string
		list, news, want []Decision
	}{
		{"nothing", nil, nil, nil},
		{"the first", nil, []Decision{after(1, "Promoted", "a")}, []Decision{after(1, "Promoted", "a")}},
		{"the newest is last", many(2), []Decision{after(9, "Demoted", "a")}, append(many(2), after(9, "Demoted", "a"))},
		{"a repeated one moves to the end", []Decision{after(1, "A", "a"), after(2, "B", "b")}, []Decision{after(3, "A", "a")},
			[]Decision{after(2, "B", "b"), times(2, after(3, "A", "a"))}},
		{"counts are added", []Decision{times(3, after(1, "A", "a"))}, []Decision{times(4, after(2, "A", "a"))}, []Decision{times(7, after(2, "A", "a"))}},
		{"another message is another decision", []Decision{after(1, "A", "a")}, []Decision{after(2, "A", "b")}, []Decision{after(1, "A", "a"), after(2, "A", "b")}},
		{"the oldest are dropped", many(20), []Decision{after(30, "A", "a")}, append(many(20)[1:], after(30, "A", "a"))},
		{"a repeated one drops no other", many(20), []Decision{after(30, "Promoted", "5")}, append(slices.Delete(many(20), 5, 6), times(2, after(30, "Promoted", "5")))},
		{"texts are cut", nil, []Decision{after(1, long, long)}, []Decision{after(1, long[:64], long[:128])}},
		{"cut texts are merged", nil, []Decision{after(1, long, long), after(2, long, long+"b")}, []Decision{times(2, after(2, long[:64], long[:128]))}},
		{"fractions of a second are dropped", nil, []Decision{{Time: metav1.NewTime(noon.Add(900 * time.Millisecond)), Reason: "A"}}, []Decision{after(0, "A", "")}},
		{"a stored entry without a time", []Decision{{Reason: "A"}}, []Decision{after(1, "B", "")}, []Decision{after(1, "B", "")}},
		{"a stored time in the year 10000 of UTC", []Decision{{Reason: "A", Time: metav1.NewTime(time.Date(9999, time.December, 31, 23, 59, 59, 0, time.FixedZone("", -3600)))}},
			[]Decision{after(1, "B", "")}, []Decision{after(1, "B", "")}},
		{"a stored time before the year 1 of UTC", []Decision{{Reason: "A", Time: metav1.NewTime(time.Date(1, time.January, 1, 0, 0, 0, 0, time.FixedZone("", 3600)))}},
			[]Decision{after(1, "B", "")}, []Decision{after(1, "B", "")}},
		{"a stored entry without a reason", []Decision{after(1, "", "a")}, []Decision{after(1, "B", "")}, []Decision{after(1, "B", "")}},
		{"stored counts out of range", []Decision{times(math.MinInt32, after(1, "A", "a")), times(math.MaxInt32, after(1, "B", "b"))},
			[]Decision{after(2, "A", "a"), after(3, "B", "b")}, []Decision{times(2, after(2, "A", "a")), times(math.MaxInt32, after(3, "B", "b"))}},
		{"a stored list that is too long", many(1000), nil, many(1000)[980:]},
	} {
		if got := Append(row.list, row.news...); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestSizeOfTheList(t *testing.T) {
	var list []Decision
	for i := range 50 {
		list = Append(list, after(i, strings.Repeat("R", 64), fmt.Sprintf("%02d%s", i, strings.Repeat("<", 200))))
	}
	text, err := json.Marshal(list)
	if err != nil || len(text) > 4096 {
		t.Errorf("the list has %d bytes of JSON, %v", len(text), err)
	}
	if n := len(list); n < 3 || !strings.HasPrefix(list[n-1].Message, "49") {
		t.Errorf("a list of %d entries ends with %v", n, list[n-1])
	}
}

// FuzzAppend tests that the list is within its limits, and ends with the newest decision, whatever others
// wrote to the status.
func FuzzAppend(f *testing.F) {
	f.Add([]byte(`[]`), "Promoted", "rss-db-0 is primary")
	f.Add([]byte(`[{"time":"2026-11-25T12:00:00Z","reason":"Promoted","count":-1},{"time":null,"reason":""}]`), "Promoted", "")
	f.Add([]byte(`[{"time":"0001-01-01T00:00:00Z","reason":"\u0000<>&"}]`), "\xff<", strings.Repeat("\x01", 500))
	f.Fuzz(func(t *testing.T, stored []byte, reason, message string) {
		var list []Decision
		if json.Unmarshal(stored, &list) != nil {
			return
		}
		newest := after(0, reason, message)
		got := Append(append(list, list...), newest)
		text, err := json.Marshal(got)
		if err != nil || len(got) > 20 || len(text) > 4096 {
			t.Fatalf("%d entries, %d bytes, %v", len(got), len(text), err)
		}
		for _, d := range got {
			if d.Time.IsZero() || d.Reason == "" || len(d.Reason) > 64 || len(d.Message) > 128 || d.Count < 0 || d.Count == 1 || !utf8.ValidString(d.Reason+d.Message) {
				t.Errorf("an invalid entry: %+v", d)
			}
		}
		if add(nil, newest) == nil {
			return // its reason is empty
		}
		if last := got[len(got)-1]; last.Reason != add(nil, newest)[0].Reason || last.Message != add(nil, newest)[0].Message || !last.Time.Equal(&newest.Time) {
			t.Errorf("the list ends with %+v, not with %+v", last, newest)
		}
		if again := Append(got); !slices.Equal(again, got) {
			t.Errorf("%v became %v", got, again)
		}
	})
}
