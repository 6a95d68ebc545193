package ledgercheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// Report is the result of a check: statistics of a run, and its faults.
type Report struct {
	// Appends is the number of appends that were acknowledged to clients. Unknown, Refused and Reads
	// count the other operations.
	Appends, Unknown, Refused, Reads int
	// Acked is the number of different appends that ledgers acknowledged. Entries is the number in the
	// final log.
	Acked, Entries int
	Reigns         []Reign
	Failovers      []Failover
	// MaxPause is the max time between two acknowledgments.
	MaxPause time.Duration
	// Faults describe violated guarantees.
	Faults []string
}

// Failover is a change of primary.
type Failover struct {
	From, To Reign
	// Pause is the time from the last acknowledgment before the change to the first one after it. It is
	// 0 if either is missing.
	Pause time.Duration
	// Leaving, Vacant and Finding are parts of Pause: until the old primary has ceased, until the next
	// one serves, and until it receives the first write.
	Leaving, Vacant, Finding time.Duration
}

// Check checks a run. The error lists the faults, or is the reason why the check is impossible. In the
// first case the report is complete.
func Check(journals Journals, histories [][]record.Op) (Report, error) {
	lines := sorted(journals.Lines)
	c := checker{
		lines: lines, final: journals.Final, histories: histories,
		at: map[record.Key]placed{}, acked: map[record.Key]bool{},
	}
	c.report.Reigns = reigns(lines)
	c.report.Entries = len(journals.Final)
	c.readFinal()
	c.checkFinalPod(journals.FinalPod)
	c.checkReigns()
	c.checkEpochs()
	c.checkAcks()
	c.checkClients()
	c.measure()
	if err := c.checkOrder(); err != nil {
		return c.report, err
	}
	if n := len(c.report.Faults); n > 0 {
		return c.report, fmt.Errorf("%d violated promises:\n%s", n, strings.Join(c.report.Faults, "\n"))
	}
	return c.report, nil
}

type checker struct {
	lines     []record.Line
	final     []record.Entry
	histories [][]record.Op
	report    Report
	at        map[record.Key]placed // appends in the final log
	acked     map[record.Key]bool
}

// placed is an append in the final log.
type placed struct {
	record.Entry
	position uint64
	sum      record.Digest // of the appends up to it
}

func (c *checker) fault(format string, args ...any) {
	c.report.Faults = append(c.report.Faults, fmt.Sprintf(format, args...))
}

// readFinal checks the final log alone.
func (c *checker) readFinal() {
	var last placed
	for _, e := range c.final {
		if e.Index != last.Index+1 || e.Epoch < last.Epoch {
			c.fault("the final log has entry %d of epoch %d behind entry %d of epoch %d", e.Index, e.Epoch, last.Index, last.Epoch)
		}
		last.Entry = e
		if !e.IsAppend() {
			continue
		}
		last.position++
		last.sum = last.sum.AddAppend(e.Client, e.Request, e.Value)
		key := record.Key{Client: e.Client, Request: e.Request}
		if first, twice := c.at[key]; twice {
			c.fault("request %s of client %s is in the final log twice, as entries %d and %d", e.Request, e.Client, first.Index, e.Index)
			continue
		}
		c.at[key] = last
	}
}

func (c *checker) checkFinalPod(pod string) {
	if all := c.report.Reigns; pod != "" && len(all) > 0 && all[len(all)-1].Pod != pod {
		c.fault("the final log is of %s, and the last primary was %s", pod, all[len(all)-1].Pod)
	}
}

// checkReigns looks for two primaries at the same time: by their locks, which need no clock, and by
// their journals.
func (c *checker) checkReigns() {
	for _, l := range c.lines {
		if l.What == record.Meets {
			c.fault("two primaries: when %s (run %s) became primary, run %s held its lock", l.Pod, l.Run, l.Other)
		}
	}
	all := c.report.Reigns
	for i, second := range all {
		for _, first := range all[:i] {
			if both := min(first.End, second.End) - second.Start; first.End > second.Start {
				c.fault("two primaries for %s: %v, and %v", time.Duration(both), first, second)
			}
		}
	}
}

// checkEpochs checks only epochs that enough followers joined. The number of another epoch may be used
// again by the next primary.
func (c *checker) checkEpochs() {
	var last record.Line
	for _, l := range c.lines {
		if l.What != record.Established {
			continue
		}
		if l.Epoch <= last.Epoch {
			c.fault("epoch %d of %s came after epoch %d of %s", l.Epoch, l.Pod, last.Epoch, last.Pod)
		}
		last = l
	}
}

