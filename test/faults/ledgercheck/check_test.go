package ledgercheck

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// evidence is a run without faults, in which the rows inject faults. a is primary, acknowledges x1 and
// x2, and is killed. b acknowledges x3. The outcomes of x4 and x5 are unknown, and only x4 is in the
// log. x6 was refused.
type evidence struct {
	journals Journals
	client   []record.Op
	reader   []record.Op
}

func line(at int64, pod, what string, epoch uint64) record.Line {
	return record.Line{At: at, What: what, Run: "run-" + pod, Pod: pod, Epoch: epoch}
}

func ack(at int64, pod string, epoch, index, position uint64, request string) record.Line {
	l := line(at, pod, record.Ack, epoch)
	l.Index, l.Position, l.Client, l.Request = index, position, "x", request
	return l
}

func over(at int64, pod, other string) record.Line {
	l := line(at, pod, record.Over, 0)
	l.Other = "run-" + other
	return l
}

func added(epoch, index uint64, request string) record.Entry {
	return record.Entry{Epoch: epoch, Index: index, Client: "x", Request: request, Value: "value " + request}
}

func appended(request string, call, end int64, outcome string, position uint64) record.Op {
	op := record.Op{
		Client: "x", Request: request, Kind: record.Append, Value: "value " + request,
		Call: call, Return: end, Outcome: outcome, Position: position,
	}
	if outcome == record.OK {
		n, _ := strconv.ParseUint(request, 10, 64)
		op.Epoch, op.Index = 1, n+1
		if n == 3 {
			op.Epoch, op.Index = 2, 6
		}
	}
	return op
}

func readOp(request string, call, end int64, saw ...string) record.Op {
	op := record.Op{Client: "y", Request: request, Kind: record.Read, Call: call, Return: end, Outcome: record.OK}
	for _, r := range saw {
		op.Position++
		op.Digest = op.Digest.AddAppend("x", r, "value "+r)
	}
	return op
}

func well() *evidence {
	return &evidence{
		journals: Journals{
			FinalPod: "b",
			Final: []record.Entry{
				{Epoch: 1, Index: 1}, added(1, 2, "1"), added(1, 3, "2"), added(1, 4, "4"), {Epoch: 2, Index: 5}, added(2, 6, "3"),
			},
			Lines: []record.Line{
				line(10, "a", record.Primary, 1), line(11, "a", record.Established, 1),
				ack(20, "a", 1, 2, 1, "1"), ack(30, "a", 1, 3, 2, "2"),
				over(45, "a-supervisor", "a"),
				line(50, "b", record.Primary, 2), line(52, "b", record.Established, 2),
				ack(60, "b", 2, 6, 4, "3"), line(70, "b", record.Ceased, 2),
			},
		},
		client: []record.Op{
			appended("1", 15, 21, record.OK, 1), appended("2", 25, 31, record.OK, 2),
			appended("4", 33, 40, record.Unknown, 0), appended("5", 41, 42, record.Unknown, 0),
			appended("6", 43, 44, record.Refused, 0), appended("3", 45, 61, record.OK, 4),
		},
		reader: []record.Op{readOp("1", 22, 23, "1"), readOp("2", 26, 34, "1", "2"), readOp("3", 55, 59, "1", "2", "4")},
	}
}

func (e *evidence) check() (Report, error) {
	return Check(e.journals, [][]record.Op{e.client, e.reader})
}

func TestAllIsWell(t *testing.T) {
	g := NewWithT(t)
	report, err := well().check()
	g.Expect(err).NotTo(HaveOccurred())
	text := report.String()
	for _, want := range []string{
		"3 appends acknowledged to clients (3 by ledgers), 2 unknown, 1 refused; 3 reads; 6 entries",
		"killed between 20ns and 35ns",
		"failover: a to b, no write for 30ns: 0s until the old primary stopped, 20ns until the next one served, 10ns until a write reached it",
	} {
		g.Expect(text).To(ContainSubstring(want))
	}
	g.Expect(report.Failovers).To(HaveLen(1))
	g.Expect(report.MaxPause).To(BeEquivalentTo(30))
	a, b := report.Reigns[0], report.Reigns[1]
	g.Expect([]any{a.Ceased, a.End, a.Gone}).To(Equal([]any{false, int64(30), int64(45)}))
	g.Expect([]any{b.Ceased, b.End}).To(Equal([]any{true, int64(70)}))
}

