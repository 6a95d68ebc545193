package checkcommands

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// toy is an application in two pods that keeps every rule, except for its fault.
type toy struct {
	pods  [2]toyPod
	fault faultOf
	mute  bool // processes cannot be listed
}

type toyPod struct {
	role     string // "", secondary, primary
	sequence int
	left     bool // a process is left behind
	lingers  bool // a process is left behind for a second
	ended    bool // the container has ended
}

func (t *toy) count() int             { return len(t.pods) }
func (t *toy) name(member int) string { return fmt.Sprint("rss-toy-", member) }

func (t *toy) restarted(context.Context) (names []string) {
	for i := range t.pods {
		if t.pods[i].ended {
			names = append(names, t.name(i))
		}
	}
	return names
}

func (t *toy) processes(_ context.Context, member int) ([]string, bool) {
	lines := []string{"/idle"}
	if p := t.pods[member]; p.role != "" || p.left || p.lingers {
		lines = append(lines, "/toy serve")
	}
	return lines, !t.mute
}

func (t *toy) wait(context.Context) {
	for i := range t.pods {
		t.pods[i].lingers = false
	}
}

func exit(code int) *plugin.CommandResult {
	r := &plugin.CommandResult{Outcome: plugin.Failed, Code: code}
	if code == 0 {
		r.Outcome = plugin.Succeeded
	}
	return r
}

func prints(text string) *plugin.CommandResult {
	r := exit(0)
	r.Stdout = text
	return r
}

func unknown(why string) *plugin.CommandResult {
	return &plugin.CommandResult{Outcome: plugin.Unknown, Sent: true, Why: why, Command: plugin.Command{Timeout: 10 * time.Second}}
}

func (t *toy) run(_ context.Context, member int, command string, primaries []int) plugin.CommandResult {
	if t.fault != nil {
		if r := t.fault(call{t, &t.pods[member], member, command, primaries}); r != nil {
			return *r
		}
	}
	return *t.obey(member, command)
}

func (t *toy) obey(member int, command string) *plugin.CommandResult {
	p := &t.pods[member]
	switch command {
	case "status":
		return exit(map[string]int{"": 7, "secondary": 0, "primary": 8}[p.role])
	case "sequence":
		return prints(strconv.Itoa(p.sequence) + "\n")
	case "seed", "primary", "promote":
		if p.role != "primary" {
			p.sequence++
		}
		p.role = "primary"
	case "secondary", "demote":
		p.role, p.sequence = "secondary", max(p.sequence, t.pods[1-member].sequence)
	case "stop":
		p.role = ""
	}
	return exit(0)
}

func toySet(primaries int32, without ...string) *v1alpha1.ReplicatedStatefulSet {
	set := &v1alpha1.ReplicatedStatefulSet{}
	set.Spec.Replicas, set.Spec.Primaries = ptr.To[int32](2), ptr.To(primaries)
	set.Spec.Pod.Commands = map[string]v1alpha1.Command{}
	for _, name := range []string{"sequence", "status", "stop", "primary", "seed", "secondary", "promote", "demote", "leave"} {
		if !slices.Contains(without, name) {
			set.Spec.Pod.Commands[name] = v1alpha1.Command{}
		}
	}
	return set
}

// judged runs the story with the toy and returns the rules that it broke.
func judged(t *testing.T, app *toy, set *v1alpha1.ReplicatedStatefulSet) (j *judge, broken []int, report string) {
	t.Helper()
	var out bytes.Buffer
	j = newJudge(app, set, &out)
	j.try(t.Context())
	count := j.report()
	for id, v := range j.verdicts {
		if v.broken != "" {
			broken = append(broken, id)
		}
	}
	NewWithT(t).Expect(broken).To(HaveLen(count), "violated rules, and their reported number")
	return j, broken, out.String()
}

func TestAGoodApplicationIsFoundGood(t *testing.T) {
	for _, row := range []struct {
		sentence string
		set      *v1alpha1.ReplicatedStatefulSet
		skipped  []int
	}{
		{"with all commands", toySet(1), nil},
		{"with the four required commands, all members primary", toySet(2, "seed", "secondary", "promote", "demote"), []int{rulePromote, ruleDemote}},
		{"without promote, demote and leave", toySet(1, "promote", "demote", "leave"), []int{ruleDemote, ruleLeave}},
		{"with one member", toySet(1, "seed", "secondary", "promote", "demote"), []int{ruleJoin, rulePromote, ruleRejoin, ruleDemote, ruleLeave}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			g := NewWithT(t)
			j, broken, report := judged(t, &toy{}, row.set)
			g.Expect(broken).To(BeEmpty(), "%s", report)
			for id, v := range j.verdicts {
				want := slices.Contains(row.skipped, id)
				g.Expect(v.skipped != "").To(Equal(want), "the rule %q is reported as skipped:\n%s", rules[id].text, report)
				g.Expect(want || v.kept > 0).To(BeTrueBecause("the rule %q was not checked:\n%s", rules[id].text, report))
			}
		})
	}
}

