package kit

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
		c.During("all", func() {
			c.AtOnce(3, func(own *Cluster, i int) {
				defer own.Check(nil)
				defer func() { own.Expect(i).NotTo(Equal(1), "stopped at %d", i) }()
				own.During("one", func() { own.Expect(i).To(BeZero(), "not zero: %d", i) })
			})
		})
		t.Error("it continued")
	})
	for _, words := range []string{"all: ", "one: not zero: 1", "stopped at 1", "one: not zero: 2", "(expect_test.go:"} {
		g.Expect(err).To(MatchError(ContainSubstring(words)))
	}
	g.Expect(err).NotTo(MatchError(ContainSubstring("stopped at 2")))
	err = c.Kept(func(c *Cluster) { c.Check(errors.New("expected")) })
	g.Expect(err).To(MatchError(HavePrefix("expected (expect_test.go:")))
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
				own.Expect(name).NotTo(Equal("second"), "the cleanup fails")
			})
		}
		own.Fail("the reason is %d", 7)
	})
	g.Expect(err).To(MatchError(And(ContainSubstring("the reason is 7"), ContainSubstring("the cleanup fails"))))
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
			c.Expect(looks).To(Equal(enough), "attempt %d", looks)
		}
	}
	var c Cluster
	g.Expect(c.Kept(func(c *Cluster) { c.Until(ctx, "three attempts", look(c, 3)) })).To(Succeed())
	err := c.Kept(func(c *Cluster) {
		c.During("later", func() {
			c.Until(ctx, "a condition that is never met", func(ctx context.Context) {
				if looks == 5 {
					stop()
				}
				look(c, 0)(ctx)
			})
		})
	})
	g.Expect(err).To(MatchError(And(HavePrefix("later: "), ContainSubstring("waited for a condition that is never met"), ContainSubstring("attempt 6"), Not(ContainSubstring("attempt 5")))))
	g.Expect(c.Kept(func(c *Cluster) { // a wait inside of another wait fails one attempt of the outer one
		looks = 0
		c.Until(t.Context(), "the outer condition", func(context.Context) { c.Until(ctx, "the inner condition", look(c, 2)) })
	})).To(Succeed())
}