// planted are faults with the errors that report them.
var planted = []struct {
	name, want string
	plant      func(*evidence)
}{
	{"an acknowledged append is not in the final log", "lost: request 3 of client x, acknowledged by b as entry 6 of epoch 2",
		func(e *evidence) { e.journals.Final = e.journals.Final[:5] }},
	{"an append is lost and only the journal has it", "lost: request 3",
		func(e *evidence) { e.journals.Final, e.client = e.journals.Final[:5], e.client[:5] }},
	{"an append is lost and only the client has it", "lost: request 3 of client x, acknowledged by no ledger", func(e *evidence) {
		e.journals.Final = e.journals.Final[:5]
		e.journals.Lines = slices.Delete(e.journals.Lines, 7, 8)
	}},
	{"an append is at another place", "moved: request 1",
		func(e *evidence) { e.journals.Final[1], e.journals.Final[2] = added(1, 2, "2"), added(1, 3, "1") }},
	{"a client got an acknowledgement that no ledger sent", "no ledger acknowledged it",
		func(e *evidence) { e.journals.Lines = slices.Delete(e.journals.Lines, 7, 8) }},
	{"an append is in the log twice", "in the final log twice, as entries 2 and 7",
		func(e *evidence) { e.journals.Final = append(e.journals.Final, added(2, 7, "1")) }},
	{"an append is in the log with another value", `entry 2 is "other"`,
		func(e *evidence) { e.journals.Final[1].Value = "other" }},
	{"an append without effect is in the log", "request 6 had no effect, and it is entry 7",
		func(e *evidence) { e.journals.Final = append(e.journals.Final, added(2, 7, "6")) }},
	{"the final log has a gap", "has entry 7 of epoch 2 behind entry 5",
		func(e *evidence) { e.journals.Final[5].Index = 7 }},
	{"the final log belongs to another member", "the final log is of a, and the last primary was b",
		func(e *evidence) { e.journals.FinalPod = "a" }},
	{"two primaries by their journals", "two primaries for 1ns: a (run run-a, epoch 1)",
		func(e *evidence) { e.journals.Lines[5].At = 29 }},
	{"two primaries by their locks", "when b (run run-b) became primary, run run-a held its lock", func(e *evidence) {
		meets := line(50, "b", record.Meets, 0)
		meets.Other = "run-a"
		e.journals.Lines = append(e.journals.Lines, meets)
	}},
	{"an epoch is used twice", "epoch 1 of b came after epoch 1 of a",
		func(e *evidence) { e.journals.Lines[6].Epoch = 1 }},
	{"a former primary acknowledges an append", "b (run run-b) acknowledged entry 6 and was not primary",
		func(e *evidence) { e.journals.Lines = append(e.journals.Lines, ack(71, "b", 2, 6, 4, "3")) }},
	{"a read of old data", "read 3 of client y saw 3 appends, and append 3 of client x had seen 4 before it began",
		func(e *evidence) { e.reader[2] = readOp("3", 62, 63, "1", "2", "4") }},
	{"a read that is older than an earlier read", "no order of all operations",
		func(e *evidence) { e.reader[2] = readOp("3", 62, 63, "1") }},
	{"a read of later entries", "no order of all operations",
		func(e *evidence) { e.reader[0] = readOp("1", 22, 23, "1", "2") }},
	{"a read of lost entries", "read 3 of client y saw 3 appends that are not the first 3 of the final log",
		func(e *evidence) { e.reader[2] = readOp("3", 55, 59, "1", "2", "5") }},
	{"two appends in the opposite order of their calls", "no order of all operations",
		func(e *evidence) { e.client[0].Position, e.client[1].Position = 2, 1 }},
}