// call is a call of a command of the toy.
type call struct {
	app       *toy
	pod       *toyPod
	member    int
	command   string
	primaries []int
}

// faultOf is called before the toy runs a command. A non-nil result replaces the toy's.
type faultOf func(call) *plugin.CommandResult

// does runs a fault on a command.
func does(command string, then faultOf) faultOf {
	return func(c call) *plugin.CommandResult {
		if c.command == command {
			return then(c)
		}
		return nil
	}
}

// always returns a fixed result for a command.
func always(command string, r *plugin.CommandResult) faultOf {
	return does(command, func(call) *plugin.CommandResult { return r })
}

// when returns a fixed result for a command if the condition is true.
func when(command string, is func(call) bool, r *plugin.CommandResult) faultOf {
	return does(command, func(c call) *plugin.CommandResult {
		if is(c) {
			return r
		}
		return nil
	})
}

// changes changes the toy before it runs a command.
func changes(command string, change func(call)) faultOf {
	return does(command, func(c call) *plugin.CommandResult { change(c); return nil })
}

// obeysSo changes the toy instead of running a command.
func obeysSo(command string, change func(call)) faultOf {
	return does(command, func(c call) *plugin.CommandResult { change(c); return exit(0) })
}

func stopped(c call) bool   { return c.pod.role == "" }
func runs(c call) bool      { return c.pod.role != "" }
func isPrimary(c call) bool { return c.pod.role == "primary" }

// holdsStream does the work of a command but does not return.
func holdsStream(command string, is func(call) bool) faultOf {
	return does(command, func(c call) *plugin.CommandResult {
		if !is(c) {
			return nil
		}
		c.app.obey(c.member, command)
		return hangs
	})
}

var hangs = unknown("it did not end within 10s")

// stopsLate returns from stop before the program ends.
func stopsLate() faultOf {
	stopping := false
	return func(c call) *plugin.CommandResult {
		switch {
		case c.command == "stop" && runs(c):
			stopping = true
			return exit(0)
		case c.command == "status" && stopping:
			stopping, c.pod.role = false, ""
			return exit(8)
		}
		return nil
	}
}

// rejectsLeft rejects the start of a member that has left.
func rejectsLeft() faultOf {
	left := false
	return func(c call) *plugin.CommandResult {
		left = left || c.command == "leave"
		if left && c.command == "secondary" {
			return exit(1)
		}
		return nil
	}
}

