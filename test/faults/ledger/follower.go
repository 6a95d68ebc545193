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

// Followers pull. The operator tells a follower who is primary and tells a
// primary nothing, so a primary needs no list of members; and a pull from entry
// n on says by itself that all before n is on the follower's disk.
const (
	pullFor    = time.Second            // an empty answer comes after that
	askFor     = 3 * time.Second        // more than that means that it hangs
	retryAfter = 50 * time.Millisecond  // after something failed
	knobEvery  = 100 * time.Millisecond // while a knob says not to follow
)

// pull is what a follower asks for.
type pull struct {
	Member string        `json:"member"`
	Joined promise       `json:"joined"`
	From   uint64        `json:"from"`
	Sum    record.Digest `json:"sum"` // of all before
}

// invitation is what a primary answers to a follower that wants to join: which
// epoch to join, and how far its log goes.
type invitation struct {
	Joined promise `json:"joined"`
	Last   uint64  `json:"last"`
}

// follower makes a node's copy the same as the primary's.
type follower struct {
	*node
	told  []string
	whole chan<- struct{} // closed when the copy has what the primary had
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

// find is the address of the primary: one that the hook was told of, or whoever
// says that it is one, in the newest epoch.
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
	return "", errors.New("nobody says to be primary")
}

// follow joins a primary, gives up what that does not have, and pulls until it
// fails.
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

// accept refuses an epoch that is older than the one joined.
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

// cutDiverged finds up to where its copy is the primary's, and takes off the
// rest. Not one entry more: the primary may count on them.
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
		return errors.New("it follows somebody else now")
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

// mayPull waits while a knob says that this follower lags.
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
		return fmt.Errorf("%s answered %s: %s", address, response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(reply)
}
