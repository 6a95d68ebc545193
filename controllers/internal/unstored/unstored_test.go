package unstored

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type item struct {
	Name  string          `json:"name"`
	Epoch int64           `json:"epoch"` // always present in JSON
	New   string          `json:"new,omitempty"`
	For   metav1.Duration `json:"for"`
}

type status struct {
	Epoch  int64            `json:"epoch"`
	Phase  string           `json:"phase,omitempty"`
	Since  metav1.MicroTime `json:"since,omitempty"`
	Items  []item           `json:"items,omitempty"`
	Nested *item            `json:"nested,omitempty"`
	Counts map[string]int64 `json:"counts,omitempty"`
}

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func full() *status {
	return &status{Epoch: 1<<53 + 1, Phase: "Running", Since: metav1.NewMicroTime(now), Counts: map[string]int64{"a": 1},
		Items: []item{{Name: "a", Epoch: 1, New: "x", For: metav1.Duration{Duration: time.Second}}, {Name: "b"}}, Nested: &item{Name: "c", Epoch: 2}}
}

func TestFieldsThatAreNotStored(t *testing.T) {
	for _, row := range []struct {
		name  string
		prune func(*status)
		want  []string
		// edit is a later change of a field that is not stored.
		edit func(*status)
	}{
		{"all fields are stored", func(*status) {}, nil, func(*status) {}},
		{"an optional field", func(s *status) { s.Phase = "" }, []string{"phase"}, func(s *status) { s.Phase = "Stopped" }},
		{"a number that JSON always has", func(s *status) { s.Epoch = 0 }, []string{"epoch"}, func(s *status) { s.Epoch++ }},
		{"a time", func(s *status) { s.Since = metav1.MicroTime{} }, []string{"since"}, func(s *status) { s.Since = metav1.NewMicroTime(now.Add(time.Hour)) }},
		{"a list", func(s *status) { s.Items = nil }, []string{"items"}, func(s *status) { s.Items = s.Items[:1] }},
		{"an object", func(s *status) { s.Nested = nil }, []string{"nested"}, func(s *status) { s.Nested.Name = "d" }},
		{"fields of items", func(s *status) { s.Items[0].New, s.Items[0].For.Duration, s.Items[0].Epoch = "", 0, 0 },
			[]string{"items[].epoch", "items[].for", "items[].new"}, func(s *status) { s.Items[1].New, s.Items[1].Epoch = "y", 7 }},
		{"all fields of an object", func(s *status) { *s.Nested = item{} }, []string{"nested.epoch", "nested.name"}, func(s *status) { s.Nested.Epoch = 9 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			stored := full()
			row.prune(stored)
			if got := Missing(full(), stored); !slices.Equal(got, row.want) {
				t.Errorf("missing are %q, want %q", got, row.want)
			}
			if err := Verify(full(), stored); (err != nil) != (row.want != nil) {
				t.Errorf("Verify returns %v", err)
			}
			var m Memory
			if same := m.Same(stored, full(), now); same != (row.want == nil) {
				t.Errorf("before a write, the status is stored: %v", same)
			}
			m.Learn(full(), stored, now)
			wanted := full()
			row.edit(wanted)
			if !m.Same(stored, wanted, now.Add(RetryAfter-1)) {
				t.Error("the status is written again")
			}
			if row.want == nil {
				return
			}
			if m.Same(stored, wanted, now.Add(RetryAfter)) {
				t.Error("the field is never written again")
			}
			wanted.Items = append(wanted.Items, item{Name: "new"})
			if wanted.Phase, wanted.Counts["a"] = "Failed", 2; m.Same(stored, wanted, now) {
				t.Error("a change of other fields is not written")
			}
			m.Learn(wanted, wanted, now) // the CRD was updated
			wanted = full()
			if row.edit(wanted); m.Same(full(), wanted, now) {
				t.Error("after an update of the CRD, a change of the field is not written")
			}
		})
	}
}

// TestAFieldThatIsStoredMeanwhile tests that a value that is stored counts, although the field was not stored before.
func TestAFieldThatIsStoredMeanwhile(t *testing.T) {
	var m Memory
	stored := full()
	stored.Phase = ""
	m.Learn(full(), stored, now)
	stored.Phase = "Stopped" // by another process, after an update of the CRD
	if m.Same(stored, full(), now) {
		t.Error("another value of the field is not corrected")
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	var m Memory
	stored := full()
	stored.Phase = ""
	m.Learn(full(), stored, now)
	stored.Epoch-- // the same as a float64
	if m.Same(stored, full(), now) {
		t.Error("two large numbers are confused")
	}
}

// TestAnEmptyValueProvesNothing tests that a field stays known if an object is written in which it is empty.
func TestAnEmptyValueProvesNothing(t *testing.T) {
	var m Memory
	stored, empty := full(), full()
	stored.Epoch, empty.Epoch = 0, 0
	m.Learn(full(), stored, now)
	m.Learn(empty, empty, now)
	if !m.Same(stored, full(), now) {
		t.Error("the field is written again")
	}
}
