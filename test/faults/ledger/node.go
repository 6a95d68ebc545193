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

// The roles of a server.
const (
	none      = "none" // it has started and was not told yet
	secondary = "secondary"
	primary   = "primary"
)

// node is one member's server: its copy, and what it is told to be.
type node struct {
	settings
	journal *journal

	commands sync.Mutex // one command at a time
	stop     func()     // ends the following, and waits for its end; only for commands

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	log     *ledgerLog
	joined  promise
	role    string

	// Of a primary:
	leaving  bool              // it takes no entries any more
	term     uint64            // counts how often it became or ceased to be one
	progress map[string]uint64 // how far each follower's copy goes
	begun    uint64            // the index of the epoch's first entry, when enough followers joined
	commit   uint64            // up to here enough copies have the log
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

// await returns when something holds. mu is held, except while it waits.
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

// promise joins an epoch, on the disk. mu is held.
func (n *node) promise(p promise) {
	need(p.keep(n.dir))
	n.joined = p
}

// obey carries out a command, and returns when it is truly done.
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
	case "stop":
		crashIf(crash)
		return n.end()
	default:
		return fmt.Errorf("no such command: %s", command)
	}
	return nil
}

// handOff takes no entries any more, and waits a while until one follower has all that there
// are: nobody follows a member that is no primary. Whoever acknowledges entries before
// followers have them has to do so before another is made primary.
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
	_ = n.await(ctx, n.hasHeir) // then its own copy is the newest, and who asks sees it
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

// crashIf ends the server in the middle of a command, for a knob.
func crashIf(crash bool) {
	if crash {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal is there
	}
}

// lead makes it primary in an epoch of its own. There are no entries of that
// epoch before enough followers have joined it: a primary that nobody follows
// leaves nothing behind that would make its copy look newer than it is.
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

// nextEpoch is newer than all that this member knows of. mu is held.
func (n *node) nextEpoch() promise {
	return promise{Epoch: max(n.joined.Epoch, n.log.last().Epoch) + 1, Owner: n.name + "/" + newRun()}
}

// cease makes it a secondary that serves no writes. Nothing is acknowledged
// after it, because acknowledging needs mu.
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

// startFollowing follows the first of the peers that is primary, or whoever else
// is. It tells once when the copy has what the primary had.
func (n *node) startFollowing(peers []string, whole chan<- struct{}) {
	n.stop()
	n.cease()
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { (&follower{node: n, told: peers, whole: whole}).run(ctx) })
	n.stop = func() { cancel(); following.Wait() }
}

// join follows, and returns when the copy is whole. Without anybody to follow
// it only runs as a secondary: a primary may come later.
func (n *node) join(ctx context.Context, peers []string, crash bool) error {
	whole := make(chan struct{})
	n.startFollowing(peers, whole)
	crashIf(crash)
	if len(peers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, n.joinWithin, errors.New("no primary gave it all that it had in time"))
	defer cancel()
	select {
	case <-whole:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end flushes the copy. The process ends after it has answered.
func (n *node) end() error {
	n.stop()
	n.cease()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.role = none
	n.journal.say(record.Line{What: record.Served, Epoch: n.log.last().Epoch, Index: n.log.last().Index})
	return n.log.close()
}

// view is what a member says of itself.
type view struct {
	Pod      string `json:"pod"`
	Role     string `json:"role"`
	Epoch    uint64 `json:"epoch"` // that it has joined
	Owner    string `json:"owner"` // whose it is
	Index    uint64 `json:"index"` // of its last entry
	Sequence uint64 `json:"sequence"`
	// Of a primary: whether enough followers have joined, and have what.
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