func TestFaultsAreFound(t *testing.T) {
	for _, row := range planted {
		t.Run(row.name, func(t *testing.T) {
			e := well()
			row.plant(e)
			report, err := e.check()
			g := NewWithT(t)
			g.Expect(err).To(MatchError(ContainSubstring(row.want)))
			g.Expect(report.String()).To(ContainSubstring("BROKEN: "))
		})
	}
}

func TestNotAFault(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(*evidence)
	}{
		{"a client without a history", func(e *evidence) { e.client = nil }},
		{"an append that is acknowledged again after its epoch", func(e *evidence) {
			e.journals.Lines = slices.Insert(e.journals.Lines, 8, ack(62, "b", 1, 2, 1, "1"))
		}},
		{"a primary without followers used the number of the next one", func(e *evidence) {
			lone := line(46, "c", record.Primary, 2)
			e.journals.Lines = append(e.journals.Lines, lone, over(47, "c-supervisor", "c"))
		}},
		{"a read concurrent with an append", func(e *evidence) { e.reader[2] = readOp("3", 55, 59, "1", "2", "4", "3") }},
		{"a primary joins a newer epoch", func(e *evidence) {
			e.journals.Lines = slices.Insert(e.journals.Lines, 4,
				line(31, "a", record.Primary, 2), line(32, "a", record.Established, 2))
			e.journals.Lines[7].Epoch, e.journals.Lines[8].Epoch = 3, 3
		}},
		{"lines of files in any order", func(e *evidence) {
			lines := e.journals.Lines
			e.journals.Lines = slices.Concat(lines[5:], lines[:5])
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := well()
			row.plant(e)
			report, err := e.check()
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), report.String)
		})
	}
}

func TestReadJournals(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(ReadJournals(dir)).Error().To(HaveOccurred(), "missing journals are no evidence")
	for name, text := range map[string]string{
		"a" + record.JournalSuffix:     `{"at":1,"what":"start"}` + "\n" + `{"at":2,"wh`, // killed while writing
		"b_uid" + record.JournalSuffix: `{"at":3,"what":"start"}` + "\n",
		"b_uid" + record.LockSuffix:    "run",
	} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)).To(Succeed())
	}
	g.Expect(ReadJournals(dir)).To(HaveField("Lines", HaveLen(2)))
}

func TestHistories(t *testing.T) {
	g := NewWithT(t)
	call := record.Op{Client: "x", Request: "1", Kind: record.Append, Call: 5}
	done := call
	done.Outcome, done.Return = record.OK, 9
	g.Expect(record.Merge([]record.Op{call, done})).To(HaveExactElements(done))
	g.Expect(record.Merge([]record.Op{call})).To(HaveExactElements(HaveField("Outcome", record.Unknown)), "a client that was killed")
	for _, lines := range [][]record.Op{{call, done, call}, {done}} {
		g.Expect(record.Merge(lines)).Error().To(HaveOccurred(), "%+v is no history", lines)
	}
}

// TestManyOperations never ends if the search does not use the positions of the appends.
func TestManyOperations(t *testing.T) {
	g := NewWithT(t)
	e := &evidence{}
	e.journals.Lines = append(e.journals.Lines, line(0, "a", record.Primary, 1))
	const span = int64(10 * time.Millisecond)
	for i := range int64(3000) {
		request, at := strconv.FormatInt(i+1, 10), (i+1)*span
		index := uint64(i + 1)
		e.journals.Final = append(e.journals.Final, added(1, index, request))
		op := appended(request, at-8*span, at, record.OK, index)
		op.Epoch, op.Index = 1, index
		e.journals.Lines = append(e.journals.Lines, ack(at, "a", 1, index, index, request))
		if i%3 == 0 {
			op.Outcome, op.Return = record.Unknown, 0
		}
		e.client = append(e.client, op)
	}
	_, err := e.check()
	g.Expect(err).NotTo(HaveOccurred())
	e.client[100].Call = e.client[2000].Call
	e.client[100].Return = e.client[100].Call + span
	_, err = e.check()
	g.Expect(err).To(HaveOccurred(), "an append that takes effect before its call")
}
