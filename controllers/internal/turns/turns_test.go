package turns

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// N9: a waiting peer gets its turn after at most one turn of each other peer. It does not wait for all
// earlier requests of the others.
func TestN9TurnsGoRoundRobin(t *testing.T) {
	g := NewWithT(t)
	turns := New(1, 1, 0)
	leave, err := turns.Enter(t.Context(), "first", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	order := make(chan string, 20)
	var all sync.WaitGroup
	ask := func(name string) {
		turn := turns.ask(name)
		all.Go(func() {
			<-turn
			order <- name
			turns.leave(name)
		})
	}
	for range 5 {
		ask("a")
	}
	for range 5 {
		ask("b")
	}
	ask("c")
	leave()
	all.Wait()
	close(order)
	var got []string
	for one := range order {
		got = append(got, one)
	}
	g.Expect(got[:5]).To(Equal([]string{"a", "b", "c", "a", "b"}))
	g.Expect(turns.Known()).To(BeZero())
	g.Expect(turns.taken).To(BeZero())
}

func TestARequestThatGoesGivesItsTurnBack(t *testing.T) {
	g := NewWithT(t)
	turns := New(1, 1, 0)
	leave, err := turns.Enter(t.Context(), "a", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = turns.Enter(t.Context(), "b", time.Millisecond)
	g.Expect(err).To(HaveOccurred())
	turn := turns.ask("b")
	g.Expect(turns.line).To(HaveLen(1))
	leave()
	g.Expect(turn).To(BeClosed())
	g.Expect(turns.withdraw("b", turn)).To(BeTrue(), "the connection has a slot")
	turns.leave("b")
	g.Expect(turns.Known()).To(BeZero())
	g.Expect(turns.line).To(BeEmpty())
}
