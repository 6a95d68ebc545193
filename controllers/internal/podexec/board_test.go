package podexec

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

var owner = types.NamespacedName{Namespace: "ns", Name: "set"}

// board returns a Board whose commands end when an outcome is sent to end.
func board(t *testing.T) (b *Board, end chan Outcome, woken chan types.NamespacedName) {
	t.Helper()
	end, woken = make(chan Outcome), make(chan types.NamespacedName)
	b = &Board{
		Run: func(ctx context.Context, c Command) Result {
			select {
			case o := <-end:
				return Result{Command: c, Outcome: o, Sent: true}
			case <-ctx.Done():
				return Result{Command: c, Outcome: Unknown, Sent: true}
			}
		},
		Woken: func(who types.NamespacedName) { woken <- who },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = b.Start(ctx); close(ended) }()
	for !b.Send(types.NamespacedName{}, Command{UID: "warm-up"}) { // wait until it has started
	}
	end <- Succeeded
	<-woken
	t.Cleanup(func() {
		cancel()
		for {
			select {
			case <-woken:
			case <-ended:
				return
			}
		}
	})
	return b, end, woken
}

func TestOneCommandAtATimeInAPod(t *testing.T) {
	b, end, woken := board(t)
	if !b.Send(owner, Command{UID: "a", Name: "status"}) {
		t.Fatal("the first command was rejected")
	}
	if b.Send(owner, Command{UID: "a", Name: "stop"}) {
		t.Error("a second command ran in the same pod")
	}
	if !b.Send(owner, Command{UID: "b", Name: "status"}) {
		t.Error("a command in another pod was blocked")
	}
	if running, results := b.Of(owner, "a"); running == nil || running.Name != "status" || len(results) != 0 {
		t.Errorf("running %v, results %v", running, results)
	}
	end <- Failed
	if who := <-woken; who != owner {
		t.Errorf("%s was woken", who)
	}
	end <- Failed
	<-woken
	if running, results := b.Of(owner, "a"); running != nil || len(results) != 1 || results[0].Outcome != Failed {
		t.Errorf("running %v, results %v", running, results)
	}
	if !b.Send(owner, Command{UID: "a", Name: "stop"}) {
		t.Error("the next command was rejected")
	}
	end <- Succeeded
	<-woken
	if _, results := b.Of(owner, "a"); len(results) != 2 || results[0].Name != "status" || results[1].Name != "stop" {
		t.Errorf("results %v", results)
	}
}

func TestWhatIsGoneIsForgottenOnceItEnded(t *testing.T) {
	b, end, woken := board(t)
	b.Send(owner, Command{UID: "a", Name: "status"})
	b.Keep(owner)
	if running, _ := b.Of(owner, "a"); running == nil {
		t.Error("a running command was dropped")
	}
	end <- Succeeded
	<-woken
	b.Keep(owner, "a")
	if _, results := b.Of(owner, "a"); len(results) != 1 {
		t.Error("an existing result was dropped")
	}
	b.Keep(owner)
	if _, results := b.Of(owner, "a"); len(results) != 0 || len(b.owners) != 1 {
		t.Errorf("results %v, owners %v", results, b.owners)
	}
}

func TestABoardThatEndsTakesNothing(t *testing.T) {
	b := &Board{Run: func(context.Context, Command) Result { t.Error("the command ran"); return Result{} }}
	if b.Send(owner, Command{UID: "a"}) {
		t.Error("the result is taken before the start")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Start(ctx); err != nil {
		t.Error(err)
	}
	if b.Send(owner, Command{UID: "a"}) {
		t.Error("the result is taken after the end")
	}
}
