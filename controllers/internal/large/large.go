// Package large limits the number of concurrent passes that read large amounts. Users determine how
// much a pass reads: an object can have thousands of pods, or pods of 1 MiB each. Small passes are
// never delayed.
package large

import (
	"context"
	"encoding/json"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Bytes is how many bytes of JSON a pass may read without a place, which is the permission to read more.
const Bytes = 8 << 20

// places limits the large passes of this process to one. A pass reads up to bounds.PodBytes, and takes
// about twice as much memory.
var places = semaphore.NewWeighted(1)

// place records whether a pass holds a place. It is a value of the context of the pass.
type place struct {
	mu   sync.Mutex
	held bool
}

// key is the key of the place in the context of a pass.
type key struct{}

// Pass returns a context with which a pass can take a place. The returned function releases the place
// at the end of the pass.
func Pass(ctx context.Context) (context.Context, func()) {
	p := &place{}
	return context.WithValue(ctx, key{}, p), func() {
		if p.held {
			places.Release(1)
		}
	}
}

// Enter waits for the place of a pass. It does nothing if the pass holds one already. It fails when ctx
// ends.
func Enter(ctx context.Context) error {
	p, isPass := ctx.Value(key{}).(*place)
	if !isPass {
		return nil
	}
	p.mu.Lock() // a pass can read several lists concurrently
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

// Read must be called before a pass reads pods of a template from the API server. It takes a place if
// the pods may have more than Bytes.
func Read(ctx context.Context, pods int, template any) error {
	text, err := json.Marshal(template)
	if err != nil || pods*(len(text)+added) <= Bytes {
		return err
	}
	return Enter(ctx)
}

// added is an estimate of the bytes that the API server adds to a pod: defaults, status and managed
// fields.
const added = 6 << 10