// broken are applications that break a rule.
var broken = []struct {
	sentence string
	fault    faultOf
	want     []int
}{
	{"status returns 0 for a stopped member", when("status", stopped, exit(0)), []int{ruleIdle}},
	{"status returns 1 when nothing runs", always("status", exit(1)), []int{ruleIdle, ruleCodes}},
	{"stop fails when there is nothing to stop", when("stop", stopped, exit(7)), []int{ruleStoppedStop, ruleCodes}},
	{"sequence prints no number", always("sequence", prints("x\n")), []int{ruleStoppedSequence}},
	{"sequence prints two lines", always("sequence", prints("1\n2\n")), []int{ruleStoppedSequence}},
	{"sequence prints a negative number", always("sequence", prints("-1")), []int{ruleStoppedSequence}},
	{"sequence prints more than 64 bits", always("sequence", prints("18446744073709551616")), []int{ruleStoppedSequence}},
	{"sequence prints random numbers", changes("sequence", func(c call) { c.pod.sequence += 7 }), []int{ruleStoppedSequence}},
	{"sequence fails while the program runs", when("sequence", runs, exit(1)), []int{ruleRunningSequence, ruleCodes}},
	{"sequence starts the program", changes("sequence", func(c call) {
		c.pod.role = map[string]string{"primary": "secondary"}[c.pod.role]
	}), []int{ruleRunningSequence}},
	{"seed returns before it is primary", obeysSo("seed", func(c call) { c.pod.role = "secondary" }), []int{ruleSeed}},
	{"seed is not installed", always("seed", exit(5)), []int{ruleSeed, ruleCodes}},
	{"a second seed fails", when("seed", isPrimary, exit(1)), []int{ruleAgain, ruleCodes}},
	{"a second seed wipes the copy", changes("seed", func(c call) {
		if isPrimary(c) {
			c.pod.sequence = 0
		}
	}), []int{ruleAgain}},
	{"secondary cannot join", always("secondary", exit(1)), []int{ruleJoin, ruleCodes}},
	{"secondary becomes primary", obeysSo("secondary", func(c call) { c.pod.role = "primary" }), []int{ruleJoin}},
	{"secondary fails without exactly one primary in its arguments", when("secondary", func(c call) bool { return len(c.primaries) != 1 }, exit(2)), nil},
	{"promote waits for a primary", when("promote", func(c call) bool { return len(c.primaries) == 0 }, exit(1)), []int{rulePromote, ruleCodes}},
	{"promote loses data", obeysSo("promote", func(c call) { *c.pod = toyPod{role: "primary"} }), []int{rulePromote, ruleLasting}},
	{"a former primary does not join again", when("secondary", func(c call) bool { return c.member == 0 }, exit(1)), []int{ruleRejoin, ruleCodes}},
	{"demote does nothing", always("demote", exit(0)), []int{ruleDemote}},
	{"leave fails in a stopped member", when("leave", stopped, exit(7)), []int{ruleLeave, ruleCodes}},
	{"a member that has left does not join again", rejectsLeft(), []int{ruleLeave, ruleCodes}},
	{"sequence counts from the start of the program", obeysSo("stop", func(c call) { *c.pod = toyPod{} }), []int{ruleLasting}},
	{"stop returns before the program ends", stopsLate(), []int{ruleStop}},
	{"stop leaves a process behind", changes("stop", func(c call) { c.pod.left = runs(c) }), []int{ruleProcesses}},
	{"a wrapper of stop exits shortly after it", changes("stop", func(c call) { c.pod.lingers = runs(c) }), nil},
	{"seed hangs", always("seed", hangs), []int{ruleEnds}},
	{"seed takes effect, and its child keeps the stream open", holdsStream("seed", stopped), []int{ruleStream}},
	{"stop takes effect, and its child keeps the stream open", holdsStream("stop", runs), []int{ruleStream}},
	{"status hangs", always("status", hangs), []int{ruleEnds}},
	{"the program of a command is missing", always("stop", unknown("the stream ended before the node reported the exit code: exec: \"/stop\": no such file or directory")), []int{ruleProgram}},
	{"a script calls a missing program", always("stop", exit(127)), []int{ruleStoppedStop, ruleProgram, ruleCodes}},
	{"promote hangs", always("promote", hangs), []int{ruleEnds}},
	{"the response of status is lost", always("status", unknown("the stream ended before the node reported the exit code: EOF")), []int{ruleEnds}},
	{"seed prints too much", always("seed", prints(strings.Repeat("9", plugin.MaxOutput))), []int{ruleSeed, ruleOutput}},
	{"sequence prints endlessly", always("sequence", unknown("the stream ended before the node reported the exit code: it printed more than 16 MiB")), []int{ruleOutput}},
	{"an exit code without a meaning", always("promote", exit(42)), []int{rulePromote, ruleCodes}},
	{"process 1 exits with the program", changes("stop", func(c call) { c.pod.ended = runs(c) }), []int{ruleProcessOne}},
}

func TestWhatIsBrokenIsFound(t *testing.T) {
	for _, row := range broken {
		t.Run(row.sentence, func(t *testing.T) {
			g := NewWithT(t)
			_, broken, report := judged(t, &toy{fault: row.fault}, toySet(1))
			g.Expect(broken).To(Equal(row.want), "%s", report)
			for _, id := range row.want {
				g.Expect(report).To(And(ContainSubstring("FAILED   "+rules[id].text), ContainSubstring("remedy: "+rules[id].remedy)))
			}
		})
	}
}

func TestAnImageWithoutAShellIsNoFault(t *testing.T) {
	_, broken, report := judged(t, &toy{mute: true}, toySet(1))
	NewWithT(t).Expect(broken).To(BeEmpty(), "%s", report)
	NewWithT(t).Expect(report).To(ContainSubstring("skipped  " + rules[ruleProcesses].text))
}
