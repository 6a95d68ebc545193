package testimony

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const ms = int64(time.Millisecond)

// run returns a run from start to end in ms. End 0 means alive.
func run(id string, start, end int64, met ...string) Run {
	return Run{ID: id, Start: start * ms, End: end * ms, Met: met}
}

func TestOverlaps(t *testing.T) {
	for _, row := range []struct {
		name string
		runs []Run
		want []string
	}{
		{"one run", []Run{run("a", 1, 0)}, nil},
		{"sequential runs", []Run{run("a", 1, 10), run("b", 10, 0)}, nil},
		{"the second run starts before the first has ended", []Run{run("a", 1, 10), run("b", 9, 20)}, []string{"a+b 1ms"}},
		{"two runs that have not ended", []Run{run("a", 1, 0), run("b", 90, 0)}, []string{"a+b 10ms"}},
		{"one run within another", []Run{run("a", 1, 50), run("b", 10, 12)}, []string{"a+b 2ms"}},
		{"a long run overlaps every later one", []Run{run("a", 1, 50), run("b", 10, 12), run("c", 13, 14)}, []string{"a+b 2ms", "a+c 1ms"}},
		{"the lock shows an overlap that the clock does not show", []Run{run("a", 1, 10), run("b", 10, 20, "a")}, []string{"a+b 0s"}},
		{"the lock of a run whose start was recorded later", []Run{run("a", 1, 10, "b"), run("b", 10, 20)}, []string{"a+b 0s"}},
		{"an unknown run that was met is ignored", []Run{run("a", 1, 10), run("b", 10, 20, "x")}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, o := range Overlaps(row.runs, 100*ms) {
				got = append(got, o.First.ID+"+"+o.Second.ID+" "+o.Length.String())
			}
			NewWithT(t).Expect(got).To(Equal(row.want))
		})
	}
}

func TestGaps(t *testing.T) {
	for _, row := range []struct {
		name string
		runs []Run
		want []string
	}{
		{"the first run has no gap", []Run{run("a", 5, 0)}, nil},
		{"the gap is from the end to the next start", []Run{run("a", 1, 10), run("b", 25, 30), run("c", 31, 0)}, []string{"a>b 15ms", "b>c 1ms"}},
		{"the gap is from the end of the last earlier run", []Run{run("a", 1, 20), run("b", 5, 10), run("c", 23, 0)}, []string{"a>b -15ms", "a>c 3ms"}},
		{"no gap while one run never ends", []Run{run("a", 1, 0), run("b", 5, 10)}, []string{"a>b 0s"}},
		{"a negative gap for overlapping runs", []Run{run("a", 1, 20), run("b", 18, 0)}, []string{"a>b -2ms"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, g := range Gaps(row.runs) {
				got = append(got, g.Before.ID+">"+g.After.ID+" "+g.Length.String())
			}
			NewWithT(t).Expect(got).To(Equal(row.want))
		})
	}
}

func TestPercentile(t *testing.T) {
	g := NewWithT(t)
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		g.Expect(Percentile(hundred, share)).To(Equal(want), "%v of 1 to 100", share)
	}
	g.Expect(Percentile(nil, 0.5)).To(BeZero(), "no value returns 0")
	g.Expect(Percentile([]time.Duration{7}, 0.5)).To(BeEquivalentTo(7), "a single value returns itself")
}

func TestRuns(t *testing.T) {
	g := NewWithT(t)
	diary := strings.Join([]string{
		`{"at":20,"what":"START","run":"b","pod":"two","uid":"u2","node":"n","pid":1,"args":["x y",""]}`,
		`{"at":10,"what":"START","run":"a","pod":"one"}`,
		`{"at":21,"what":"MEETS","run":"b","text":"a"}`,
		`{"at":29,"what":"STOP","run":"a"}`,
		`{"at":30,"what":"STOP","run":"nobody"}`,
		`{"at":31,"what":"NOTE","text":"hello"}`,
		`{"at":32,"what":"STA`,
	}, "\n")
	lines, size, err := Read([]byte(diary))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines).To(HaveLen(6))
	g.Expect(diary[size:]).To(Equal(`{"at":32,"what":"STA`))
	g.Expect(Runs(lines, map[string]int64{"a": 30})).To(Equal([]Run{
		{ID: "a", Pod: "one", Start: 10, End: 30, Stopped: true},
		{ID: "b", Pod: "two", UID: "u2", Node: "n", PID: 1, Args: []string{"x y", ""}, Start: 20, Met: []string{"a"}},
	}))
	_, _, err = Read([]byte("no JSON\n"))
	g.Expect(err).To(HaveOccurred(), "an invalid line")
}
