package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// Roles of a server.
const (
	none      = "none" // started, no command received yet
	secondary = "secondary"
	primary   = "primary"
)

// node is a member's server: its copy and its role.
type node struct {
	settings
	journal *journal

	commands sync.Mutex // one command at a time
	stop     func()     // ends the following and waits for its end; only used by commands

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	log     *ledgerLog
	joined  promise
	role    string

	// Of a primary:
	leaving  bool              // rejects new entries
	term     uint64            // incremented whenever it becomes or ceases to be primary
	progress map[string]uint64 // last index of each follower's copy
	begun    uint64            // index of the epoch's first entry; 0 before enough followers joined
	commit   uint64            // index up to which enough copies have the log
}

func openNode(s settings, run string) *node {
	n := &node{
		settings: s, journal: must(openJournal(s, run)), stop: func() {},
		log: must(openLog(s.dir)), joined: must(readPromise(s.dir)), role: none,
	}
	n.changed = sync.NewCond(&n.mu)
	n.journal.say(record.Line{What: record.Serve, Epoch: n.log.last().Epoch, Index: n.log.last().Index})
	return n
}

// await returns when the condition is true. mu is held, except while it waits.
func (n *node) await(ctx context.Context, holds func() bool) error {
	defer context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.changed.Broadcast()
	})()
	for !holds() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n.changed.Wait()
	}
	return nil
}

// promise joins an epoch and stores it on the disk. mu is held.
func (n *node) promise(p promise) {
	need(p.keep(n.dir))
	n.joined = p
}

// obey runs a command and returns when it is completed.
func (n *node) obey(ctx context.Context, command string, peers []string, crash bool) error {
	n.commands.Lock()
	defer n.commands.Unlock()
	others := n.others(peers)
	switch command {
	case "seed", "promote":
		n.lead(crash)
	case "primary":
		if len(others) > 0 {
			return n.join(ctx, others, crash)
		}
		n.lead(crash)
	case "secondary":
		return n.join(ctx, others, crash)
	case "demote":
		n.handOff(ctx)
		n.startFollowing(others, nil)
		crashIf(crash)
	case "leave":
		n.stop()
		crashIf(crash)
	case "stop":
		crashIf(crash)
		return n.end()
	default:
		return fmt.Errorf("no such command: %s", command)
	}
	return nil
}

// handOff rejects new entries, and waits with a timeout until one follower has all entries, because a
// demoted member is not followed. A primary that acknowledges entries before followers have them must
// do this before another member is promoted.
func (n *node) handOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.handOffFor)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.role != primary || len(n.progress) == 0 {
		return
	}
	n.leaving = true
	n.changed.Broadcast()
	_ = n.await(ctx, n.hasHeir) // after a timeout its own copy is the newest, and its sequence shows it
}

// hasHeir reports whether a follower has all entries. mu is held.
func (n *node) hasHeir() bool {
	for _, have := range n.progress {
		if have >= n.log.last().Index {
			return true
		}
	}
	return false
}

// crashIf kills the server during a command, for a knob.
func crashIf(crash bool) {
	if crash {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
}

// lead makes the node primary in a new epoch. The epoch has no entries before enough followers have
// joined it. So a primary without followers leaves nothing that would make its copy look newer than it
// is.
func (n *node) lead(crash bool) {
	if n.view().Role == primary {
		return
	}
	n.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.promise(n.nextEpoch())
	crashIf(crash)
	n.journal.lead(n.joined.Epoch)
	n.role, n.commit, n.leaving = primary, 0, false
	n.term++
	n.beginEpoch()
}

// nextEpoch returns an epoch that is newer than all that this member has seen. mu is held.
func (n *node) nextEpoch() promise {
	return promise{Epoch: max(n.joined.Epoch, n.log.last().Epoch) + 1, Owner: n.name + "/" + newRun()}
}

// cease makes the node a secondary that rejects writes. Later acknowledgments are impossible, because
// they need mu.
func (n *node) cease() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.role == primary {
		n.term++
		n.journal.cease(n.joined.Epoch)
	}
	n.role = secondary
	n.changed.Broadcast()
}

// startFollowing follows the first of the peers that is primary, or any other primary. It closes whole
// when the copy has all entries that the primary had.
func (n *node) startFollowing(peers []string, whole chan<- struct{}) {
	n.stop()
	n.cease()
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { (&follower{node: n, told: peers, whole: whole}).run(ctx) })
	n.stop = func() { cancel(); following.Wait() }
}

// join follows a primary and returns when the copy is complete. Without peers it returns immediately,
// and runs as a secondary that waits for a primary.
func (n *node) join(ctx context.Context, peers []string, crash bool) error {
	whole := make(chan struct{})
	n.startFollowing(peers, whole)
	crashIf(crash)
	if len(peers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, n.joinWithin, errors.New("no primary sent all of its data in time"))
	defer cancel()
	select {
	case <-whole:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end flushes the copy. The process ends after its response.
func (n *node) end() error {
	n.stop()
	n.cease()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.role = none
	n.journal.say(record.Line{What: record.Served, Epoch: n.log.last().Epoch, Index: n.log.last().Index})
	return n.log.close()
}

// view is the state of a member in its own report.
type view struct {
	Pod      string `json:"pod"`
	Role     string `json:"role"`
	Epoch    uint64 `json:"epoch"` // the joined epoch
	Owner    string `json:"owner"` // of the epoch
	Index    uint64 `json:"index"` // of its last entry
	Sequence uint64 `json:"sequence"`
	// Of a primary: whether enough followers have joined, and the index of the last committed entry.
	Established bool   `json:"established,omitempty"`
	Commit      uint64 `json:"commit,omitempty"`
}

func (n *node) view() view {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := view{
		Pod: n.name, Role: n.role, Epoch: n.joined.Epoch, Owner: n.joined.Owner,
		Index: n.log.last().Index, Sequence: n.log.last().Sequence(),
	}
	if n.role == primary {
		v.Established, v.Commit = n.begun > 0, n.commit
	}
	return v
}
