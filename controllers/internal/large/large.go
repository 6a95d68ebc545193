// Package large lets few passes read much at one time. How much a pass reads is the choice
// of who makes the object: thousands of pods, or pods of a megabyte each. Passes that read
// little wait for nobody.
package large

import (
	"context"
	"encoding/json"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Bytes is how much a pass may read, as JSON, without a place.
const Bytes = 8 << 20

// places are of this process. A pass reads up to bounds.PodBytes, and what it reads takes
// about two times that.
var places = semaphore.NewWeighted(1)

// place is that of a pass.
type place struct {
	mu   sync.Mutex
	held bool
}

type key struct{}

// Pass gives a pass a context with which it can take a place, and what leaves that when
// the pass ends.
func Pass(ctx context.Context) (context.Context, func()) {
	p := &place{}
	return context.WithValue(ctx, key{}, p), func() {
		if p.held {
			places.Release(1)
		}
	}
}

// Enter waits for the place of a pass, once. It fails when ctx ends.
func Enter(ctx context.Context) error {
	p, isPass := ctx.Value(key{}).(*place)
	if !isPass {
		return nil
	}
	p.mu.Lock() // a pass reads lists at one time
	defer p.mu.Unlock()
	if p.held {
		return nil
	}
	if err := places.Acquire(ctx, 1); err != nil {
		return err
	}
	p.held = true
	return nil
}

// Read is before a pass reads so many pods of a template whole. It takes a place where they
// may have more than Bytes.
func Read(ctx context.Context, pods int, template any) error {
	text, err := json.Marshal(template)
	if err != nil || pods*(len(text)+added) <= Bytes {
		return err
	}
	return Enter(ctx)
}

// added is what the API server adds to a pod: defaults, status, who wrote which field.
const added = 6 << 10
