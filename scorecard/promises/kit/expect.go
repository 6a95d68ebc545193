package kit

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

// Expectations of promises, and how their failures are reported.

// failBy makes failed expectations of the cluster call this function, which panics.
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

// broken is the panic value of a failed expectation.
type broken struct{}

// Kept calls do with a copy of the cluster, and returns its failures as an error. Several
// goroutines may call it at a time: the failures of all are returned. It passes on any other panic.
func (c *Cluster) Kept(do func(own *Cluster)) error {
	own := *c
	own.cleanups = nil
	return own.Caught(func() {
		defer own.cleanUp()
		do(&own)
	})
}

// located matches a failure that was passed on and already has its line.
var located = regexp.MustCompile(`\(\w+\.go:\d+\)$`)

// Caught calls do with the cluster itself, and returns its failures as an error.
func (c *Cluster) Caught(do func()) (err error) {
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

// Cleanup registers a function to call at the end, in LIFO order.
func (c *Cluster) Cleanup(do func()) { c.cleanups = append(c.cleanups, do) }

// cleanUp calls all registered functions, even if some of them fail.
func (c *Cluster) cleanUp() {
	if last := len(c.cleanups) - 1; last >= 0 {
		do := c.cleanups[last]
		c.cleanups = c.cleanups[:last]
		defer c.cleanUp()
		do()
	}
}

// During adds these words before the message of any failure in do.
func (c *Cluster) During(words string, do func()) {
	was := c.while
	defer func() { c.while = was }()
	c.while += words + ": "
	do()
}

// plain matches nil. Its failure message is the message of the error itself.
type plain struct{}

func (plain) Match(actual any) (bool, error) { return actual == nil, nil }

func (plain) FailureMessage(actual any) string { return fmt.Sprint(actual) }

func (plain) NegatedFailureMessage(_ any) string { return "expected an error" }

// Check expects that err is nil.
func (c *Cluster) Check(err error) { c.ExpectWithOffset(1, err).To(plain{}) }

// Fail ends the promise, or one attempt of Until.
func (c *Cluster) Fail(format string, args ...any) {
	c.ExpectWithOffset(1, fmt.Errorf(format, args...)).To(plain{})
}

// Patience is the maximum of every wait. It is a limit for what never happens, not a goal: on a
// machine that others slowed to a third, an operation of half a minute took more than four minutes.
const Patience = 8 * time.Minute

// Until retries look until all its expectations are met. A failed expectation inside of look, or of
// whatever look calls, fails that attempt only. The failure of the last attempt is reported. A slow
// look is retried at longer intervals.
func (c *Cluster) Until(ctx context.Context, what string, look func(context.Context)) {
	always, began := c.Gomega, time.Now()
	defer func() { c.Gomega = always }()
	// The context ends attempts that hang. It ends later than the wait, because its error would
	// hide a better one.
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), Patience+10*time.Second)
	defer stop()
	always.EventuallyWithOffset(1, func(g Gomega) {
		if time.Since(began) > 10*time.Second {
			Sleep(ctx, 750*time.Millisecond)
		}
		c.Gomega = g
		look(limited)
	}).WithContext(ctx).WithTimeout(Patience).WithPolling(250*time.Millisecond).Should(Succeed(), "waited for %s", what)
}

// Sleep waits for a duration, or until the context ends.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Throughout calls look repeatedly for a duration. Each call must meet all its expectations.
func (c *Cluster) Throughout(ctx context.Context, length time.Duration, look func()) {
	for end := time.Now().Add(length); time.Now().Before(end); Sleep(ctx, 100*time.Millisecond) {
		c.Check(ctx.Err())
		look()
	}
}

// AtOnce calls do for each index concurrently, each with its own copy of the cluster. A failure of
// one does not end the others.
func (c *Cluster) AtOnce(many int, do func(own *Cluster, i int)) { c.InTurns(many, many, do) }

// InTurns is AtOnce with a limit of concurrent calls.
func (c *Cluster) InTurns(limit, many int, do func(own *Cluster, i int)) {
	errs := make([]error, many)
	var all errgroup.Group
	all.SetLimit(limit)
	for i := range many {
		all.Go(func() error {
			errs[i] = c.Kept(func(own *Cluster) { do(own, i) })
			return nil
		})
	}
	_ = all.Wait() // errs has all errors
	c.Check(errors.Join(errs...))
}
