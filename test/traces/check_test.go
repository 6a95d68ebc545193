package main

import (
	"strings"
	"testing"
)

// TestUnusable tests that a trace in which there is nothing to check does not pass.
func TestUnusable(t *testing.T) {
	partial := defaults()
	partial.partial = true
	for _, row := range []struct {
		name    string
		options options
		change  func(t *trace)
		want    string
	}{
		{"a good trace", defaults(), func(*trace) {}, ""},
		{"no Lease", defaults(), func(t *trace) { t.writes = nil }, "no write of a Lease"},
		{"one version", defaults(), func(t *trace) { t.writes = t.writes[:1] }, "no Lease has changed"},
		{"no renewal", defaults(), func(t *trace) { t.writes = t.writes[:2] }, "no Lease was renewed"},
		{"no log of a container", defaults(), func(t *trace) { t.containers = nil }, "no log of a container"},
		{"no start", defaults(), func(t *trace) { t.containers[0].marks = nil }, "no log of a container"},
		{"no start with one of these Leases", defaults(), func(t *trace) { t.containers[0].lease = "app/other.singleton" }, "no program was started"},
		{"bodies are missing", defaults(), func(t *trace) { t.bodiless = 3 }, "3 writes of Leases"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, _ := holder(t)
			read, err := load([]string{r.save()})
			if err != nil {
				t.Fatal(err)
			}
			row.change(read)
			got := check(read, row.options).unusable()
			if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
				t.Errorf("it is unusable because %q, want %q", got, row.want)
			}
		})
	}
	r, p := holder(t)
	r.ends(p)
	next := r.newPod("")
	r.assign(mailer, next)
	r.renew(mailer, next)
	if got := r.checked(defaults()).unusable(); !strings.Contains(got, "app/"+next.identity()) {
		t.Errorf("a log is missing, and it is unusable because %q", got)
	}
	if got := r.checked(partial).unusable(); got != "" {
		t.Errorf("logs may be missing, and it is unusable because %q", got)
	}
}

// TestViolations tests that a violation names the file, the line, the time, the Lease and the rule.
func TestViolations(t *testing.T) {
	r, p := holder(t)
	r.handOver(mailer, p, "b_1")
	c := r.expect(defaults(), handoverNamed)
	text := c.violations[0].String()
	for _, part := range []string{"audit.log:4: 2026-01-02T03:04:0", " Lease app/mailer.singleton: handoverNamed: ", p.identity()} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	if c.checks[handoverNamed] != 1 || c.steps[handover] != 1 {
		t.Errorf("the rule was checked %d times, for %d handovers", c.checks[handoverNamed], c.steps[handover])
	}
}

// TestOptions tests that the skew of clocks and the account of the operator are considered.
func TestOptions(t *testing.T) {
	r, _ := holder(t)
	r.assign(mailer, r.newPod(""))
	for o, want := range map[options][]rule{
		{controller: "stateful-operator-controller-manager"}:                                  {watchesWholeTime},
		{controller: "stateful-operator-controller-manager", skew: 20 * 1e9}:                  nil,
		{controller: "another", skew: 20 * 1e9}:                                               {writtenByOperator},
		{controller: "stateful-operator-controller-manager", skew: 20 * 1e9, delay: 20 * 1e9}: nil,
	} {
		r.expect(o, want...)
	}
}
