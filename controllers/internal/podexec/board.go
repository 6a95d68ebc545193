package podexec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// Board runs commands in the background: one at a time in each pod, and at most maxRunning in this
// process. It keeps the latest result of each command. All results can be lost: they are not kept
// across a restart of the operator, and the commands are then run again.
type Board struct {
	// Run runs one command, usually Executor.Run.
	Run func(context.Context, Command) Result
	// Woken is called with the owner of a command that ended.
	Woken func(owner types.NamespacedName)

	mu      sync.Mutex
	root    context.Context // ends with the manager
	owners  map[types.NamespacedName]map[types.UID]*desk
	running sync.WaitGroup
	places  *places // nil means the shared places of this process
}

// desk is the state of one pod: its active command and the results of earlier ones.
type desk struct {
	running *Command
	results map[string]Result // by the name of the command
}

// Start implements manager.Runnable. Commands are accepted until ctx ends. Start returns when all
// commands have returned.
func (b *Board) Start(ctx context.Context) error {
	b.mu.Lock()
	b.root = ctx
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	b.root = nil // no commands are accepted any more
	b.mu.Unlock()
	b.running.Wait()
	return nil
}

// Send starts a command for the object that owns the pod. It returns false without effect if another
// command runs in the pod, or if this process is shutting down. If too many commands run concurrently,
// the command waits for its turn, as long as it may still begin.
func (b *Board) Send(owner types.NamespacedName, c Command) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root == nil || b.root.Err() != nil {
		return false
	}
	d := b.desk(owner, c.UID)
	if d.running != nil {
		return false
	}
	t := b.room().lineUp(owner)
	d.running = &c
	if !t.has() {
		waits := c
		waits.Asked = time.Time{} // not sent yet
		d.running = &waits
	}
	ctx := b.root
	b.running.Go(func() { b.run(ctx, owner, d, c, t) })
	return true
}

// NotSent stores the result of a command that was not sent, although its owner has recorded it. It has no effect if
// another command runs in the pod.
func (b *Board) NotSent(owner types.NamespacedName, c Command, why string) {
	b.mu.Lock()
	d := b.desk(owner, c.UID)
	isFree, now := d.running == nil, time.Now()
	if isFree {
		c.Argv = nil
		d.results[c.Name] = Result{Command: c, Outcome: Unknown, Why: excerpt.Of(why, maxWhy), Began: now, Ended: now}
	}
	b.mu.Unlock()
	if isFree {
		b.Woken(owner)
	}
}

// room returns the places that the commands of this Board use.
func (b *Board) room() *places {
	if b.places == nil {
		return &shared
	}
	return b.places
}

// run waits for the place of a command, runs the command, and stores its result.
func (b *Board) run(ctx context.Context, owner types.NamespacedName, d *desk, c Command, t *turn) {
	came := time.Now()
	result := Result{Command: c, Outcome: Unknown, Began: came}
	if b.room().wait(ctx, t, c.within()) {
		b.begin(d, c, time.Since(came))
		result = b.Run(ctx, c)
		b.room().leave(t)
	} else {
		result.Why = fmt.Sprintf("no slot within %s: too many concurrent commands in this operator, or in this namespace", c.within())
		result.Ended = time.Now()
	}
	result.Argv = nil // no longer needed, and can be large
	b.mu.Lock()
	d.running, d.results[c.Name] = nil, result
	b.mu.Unlock()
	b.Woken(owner)
}

// begin records that a waiting command has its place. It moves Asked forward by the time that the
// command waited.
func (b *Board) begin(d *desk, c Command, waited time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.running.Asked.IsZero() && !c.Asked.IsZero() {
		c.Asked = c.Asked.Add(waited)
		d.running = &c
	}
}

// desk returns the desk of a pod. The caller holds the lock.
func (b *Board) desk(owner types.NamespacedName, pod types.UID) *desk {
	if b.owners == nil {
		b.owners = map[types.NamespacedName]map[types.UID]*desk{}
	}
	if b.owners[owner] == nil {
		b.owners[owner] = map[types.UID]*desk{}
	}
	if b.owners[owner][pod] == nil {
		b.owners[owner][pod] = &desk{results: map[string]Result{}}
	}
	return b.owners[owner][pod]
}

// Of returns the active command of a pod, or nil, and the latest results of its completed commands,
// sorted by the name of the command.
func (b *Board) Of(owner types.NamespacedName, pod types.UID) (running *Command, results []Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.owners[owner][pod]
	if d == nil {
		return nil, nil
	}
	for _, r := range d.results {
		results = append(results, r)
	}
	slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return d.running, results
}

// Keep removes the results of all pods of an owner except the given ones.
func (b *Board) Keep(owner types.NamespacedName, pods ...types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, d := range b.owners[owner] {
		if d.running == nil && !slices.Contains(pods, uid) {
			delete(b.owners[owner], uid)
		}
	}
	if len(b.owners[owner]) == 0 {
		delete(b.owners, owner)
	}
}
