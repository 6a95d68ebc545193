package ledgercheck

import (
	"errors"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// searchFor is the timeout of the search for an order. The search is fast if the final log has the
// position of every append, as it does here.
const searchFor = 2 * time.Minute

// seen is the state of the log as seen by clients: the number of appends and their digest.
type seen struct {
	count  uint64
	digest record.Digest
}

// oneLog is the sequential model of the log. An append returns its position, and a read returns all
// appends before it.
var oneLog = porcupine.Model{
	Init: func() any { return seen{} },
	Step: func(state, input, output any) (bool, any) {
		log, op, got := state.(seen), input.(record.Op), output.(seen)
		if op.Kind == record.Read {
			return got == log, log
		}
		log.count++
		log.digest = log.digest.AddAppend(op.Client, op.Request, op.Value)
		return got.count == log.count, log
	},
}

// checkOrder checks linearizability: there must be an order of all operations in which each takes
// effect atomically between its call and its return.
//
// An append with an unknown outcome, or of a client without a history, has its position in the final
// log and no return. If it is not in the final log, it had no effect, and a read that saw it is a
// fault.
func (c *checker) checkOrder() error {
	var history []porcupine.Operation
	known := map[record.Key]bool{}
	for i, ops := range c.histories {
		for _, op := range ops {
			known[op.Key()] = true
			call := porcupine.Operation{
				ClientId: i, Input: op, Call: op.Call, Return: op.Return,
				Output: seen{count: op.Position, digest: op.Digest},
			}
			switch {
			case op.Outcome == record.OK:
				history = append(history, call)
			case op.Outcome == record.Unknown && op.Kind == record.Append:
				if kept, is := c.at[op.Key()]; is {
					call.Output, call.Return = seen{count: kept.position}, math.MaxInt64
					history = append(history, call)
				}
			}
		}
	}
	for key, kept := range c.at {
		if !known[key] {
			history = append(history, porcupine.Operation{
				Input: record.Op{Client: kept.Client, Request: kept.Request, Kind: record.Append, Value: kept.Value},
				Call:  math.MinInt64, Output: seen{count: kept.position}, Return: math.MaxInt64,
			})
		}
	}
	switch porcupine.CheckOperationsTimeout(oneLog, history, searchFor) {
	case porcupine.Unknown:
		return errors.New("the search for an order of all operations timed out")
	case porcupine.Illegal:
		c.fault("no order of all operations explains the results of the clients")
		c.explain()
	}
	return nil
}

// explain reports reads that contradict the final log or an append that was acknowledged before they
// started. It reports only a few.
func (c *checker) explain() {
	few := len(c.report.Faults) + 5
	digests := map[uint64]record.Digest{0: 0}
	for _, kept := range c.at {
		digests[kept.position] = kept.sum
	}
	ops := c.operations()
	for _, read := range ops {
		if len(c.report.Faults) > few {
			return
		}
		if read.Kind != record.Read || read.Outcome != record.OK {
			continue
		}
		if digest, is := digests[read.Position]; !is || digest != read.Digest {
			c.fault("read %s of client %s saw %d appends that are not the first %[3]d of the final log", read.Request, read.Client, read.Position)
		}
		for _, before := range ops {
			if before.Outcome == record.OK && before.Return < read.Call && before.Position > read.Position {
				c.fault("read %s of client %s saw %d appends, and %s %s of client %s had seen %d before it began",
					read.Request, read.Client, read.Position, before.Kind, before.Request, before.Client, before.Position)
				break
			}
		}
	}
}
