// Package ledgercheck checks a run of ledgers by their journals and their clients' histories: whether
// an acknowledged append is lost, whether there were two primaries at the same time, and whether
// clients saw one log. It does not use the status of objects in the cluster.
package ledgercheck

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// Journals are the ledgers' journals and the final log.
type Journals struct {
	// Lines are the lines of all pods.
	Lines []record.Line
	// FinalPod and Final are the last primary's copy, read at the end by `ledger log` or from its disk.
	FinalPod string
	Final    []record.Entry
}

// ReadJournals reads all journals in a folder. The caller adds the final log.
func ReadJournals(dir string) (Journals, error) {
	var j Journals
	files, err := filepath.Glob(filepath.Join(dir, "*"+record.JournalSuffix))
	if err != nil {
		return j, err
	}
	if len(files) == 0 {
		return j, fmt.Errorf("no journals in %s", dir)
	}
	for _, path := range files {
		lines, err := record.ReadLines[record.Line](path)
		if err != nil {
			return j, err
		}
		j.Lines = append(j.Lines, lines...)
	}
	return j, nil
}

// ReadReigns returns the primaries so far, in the order of their starts.
func ReadReigns(dir string) ([]Reign, error) {
	j, err := ReadJournals(dir)
	return reigns(sorted(j.Lines)), err
}

// Reign is the time during which a run was primary, possibly in several epochs.
type Reign struct {
	Run, Pod, UID string
	Epoch         uint64 // the last one
	// Start is recorded before it serves.
	Start int64
	// End is recorded when it ceased, after it served. For a killed run it is the time of the last
	// line, so the earliest possible end.
	End int64
	// Gone is the time when another run noticed that a killed run has ended, so the latest possible
	// end. It is 0 if the run ceased or no other run checked.
	Gone   int64
	Ceased bool
}

func (r Reign) String() string {
	end := "still"
	switch {
	case r.Ceased:
		end = "until it stopped after " + time.Duration(r.End-r.Start).String()
	case r.Gone > 0:
		end = fmt.Sprintf("killed between %s and %s after", time.Duration(r.End-r.Start), time.Duration(r.Gone-r.Start))
	}
	return fmt.Sprintf("%s (run %s, epoch %d), %s", r.Pod, r.Run, r.Epoch, end)
}

// sorted returns the lines in the order of their times. Lines of one run keep their order.
func sorted(lines []record.Line) []record.Line {
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b record.Line) int { return cmp.Compare(a.At, b.At) })
	return lines
}

// reigns returns the reigns in sorted lines, in the order of their starts.
func reigns(lines []record.Line) []Reign {
	var found []Reign
	open := map[string]int{} // by run
	for _, l := range lines {
		i, leads := open[l.Run]
		switch {
		case l.What == record.Primary && !leads:
			open[l.Run] = len(found)
			found = append(found, Reign{Run: l.Run, Pod: l.Pod, UID: l.UID, Epoch: l.Epoch, Start: l.At, End: l.At})
		case leads:
			found[i].End = l.At
			if l.What == record.Primary {
				found[i].Epoch = l.Epoch
			}
			if l.What == record.Ceased {
				found[i].Ceased = true
				delete(open, l.Run)
			}
		}
		if i, leads := open[l.Other]; leads && l.What == record.Over && found[i].Gone == 0 {
			found[i].Gone = l.At
		}
	}
	return found
}
