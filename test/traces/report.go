package main

import (
	"fmt"
	"io"
)

// report prints the violations, and the number of checks of each rule. It returns the exit code.
func (c *checker) report(out io.Writer) int {
	for _, v := range c.violations {
		fmt.Fprintln(out, v)
	}
	fmt.Fprintf(out, "%d Leases, %d starts, %d containers\n", len(c.histories), len(c.runs), len(c.trace.containers))
	for _, m := range []move{creation, assignment, renewal, naming, handover, takeover, release, upkeep} {
		fmt.Fprintf(out, "  %6d %s\n", c.steps[m], m)
	}
	if c.missing > 0 {
		fmt.Fprintf(out, "  %6d versions are not in the audit log, and have not changed the holder\n", c.missing)
	}
	fmt.Fprintln(out, "checks:")
	for _, r := range rules {
		fmt.Fprintf(out, "  %6d %s: %s\n", c.checks[r.name], r.name, r.meaning)
	}
	if why := c.unusable(); why != "" {
		fmt.Fprintf(out, "UNUSABLE: %s\n", why)
		return exitUnusable
	}
	if len(c.violations) > 0 {
		fmt.Fprintf(out, "FAILED: %d violations\n", len(c.violations))
		return exitRejected
	}
	fmt.Fprintln(out, "PASSED")
	return exitPassed
}
