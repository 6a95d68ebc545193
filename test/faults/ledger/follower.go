package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// Followers pull. The operator passes the primary to a follower and nothing to a primary, so a primary
// needs no list of members. A pull from entry n on confirms that all earlier entries are on the
// follower's disk.
const (
	pullFor    = time.Second            // an empty response is sent after it
	askFor     = 3 * time.Second        // a longer request counts as hanging
	retryAfter = 50 * time.Millisecond  // after a failure
	knobEvery  = 100 * time.Millisecond // while a knob blocks following
)

// pull is a follower's request for entries.
type pull struct {
	Member string        `json:"member"`
	Joined promise       `json:"joined"`
	From   uint64        `json:"from"`
	Sum    record.Digest `json:"sum"` // of all earlier entries
}

// invitation is a primary's response to a follower that wants to join: the epoch to join, and the
// primary's last index.
type invitation struct {
	Joined promise `json:"joined"`
	Last   uint64  `json:"last"`
}

// follower synchronizes a node's copy with the primary's.
type follower struct {
	*node
	told  []string
	whole chan<- struct{} // closed when the copy has all entries that the primary had at the join
}

var peerClient = &http.Client{Timeout: askFor}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		source, err := f.find(ctx)
		if err == nil {
			err = f.follow(ctx, source)
		}
		if err != nil && ctx.Err() == nil {
			pause(ctx, retryAfter)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// find returns the address of the primary: a peer from the hook's arguments, or otherwise any peer with
// the role primary, in the newest epoch.
func (f *follower) find(ctx context.Context) (string, error) {
	for _, peers := range [][]string{f.told, f.everybody()} {
		views := make([]view, len(peers))
		var asked sync.WaitGroup
		for i, peer := range peers {
			asked.Go(func() { _ = ask(ctx, peer, "GET", "/role", nil, &views[i]) })
		}
		asked.Wait()
		best, epoch := "", uint64(0)
		for i, v := range views {
			if v.Role == primary && v.Epoch > epoch {
				best, epoch = peers[i], v.Epoch
			}
		}
		if best != "" {
			return best, nil
		}
	}
	return "", errors.New("no member reports to be primary")
}

// follow joins a primary, discards entries that the primary does not have, and pulls until a failure.
func (f *follower) follow(ctx context.Context, source string) error {
	f.mu.Lock()
	joined := f.joined
	f.mu.Unlock()
	var in invitation
	if err := ask(ctx, source, "POST", "/join", joined, &in); err != nil {
		return err
	}
	if err := f.accept(ctx, in.Joined, source); err != nil {
		return err
	}
	if err := f.cutDiverged(ctx, source); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if !f.mayPull(ctx) {
			return nil
		}
		if err := f.pull(ctx, source, in); err != nil {
			return err
		}
	}
	return nil
}

// accept rejects an epoch that is older than the joined one.
func (f *follower) accept(ctx context.Context, offered promise, source string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !f.joined.allows(offered) {
		return fmt.Errorf("epoch %d of %s is older than epoch %d, which it has joined", offered.Epoch, source, f.joined.Epoch)
	}
	if f.joined != offered {
		f.promise(offered)
		f.journal.say(record.Line{What: record.Joined, Epoch: offered.Epoch, Text: offered.Owner})
	}
	return nil
}

// cutDiverged finds the last index up to which the copies are equal, and removes the later entries. It
// must not remove more: the primary may count on these entries.
func (f *follower) cutDiverged(ctx context.Context, source string) error {
	last := f.view().Index
	same, different := uint64(0), last+1
	for try := last; same+1 < different; try = (same + different) / 2 {
		var theirs sumAnswer
		if err := ask(ctx, source, "POST", "/sum", try, &theirs); err != nil {
			return err
		}
		if ours, _ := f.sumAt(ctx, try); theirs.Has && theirs == ours {
			same = try
		} else {
			different = try
		}
	}
	if same == last {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.journal.say(record.Line{What: record.Cut, Epoch: f.log.all[same+1].Epoch, Index: same + 1})
	need(f.log.cut(same))
	return nil
}

func (f *follower) pull(ctx context.Context, source string, in invitation) error {
	f.mu.Lock()
	last := f.log.last().Index
	p := pull{Member: f.name, Joined: in.Joined, From: last + 1, Sum: f.log.all[last].sum}
	f.mu.Unlock()
	var entries []record.Entry
	if err := ask(ctx, source, "POST", "/pull", p, &entries); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || f.joined != in.Joined {
		return errors.New("it follows another primary now")
	}
	if len(entries) > 0 {
		need(f.log.add(entries...))
	}
	if f.whole != nil && f.log.last().Index >= in.Last {
		close(f.whole)
		f.whole = nil
	}
	return nil
}

// mayPull waits while a knob makes this follower lag.
func (f *follower) mayPull(ctx context.Context) bool {
	for ctx.Err() == nil {
		k, err := f.knob("replicate")
		if err == nil && !k.has["hang"] {
			pause(ctx, k.lag)
			return ctx.Err() == nil
		}
		pause(ctx, knobEvery)
	}
	return false
}

// ask sends a request to a peer.
func ask(ctx context.Context, address, method, path string, question, reply any) error {
	return askThrough(ctx, peerClient, address, method, path, question, reply)
}

func askThrough(ctx context.Context, client *http.Client, address, method, path string, question, reply any) error {
	body := bytes.NewReader(nil)
	if question != nil {
		body = bytes.NewReader(record.Marshal(question))
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, body)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return fmt.Errorf("%s returned %s: %s", address, response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(reply)
}
