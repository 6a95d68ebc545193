package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are the assumptions about the cluster.
type options struct {
	// controller is the name of the service account of the operator.
	controller string
	// delay is how much later than it was written a line of a program can be logged.
	delay time.Duration
	// skew is how much the clocks of machines differ.
	skew time.Duration
	// frozen matches the Leases of containers that were frozen, or is nil. In the model, such a program can end late, with a
	// lower epoch than the next one.
	frozen *regexp.Regexp
	// partial is set if logs of containers may be missing.
	partial bool
}

func defaults() options {
	return options{controller: "stateful-operator-controller-manager", delay: 2 * time.Second}
}

// isFrozen reports whether containers with a Lease were frozen.
func (o *options) isFrozen(lease string) bool { return o.frozen != nil && o.frozen.MatchString(lease) }

// violation is a difference between a trace and the model.
type violation struct {
	place
	at    time.Time
	lease string
	rule  rule
	text  string
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s Lease %s: %s: %s", v.place, v.at.UTC().Format(time.RFC3339Nano), v.lease, v.rule, v.text)
}

// checker checks a trace.
type checker struct {
	options
	trace      *trace
	histories  map[string]*history
	violations []violation
	// checks is the number of times that a rule was checked.
	checks map[rule]int
	// steps is the number of steps by move.
	steps map[move]int
	// moves are the moves by which versions were written. Versions without a former one have none.
	moves map[*write]step
	// missing is the number of versions that the audit log does not have.
	missing int
	// renewed are the last renewals of Leases by their current holders.
	renewed map[string]*write
	runs    []*programRun
}

// step is a version of a Lease and the one before.
type step struct {
	move          move
	before, after *write
}

// check checks a trace.
func check(t *trace, o options) *checker {
	c := &checker{options: o, trace: t, histories: t.histories(), checks: map[rule]int{}, steps: map[move]int{}, moves: map[*write]step{}, renewed: map[string]*write{}}
	for _, h := range c.histories {
		c.checkHistory(h)
	}
	c.checkRuns()
	slices.SortStableFunc(c.violations, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.lease, b.lease), a.at.Compare(b.at))
	})
	return c
}

// require records that a rule was checked, and a violation unless ok.
func (c *checker) require(ok bool, r rule, w *write, format string, args ...any) {
	c.requireAt(ok, r, violation{place: w.place, at: w.received, lease: w.lease}, format, args...)
}

func (c *checker) requireAt(ok bool, r rule, at violation, format string, args ...any) {
	c.checks[r]++
	if ok {
		return
	}
	at.rule, at.text = r, fmt.Sprintf(format, args...)
	c.violations = append(c.violations, at)
}

// broken returns the rules that the trace violates.
func (c *checker) broken() map[rule]bool {
	found := map[rule]bool{}
	for _, v := range c.violations {
		found[v.rule] = true
	}
	return found
}

// unlogged returns pods that have renewed Leases, and whose logs are missing.
func (c *checker) unlogged() []string {
	found := map[string]bool{}
	for w, s := range c.moves {
		if s.move == renewal && w.by.pod == w.after.holder {
			found[namespaceOf(w.lease)+"/"+w.by.pod] = true
		}
	}
	for _, k := range c.trace.containers {
		delete(found, namespaceOf(k.lease)+"/"+k.pod)
	}
	return slices.Sorted(maps.Keys(found))
}

// unusable states why the trace cannot be checked. It is "" if it can.
func (c *checker) unusable() string {
	starts := 0
	for _, r := range c.runs {
		if r.version != nil {
			starts++
		}
	}
	switch {
	case c.trace.bodiless > 0:
		return fmt.Sprintf("%d writes of Leases were logged without their bodies; the audit policy must log them with level RequestResponse", c.trace.bodiless)
	case len(c.histories) == 0:
		return "no write of a Lease NAME.singleton or POD.member is in an audit log"
	case len(c.moves) == 0:
		return "no Lease has changed"
	case c.steps[renewal] == 0:
		return "no Lease was renewed"
	case len(c.runs) == 0:
		return "no log of a container has the start of a program by an agent"
	case starts == 0:
		return "no program was started with a Lease of the audit log"
	}
	if pods := c.unlogged(); len(pods) > 0 && !c.partial {
		return fmt.Sprintf("the logs of %d pods that have renewed Leases are missing: %s", len(pods), strings.Join(pods, " "))
	}
	return ""
}
