package promises

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"golang.org/x/sync/errgroup"
)

// How a promise says what it expects, and what becomes of it where that is not so.

// failBy has the cluster's expectations end a promise by this function, which panics.
func (c *Cluster) failBy(fail types.GomegaFailHandler) {
	c.fails = fail
	c.Gomega = NewGomega(func(message string, skip ...int) {
		up := 1
		if len(skip) > 0 {
			up += skip[0]
		}
		fail(c.while+message, up)
	})
}

// broken is what is thrown where an expectation was not met.
type broken struct{}

// Kept does something with a copy of the cluster, and says what it failed with. It may be
// called by several goroutines at a time: what one of them fails with hides nothing of
// the others. Any other panic is passed on.
func (c *Cluster) Kept(do func(own *Cluster)) error {
	own := *c
	own.cleanups = nil
	return own.caught(func() {
		defer own.cleanUp()
		do(&own)
	})
}

// located matches a failure that was passed on, with its line.
var located = regexp.MustCompile(`\(\w+\.go:\d+\)$`)

// caught does something with the cluster itself, and says what it failed with.
func (c *Cluster) caught(do func()) (err error) {
	was := *c
	c.while = ""
	c.failBy(func(message string, skip ...int) {
		message = strings.TrimSpace(message)
		if _, file, line, ok := runtime.Caller(1 + skip[0]); ok && !located.MatchString(message) {
			message += fmt.Sprintf(" (%s:%d)", filepath.Base(file), line)
		}
		err = errors.Join(err, errors.New(message))
		panic(broken{})
	})
	defer func() {
		thrown := recover()
		c.Gomega, c.fails, c.while = was.Gomega, was.fails, was.while
		if thrown != nil && thrown != (broken{}) {
			panic(thrown)
		}
	}()
	do()
	return err
}

// Cleanup has something done at the end, before what was to be done so far.
func (c *Cluster) Cleanup(do func()) { c.cleanups = append(c.cleanups, do) }

// cleanUp does it, all of it whatever fails.
func (c *Cluster) cleanUp() {
	if last := len(c.cleanups) - 1; last >= 0 {
		do := c.cleanups[last]
		c.cleanups = c.cleanups[:last]
		defer c.cleanUp()
		do()
	}
}

// during has these words said before what fails in what is done.
func (c *Cluster) during(words string, do func()) {
	was := c.while
	defer func() { c.while = was }()
	c.while += words + ": "
	do()
}

// plain matches nil, and says of an error what it says itself.
type plain struct{}

func (plain) Match(actual any) (bool, error)     { return actual == nil, nil }
func (plain) FailureMessage(actual any) string   { return fmt.Sprint(actual) }
func (plain) NegatedFailureMessage(_ any) string { return "an error was expected" }

// check expects that something went well.
func (c *Cluster) check(err error) { c.ExpectWithOffset(1, err).To(plain{}) }

// fail ends the promise, or one look of until.
func (c *Cluster) fail(format string, args ...any) {
	c.ExpectWithOffset(1, fmt.Errorf(format, args...)).To(plain{})
}

// patience bounds every wait. It is a limit for what never comes, not a goal: on a machine
// that others slowed to a third, what takes half a minute took more than four.
const patience = 8 * time.Minute

// until waits until a look at the cluster finds all that it expects. What is expected of
// the cluster meanwhile, by whatever the look calls, fails that one look alone; what the
// last look failed with is told. What takes long is looked at less often.
func (c *Cluster) until(ctx context.Context, what string, look func(context.Context)) {
	always, began := c.Gomega, time.Now()
	defer func() { c.Gomega = always }()
	// What hangs is ended, and later than the wait: its error would hide a better one.
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), patience+10*time.Second)
	defer stop()
	always.EventuallyWithOffset(1, func(g Gomega) {
		if time.Since(began) > 10*time.Second {
			sleep(ctx, 750*time.Millisecond)
		}
		c.Gomega = g
		look(limited)
	}).WithContext(ctx).WithTimeout(patience).WithPolling(250*time.Millisecond).Should(Succeed(), "waited for %s", what)
}

// sleep lets that long pass, or less if the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// throughout looks at the cluster again and again for that long; each look must find all
// that it expects.
func (c *Cluster) throughout(ctx context.Context, length time.Duration, look func()) {
	for end := time.Now().Add(length); time.Now().Before(end); sleep(ctx, 100*time.Millisecond) {
		c.check(ctx.Err())
		look()
	}
}

// atOnce does so many things beside each other, each with a cluster of its own. What one
// of them fails with does not end the others.
func (c *Cluster) atOnce(many int, do func(own *Cluster, i int)) { c.inTurns(many, many, do) }

// inTurns does so too, with no more of them at a time than the limit.
func (c *Cluster) inTurns(limit, many int, do func(own *Cluster, i int)) {
	errs := make([]error, many)
	var all errgroup.Group
	all.SetLimit(limit)
	for i := range many {
		all.Go(func() error {
			errs[i] = c.Kept(func(own *Cluster) { do(own, i) })
			return nil
		})
	}
	_ = all.Wait() // errs has all
	c.check(errors.Join(errs...))
}
