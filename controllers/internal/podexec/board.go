package podexec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Board runs commands in the background, one at a time in each pod, and keeps
// the newest result of each. All of it may be lost: a restart knows nothing, and
// asks again.
type Board struct {
	// Run runs one command; Executor.Run does.
	Run func(context.Context, Command) Result
	// Woken is told the owner of a command that ended.
	Woken func(owner types.NamespacedName)

	mu      sync.Mutex
	root    context.Context // ends with the manager
	owners  map[types.NamespacedName]map[types.UID]*desk
	running sync.WaitGroup
}

// Attach makes a Board that runs commands with run a part of the manager. The
// channel brings the owner of each command that ended, as the object that owner
// makes of its key.
func Attach(mgr manager.Manager, run func(context.Context, Command) Result, owner func(types.NamespacedName) client.Object) (*Board, <-chan event.GenericEvent, error) {
	woken := make(chan event.GenericEvent, 1024)
	ends := make(chan struct{}) // with the manager: then nobody takes what is woken
	board := &Board{Run: run, Woken: func(key types.NamespacedName) {
		select {
		case woken <- event.GenericEvent{Object: owner(key)}:
		case <-ends:
		}
	}}
	waker := manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		close(ends)
		return nil
	})
	for _, runnable := range []manager.Runnable{board, waker} {
		if err := mgr.Add(runnable); err != nil {
			return nil, nil, fmt.Errorf("add the running of commands to the manager: %w", err)
		}
	}
	return board, woken, nil
}

// desk is one pod: what runs in it, and what came of the commands before.
type desk struct {
	running *Command
	results map[string]Result // by the command's name
}

// Start makes the Board a part of the manager: commands are sent until ctx
// ends. It returns when the last one was let go.
func (b *Board) Start(ctx context.Context) error {
	b.mu.Lock()
	b.root = ctx
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	b.root = nil // nobody sends any more
	b.mu.Unlock()
	b.running.Wait()
	return nil
}

// Send begins a command for the object that owns the pod. It returns false, and
// does nothing, while another command runs in that pod or this process ends.
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
	d.running = &c
	ctx := b.root
	b.running.Go(func() { b.run(ctx, owner, d, c) })
	return true
}

func (b *Board) run(ctx context.Context, owner types.NamespacedName, d *desk, c Command) {
	result := b.Run(ctx, c)
	b.mu.Lock()
	d.running, d.results[c.Name] = nil, result
	b.mu.Unlock()
	b.Woken(owner)
}

// desk finds the desk of a pod; the lock is held.
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

// Of tells what runs in a pod now, nil for nothing, and the newest result of
// each command that ended in it, by its name in the order of the alphabet.
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

// Keep forgets what is known of all pods of an owner but these.
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
