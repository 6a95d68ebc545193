package podexec

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/types"
)

func of(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// fill takes places for an object until it gets no more, and returns their number.
func fill(p *places, owner types.NamespacedName) (n int, last *turn) {
	for {
		t := p.lineUp(owner)
		if !t.has() {
			p.wait(context.Background(), t, 0)
			return n, last
		}
		last = t
		n++
	}
}

func TestWhoHangsLeavesPlacesToOthers(t *testing.T) {
	p := &places{most: 60}
	for _, row := range []struct {
		owner types.NamespacedName
		gets  int
		why   string
	}{
		{of("a", "hangs"), 20, "one object gets a third of the slots"},
		{of("a", "beside"), 7, "another object of the namespace gets a third of the remaining slots"},
		{of("b", "elsewhere"), 11, "an object of another namespace gets a third of the free slots"},
	} {
		if n, _ := fill(p, row.owner); n != row.gets {
			t.Errorf("%s runs %d commands, want %d: %s", row.owner, n, row.gets, row.why)
		}
	}
	for i := range 1000 { // many tenants with hanging commands
		if n, _ := fill(p, of(fmt.Sprint("ns", i%10), fmt.Sprint(i))); n == 0 && i < 5 {
			t.Errorf("namespace %d has no slot", i)
		}
	}
	if p.taken > p.most {
		t.Errorf("%d commands run in %d slots", p.taken, p.most)
	}
	if len(p.queue) != 0 {
		t.Errorf("%d cancelled commands are still queued", len(p.queue))
	}
}

func TestAPlaceThatIsLeftGoesToWhoWaits(t *testing.T) {
	p := &places{most: 3}
	n, last := fill(p, of("a", "one"))
	waits := p.lineUp(of("a", "one"))
	go p.leave(last)
	if !p.wait(context.Background(), waits, time.Minute) {
		t.Error("the command was never admitted")
	}
	for range n {
		p.leave(waits)
	}
	if len(p.ofOwner)+len(p.ofNamespace)+p.taken != 0 {
		t.Errorf("%d slots in use, by %v", p.taken, p.ofOwner)
	}
}

func TestACommandWithoutAPlaceWasNotSent(t *testing.T) {
	b, end, woken := board(t)
	b.places = &places{most: 1}
	asked := time.Now()
	b.Send(owner, Command{UID: "a", Name: "status", Asked: asked})
	b.Send(owner, Command{UID: "b", Name: "status", Asked: asked, Within: time.Millisecond})
	if running, _ := b.Of(owner, "b"); running == nil || !running.Asked.IsZero() {
		t.Errorf("%v runs: a queued command was sent", running)
	}
	<-woken
	_, results := b.Of(owner, "b")
	if len(results) != 1 || results[0].Sent || results[0].Outcome != Unknown || !strings.HasPrefix(results[0].Why, "no slot within 1ms") {
		t.Errorf("%+v", results)
	}
	b.Send(owner, Command{UID: "b", Name: "status", Asked: asked})
	end <- Succeeded
	<-woken
	end <- Failed
	<-woken
	if _, results = b.Of(owner, "b"); len(results) != 1 || results[0].Outcome != Failed {
		t.Errorf("%+v: the command did not run although a slot was free", results)
	}
}

// The discarded output of a command must not stay in memory.
func TestWhatIsKeptOfAMiB(t *testing.T) {
	e, _, _ := node(t, func(c *websocket.Conn) {
		for range 32 {
			say(t, c, channelStdout, strings.Repeat("9", 32<<10))
			say(t, c, channelStderr, strings.Repeat("9", 32<<10))
		}
		say(t, c, channelStatus, success)
	})
	woken := make(chan struct{})
	b := &Board{Run: e.Run, Woken: func(types.NamespacedName) { woken <- struct{}{} }}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = b.Start(ctx) }()
	for _, row := range []struct{ keep, kept int }{{0, 0}, {64, 64}} {
		c := command(append(make([]string, 100), strings.Repeat("x", 4<<10))...)
		for c.Keep = row.keep; !b.Send(owner, c); {
		}
		<-woken
		_, results := b.Of(owner, c.UID)
		if len(results) != 1 || results[0].Outcome != Succeeded || !results[0].Cut {
			t.Fatalf("%+v", results)
		}
		held := len(results[0].Stdout) + len(results[0].Stderr) + len(results[0].Why)
		for _, a := range results[0].Argv {
			held += len(a)
		}
		if len(results[0].Stdout) != row.kept || held > 1<<10 {
			t.Errorf("%d bytes of stdout, total %d, are kept with a limit of %d", len(results[0].Stdout), held, row.keep)
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	for _, row := range []struct {
		name   string
		prints []string
		kept   string
		cut    bool
	}{
		{"a number", []string{"42\n"}, "42\n", false},
		{"a number in two writes", []string{"4", "", "2\n"}, "42\n", false},
		{"a number after spaces", []string{strings.Repeat(" ", 100), "\n42"}, "42", false},
		{"a number before spaces", []string{"42" + strings.Repeat("\n", 100)}, "42" + strings.Repeat("\n", 6), false},
		{"a number of the max length", []string{"12345678"}, "12345678", false},
		{"longer", []string{"123456789"}, "12345678", true},
		{"text after many spaces", []string{"42" + strings.Repeat(" ", 100) + "7"}, "42      ", true},
	} {
		k := kept{most: 8}
		for _, text := range row.prints {
			if n, err := k.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: wrote %d of %d, %v", row.name, n, len(text), err)
			}
		}
		if string(k.text) != row.kept || k.cut != row.cut {
			t.Errorf("%s: %q, truncated %t; want %q, %t", row.name, k.text, k.cut, row.kept, row.cut)
		}
	}
}

func TestALongReasonIsCut(t *testing.T) {
	e, _, _ := node(t, func(c *websocket.Conn) {
		say(t, c, channelStatus, `{"status":"Failure","message":"`+strings.Repeat("ö", 10<<10)+`"}`)
	})
	if got := e.Run(context.Background(), command("/check")); len(got.Why) > maxWhy || len(got.Why) < maxWhy-1 {
		t.Errorf("the reason has %d bytes", len(got.Why))
	}
}
