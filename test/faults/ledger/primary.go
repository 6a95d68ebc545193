package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

var (
	errNotPrimary = errors.New("not primary")
	errNobody     = errors.New("not enough followers have joined")
	errNotEnough  = errors.New("not enough followers have it yet")
	errCeased     = errors.New("stopped being primary before enough followers had it")
)

// beginEpoch resets the followers' progress and waits for them to join the epoch. mu is held.
func (n *node) beginEpoch() {
	n.progress, n.begun = map[string]uint64{}, 0
	n.advance()
}

// advance writes the epoch's first entry when enough followers have joined, and commits the entries
// that enough of them have. Entries of older epochs are only committed by a later entry of this epoch:
// only then no copy without them is newer. mu is held.
func (n *node) advance() {
	if n.begun == 0 && len(n.progress) >= n.acks {
		first := record.Entry{Epoch: n.joined.Epoch, Index: n.log.last().Index + 1}
		n.write(first)
		n.begun = first.Index
		n.journal.say(record.Line{What: record.Established, Epoch: first.Epoch, Index: first.Index})
	}
	if n.begun == 0 {
		return
	}
	if index := n.onEnough(); index >= n.begun && index > n.commit {
		n.commit = index
		n.changed.Broadcast()
	}
}

// onEnough returns the index up to which enough followers have the log. mu is held.
func (n *node) onEnough() uint64 {
	if n.acks == 0 {
		return n.log.last().Index
	}
	if len(n.progress) < n.acks {
		return 0
	}
	have := slices.Sorted(maps.Values(n.progress))
	return have[len(have)-n.acks]
}

// write writes entries to the disk and makes them available to followers. mu is held.
func (n *node) write(entries ...record.Entry) {
	need(n.log.add(entries...)) // after an error the content of the disk is unknown
	n.changed.Broadcast()
}

// request is a client's append request.
type request struct {
	Client  string `json:"client"`
	Request string `json:"request"`
	Value   string `json:"value"`
}

// answer is the response to an append or a read.
type answer struct {
	Epoch    uint64        `json:"epoch,omitempty"`
	Index    uint64        `json:"index,omitempty"`
	Position uint64        `json:"position"`
	Digest   record.Digest `json:"digest,omitempty"`
	Error    string        `json:"error,omitempty"`
	Effect   string        `json:"effect,omitempty"` // with an error: none or unknown
}

// append appends a client's entry, and acknowledges it when enough followers have it on their disks. A
// repeated request is appended only once.
func (n *node) append(ctx context.Context, r request) (answer, error) {
	if r.Client == "" || r.Request == "" {
		return answer{Effect: "none"}, errors.New("client and request are required")
	}
	ctx, cancel := context.WithTimeout(ctx, n.ackTimeout)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	term := n.term
	leads := func() bool { return n.role == primary && n.term == term && !n.leaving }
	if !leads() {
		return answer{Effect: "none"}, errNotPrimary
	}
	if _, known := n.log.find(r.Client, r.Request); !known {
		if err := n.await(ctx, func() bool { return n.begun > 0 || !leads() }); err != nil {
			return answer{Effect: "none"}, errNobody
		}
		if !leads() {
			return answer{Effect: "none"}, errNotPrimary
		}
	}
	index, known := n.log.find(r.Client, r.Request) // the request may be a repetition
	if !known {
		index = n.log.last().Index + 1
		n.write(record.Entry{Epoch: n.joined.Epoch, Index: index, Client: r.Client, Request: r.Request, Value: r.Value})
		n.advance()
	}
	err := n.await(ctx, func() bool { return !leads() || n.commit >= index })
	switch {
	case !leads():
		return answer{Effect: "unknown"}, errCeased
	case err != nil:
		return answer{Effect: "unknown"}, errNotEnough
	}
	e := n.log.all[index]
	n.journal.say(record.Line{
		What: record.Ack, Epoch: e.Epoch, Index: e.Index, Position: e.seen.count, Client: e.Client, Request: e.Request,
	})
	return answer{Epoch: e.Epoch, Index: e.Index, Position: e.seen.count}, nil
}

// read returns the state that enough copies have. Like most databases it assumes that there is no other
// primary. With two primaries, readers see old data, which tests must be able to detect.
func (n *node) read(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, n.ackTimeout)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.await(ctx, func() bool { return n.role != primary || (n.begun > 0 && n.commit >= n.begun) }); err != nil {
		return answer{Effect: "none"}, errNobody
	}
	if n.role != primary {
		return answer{Effect: "none"}, errNotPrimary
	}
	e := n.log.all[n.commit]
	return answer{Epoch: e.Epoch, Index: n.commit, Position: e.seen.count, Digest: e.seen.digest}, nil
}

// welcome lets a follower join. A follower that has joined a newer epoch, or another epoch of the same
// number, does not go back: this primary starts a still newer one. Every follower is accepted. The
// operator must promote the right member, and a mistake must be visible as a lost entry.
func (n *node) welcome(_ context.Context, had promise) (invitation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.role != primary {
		return invitation{}, errNotPrimary
	}
	if !had.allows(n.joined) {
		next := n.nextEpoch()
		next.Epoch = max(next.Epoch, had.Epoch+1)
		n.promise(next)
		n.journal.lead(next.Epoch)
		n.beginEpoch()
		n.changed.Broadcast()
	}
	return invitation{n.joined, n.log.last().Index}, nil
}

// maxEntries is the max number of entries in a response to a follower.
const maxEntries = 1000

// give returns entries to a follower. The request confirms that the follower has all earlier ones on
// its disk. Without new entries it waits a moment.
func (n *node) give(ctx context.Context, p pull) (entries []record.Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullFor)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	leads := func() bool { return n.role == primary && n.joined == p.Joined }
	if !leads() {
		return nil, errNotPrimary
	}
	have := p.From - 1
	if p.From == 0 || have > n.log.last().Index || n.log.all[have].sum != p.Sum {
		return nil, errors.New("the copies differ")
	}
	n.progress[p.Member] = have
	n.advance()
	n.changed.Broadcast()                                                             // wakes handOff
	_ = n.await(ctx, func() bool { return !leads() || n.log.last().Index >= p.From }) // or times out
	if !leads() {
		return nil, errNotPrimary
	}
	for _, k := range n.log.all[p.From : min(have+maxEntries, n.log.last().Index)+1] {
		entries = append(entries, k.Entry)
	}
	return entries, nil
}

// sumAt returns the digest of the log up to an index, if the log has this index.
func (n *node) sumAt(_ context.Context, index uint64) (sumAnswer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if index > n.log.last().Index {
		return sumAnswer{}, nil
	}
	return sumAnswer{true, n.log.all[index].sum}, nil
}
