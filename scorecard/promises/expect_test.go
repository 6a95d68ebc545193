package promises

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

// A failure of one goroutine hides no failure of the others. A failure during the cleanup after
// another failure is reported too.
func TestKeptTellsAll(t *testing.T) {
	g := NewWithT(t)
	var c Cluster
	g.Expect(c.Kept(func(*Cluster) {})).To(Succeed())
	err := c.Kept(func(c *Cluster) {
		c.during("all", func() {
			c.atOnce(3, func(own *Cluster, i int) {
				defer own.check(nil)
				defer func() { own.Expect(i).NotTo(Equal(1), "the end of %d", i) }()
				own.during("one", func() { own.Expect(i).To(BeZero(), "no zero: %d", i) })
			})
		})
		t.Error("it went on")
	})
	for _, words := range []string{"all: ", "one: no zero: 1", "the end of 1", "one: no zero: 2", "(expect_test.go:"} {
		g.Expect(err).To(MatchError(ContainSubstring(words)))
	}
	g.Expect(err).NotTo(MatchError(ContainSubstring("the end of 2")))
	err = c.Kept(func(c *Cluster) { c.check(errors.New("so it is")) })
	g.Expect(err).To(MatchError(HavePrefix("so it is (expect_test.go:")))
	g.Expect(func() { _ = c.Kept(func(*Cluster) { panic("lost") }) }).To(PanicWith("lost"))
}

func TestCleanupsAreDoneFromTheLastOn(t *testing.T) {
	g := NewWithT(t)
	var c Cluster
	var done []string
	err := c.Kept(func(own *Cluster) {
		for _, name := range []string{"first", "second", "third"} {
			own.Cleanup(func() {
				done = append(done, name)
				own.Expect(name).NotTo(Equal("second"), "it cannot be cleaned up")
			})
		}
		own.fail("the reason is %d", 7)
	})
	g.Expect(err).To(MatchError(And(ContainSubstring("the reason is 7"), ContainSubstring("it cannot be cleaned up"))))
	slices.Reverse(done)
	g.Expect(done).To(Equal([]string{"first", "second", "third"}))
	g.Expect(c.cleanups).To(BeEmpty())
}

// An attempt that fails is retried, and only the failure of the last attempt is reported.
func TestUntil(t *testing.T) {
	g := NewWithT(t)
	looks := 0
	ctx, stop := context.WithCancel(t.Context())
	look := func(c *Cluster, enough int) func(context.Context) {
		return func(context.Context) {
			looks++
			c.Expect(looks).To(Equal(enough), "look %d", looks)
		}
	}
	var c Cluster
	g.Expect(c.Kept(func(c *Cluster) { c.until(ctx, "three looks", look(c, 3)) })).To(Succeed())
	err := c.Kept(func(c *Cluster) {
		c.during("later", func() {
			c.until(ctx, "what never comes", func(ctx context.Context) {
				if looks == 5 {
					stop()
				}
				look(c, 0)(ctx)
			})
		})
	})
	g.Expect(err).To(MatchError(And(HavePrefix("later: "), ContainSubstring("waited for what never comes"), ContainSubstring("look 6"), Not(ContainSubstring("look 5")))))
	g.Expect(c.Kept(func(c *Cluster) { // a wait inside of another wait fails one attempt of the outer one
		looks = 0
		c.until(t.Context(), "the outer one", func(context.Context) { c.until(ctx, "the inner one", look(c, 2)) })
	})).To(Succeed())
}