// checkAcks expects each acknowledged append in the final log.
func (c *checker) checkAcks() {
	leads := map[string]bool{}
	for _, l := range c.lines {
		switch l.What {
		case record.Primary:
			leads[l.Run] = true
		case record.Ceased:
			leads[l.Run] = false
		case record.Ack:
			if !leads[l.Run] {
				c.fault("%s (run %s) acknowledged entry %d and was not primary", l.Pod, l.Run, l.Index)
			}
			key := record.Key{Client: l.Client, Request: l.Request}
			if !c.acked[key] {
				c.checkKept(key, l.Epoch, l.Index, l.Pod)
			}
			c.acked[key] = true
		}
	}
	c.report.Acked = len(c.acked)
}

func (c *checker) checkKept(key record.Key, epoch, index uint64, by string) {
	kept, is := c.at[key]
	switch {
	case !is:
		c.fault("lost: request %s of client %s, acknowledged by %s as entry %d of epoch %d", key.Request, key.Client, by, index, epoch)
	case kept.Epoch != epoch || kept.Index != index:
		c.fault("moved: request %s of client %s, acknowledged by %s as entry %d of epoch %d, is entry %d of epoch %d",
			key.Request, key.Client, by, index, epoch, kept.Index, kept.Epoch)
	}
}

// checkClients checks the responses to clients, independently of the journals.
func (c *checker) checkClients() {
	for _, op := range c.operations() {
		switch {
		case op.Kind == record.Read:
			c.report.Reads++
		case op.Outcome == record.OK:
			c.report.Appends++
			if !c.acked[op.Key()] {
				c.fault("client %s recorded that request %s is entry %d, and no ledger acknowledged it", op.Client, op.Request, op.Index)
				c.checkKept(op.Key(), op.Epoch, op.Index, "no ledger")
			}
		case op.Outcome == record.Unknown:
			c.report.Unknown++
		default:
			c.report.Refused++
			if kept, is := c.at[op.Key()]; is {
				c.fault("client %s recorded that request %s had no effect, and it is entry %d", op.Client, op.Request, kept.Index)
			}
		}
		if kept, is := c.at[op.Key()]; is && op.Kind == record.Append && kept.Value != op.Value {
			c.fault("client %s appended %q with request %s, and entry %d is %q", op.Client, op.Value, op.Request, kept.Index, kept.Value)
		}
	}
}

func (c *checker) operations() []record.Op { return slices.Concat(c.histories...) }

// measure computes the pauses.
func (c *checker) measure() {
	var acks []int64
	for _, l := range c.lines {
		if l.What == record.Ack {
			acks = append(acks, l.At)
		}
	}
	for i := 1; i < len(acks); i++ {
		c.report.MaxPause = max(c.report.MaxPause, time.Duration(acks[i]-acks[i-1]))
	}
	for i := 1; i < len(c.report.Reigns); i++ {
		f := Failover{From: c.report.Reigns[i-1], To: c.report.Reigns[i]}
		if first, _ := slices.BinarySearch(acks, f.To.Start); 0 < first && first < len(acks) {
			f.Pause = time.Duration(acks[first] - acks[first-1])
			f.Leaving = time.Duration(f.From.End - acks[first-1])
			f.Vacant = time.Duration(f.To.Start - f.From.End)
			f.Finding = time.Duration(acks[first] - f.To.Start)
		}
		c.report.Failovers = append(c.report.Failovers, f)
	}
}

// String returns a readable report.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d appends acknowledged to clients (%d by ledgers), %d unknown, %d refused; %d reads; %d entries in the final log\n",
		r.Appends, r.Acked, r.Unknown, r.Refused, r.Reads, r.Entries)
	fmt.Fprintf(&b, "longest pause between two acknowledgements: %s\n", r.MaxPause)
	for _, reign := range r.Reigns {
		fmt.Fprintf(&b, "primary: %v\n", reign)
	}
	for _, f := range r.Failovers {
		fmt.Fprintf(&b, "failover: %s to %s, no write for %s: %s until the old primary stopped, %s until the next one served, %s until a write reached it\n",
			f.From.Pod, f.To.Pod, f.Pause, f.Leaving, f.Vacant, f.Finding)
	}
	for _, fault := range r.Faults {
		fmt.Fprintf(&b, "BROKEN: %s\n", fault)
	}
	return b.String()
}
