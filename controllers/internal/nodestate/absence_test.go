package nodestate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// counter counts the reads of an API server.
type counter struct {
	client.Reader
	reads int
}

func (c *counter) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, obj, options...)
}

func nameOf(i int) string { return fmt.Sprintf("missing-%d", i) }

func TestMissingNodesAreNotReadInEachPass(t *testing.T) {
	var r Reader
	live := &counter{Reader: only()}
	for pass := range 25 {
		for i := range 40 {
			got, err := r.Read(context.Background(), only(), live, nameOf(i), noon.Add(time.Duration(pass)*100*time.Millisecond))
			if want := (Facts{Missing: true, MissingSince: noon}); err != nil || got != want {
				t.Fatalf("pass %d: %+v, %v", pass, got, err)
			}
		}
	}
	if live.reads != 40 {
		t.Errorf("25 passes of 2.5 s read 40 missing Nodes %d times", live.reads)
	}
}

// TestAbsenceThatDecidesIsReadLive has a Node that is missing from noon on, and exists again in the
// API server alone.
func TestAbsenceThatDecidesIsReadLive(t *testing.T) {
	type read = func(r *Reader, ctx context.Context, cache, live client.Reader, name string, now time.Time) (Facts, error)
	for _, row := range []struct {
		says       string
		read       read
		last, then time.Duration
		missing    bool
	}{
		{"a recent absence without consequences", (*Reader).Read, 0, recent - 1, true},
		{"the response is too old", (*Reader).Read, 0, recent, false},
		{"the absence has consequences", (*Reader).Read, Undecided - 1, Undecided, false},
		{"the absence has had consequences for a long time", (*Reader).Read, machineMemory, machineMemory + 1, false},
		{"the absence has no consequences for this pod", (*Reader).Glance, machineMemory, machineMemory + 1, true},
		{"the response is too old for an absence without consequences", (*Reader).Glance, machineMemory, machineMemory + recent, false},
		{"the clock was set back", (*Reader).Glance, machineMemory, machineMemory - 1, false},
	} {
		var r Reader
		for _, at := range []time.Duration{0, row.last} {
			if got, err := r.Read(context.Background(), only(), only(), "n1", noon.Add(at)); err != nil || !got.MissingSince.Equal(noon) {
				t.Fatalf("%s: %+v, %v", row.says, got, err)
			}
		}
		got, err := row.read(&r, context.Background(), only(), only(node(nil)), "n1", noon.Add(row.then))
		if err != nil || got.Missing != row.missing {
			t.Errorf("%s: %+v, %v", row.says, got, err)
		}
		if row.missing && !got.MissingSince.Equal(noon) {
			t.Errorf("%s: missing since %s", row.says, got.MissingSince)
		}
	}
}

func TestNodeThatIsBackIsSeenInTheCacheAtOnce(t *testing.T) {
	var r Reader
	for _, at := range []struct {
		says  string
		cache client.Reader
		want  Facts
	}{
		{"missing", only(), Facts{Missing: true, MissingSince: noon}},
		{"back", only(node(nil)), Facts{Ready: true}},
		{"the node is missing again", only(), Facts{Missing: true, MissingSince: noon}},
	} {
		if got, err := r.Read(context.Background(), at.cache, only(), "n1", noon); err != nil || got != at.want {
			t.Errorf("%s: %+v, %v", at.says, got, err)
		}
	}
	live := &counter{Reader: only(node(nil))}
	r.Present(node(nil), noon)
	if got, err := r.Read(context.Background(), only(), live, "n1", noon); err != nil || got.Missing || live.reads != 1 {
		t.Errorf("an absence was used after the Node returned: %+v, %v", got, err)
	}
}

// An absence that a cache reported is no answer of the API server.
func TestAbsenceInACacheIsReadLive(t *testing.T) {
	var r Reader
	r.Absent("n1", noon)
	if got, err := r.Read(context.Background(), only(), only(node(nil)), "n1", noon.Add(time.Second)); err != nil || got.Missing {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAbsencesAreForgotten(t *testing.T) {
	for _, row := range []struct {
		says  string
		count int
		after time.Duration
		want  int
	}{
		{"entries expire after an hour", 100, time.Hour, 1},
		{"entries are kept for less than an hour", 100, time.Hour - 1, 101},
		{"many entries expire after minutes", 20_000, crowdedMemory, 1},
		{"many entries are kept for some minutes", 20_000, crowdedMemory - 1, 20_001},
	} {
		var r Reader
		r.Absent("kept", noon)
		for i := range row.count {
			r.Absent(nameOf(i), noon)
		}
		r.Absent("kept", noon.Add(time.Second)) // before the next sweep
		if got := r.Absent("kept", noon.Add(row.after)); !got.Equal(noon) {
			t.Errorf("%s: a Node that was read is missing since %s", row.says, got)
		}
		if got := len(r.missing); got != row.want {
			t.Errorf("%s: %d names are stored, want %d", row.says, got, row.want)
		}
	}
}

func TestForgottenAbsenceBeginsAnew(t *testing.T) {
	var r Reader
	r.Absent("n1", noon)
	later := noon.Add(time.Hour)
	if got := r.Absent("n1", later); !got.Equal(later) {
		t.Errorf("missing since %s", got)
	}
}

// No Node has to be missing for the memory to be freed.
func TestAbsencesAreForgottenWhileNodesExist(t *testing.T) {
	var r Reader
	for i := range 100 {
		r.Absent(nameOf(i), noon)
	}
	r.Present(node(nil), noon.Add(time.Hour))
	if len(r.missing) > 0 {
		t.Errorf("%d names are stored", len(r.missing))
	}
}
