package checkcommands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// members are the pods that run the commands.
type members interface {
	count() int
	name(member int) string
	// run runs a command with the names of the primaries.
	run(ctx context.Context, member int, command string, primaries []int) plugin.CommandResult
	// processes lists the processes of a member, or returns false if they cannot be listed.
	processes(ctx context.Context, member int) ([]string, bool)
	// wait waits a second.
	wait(ctx context.Context)
	// restarted returns the names of members whose container has ended.
	restarted(ctx context.Context) []string
}

// verdict is the result for a rule.
type verdict struct {
	kept    int    // how often the rule was kept
	broken  string // the first violation
	skipped string // why the rule could not be tried
}

// judge tries the commands and records the results.
type judge struct {
	members
	commands  map[string]v1alpha1.Command
	primaries []int // current primaries, according to the commands' exit codes
	many      bool  // more than one primary is allowed
	verdicts  [countOfRules]verdict
	sequences []uint64 // max of each member
	before    []string // processes of the first member while it was idle
	over      bool     // further results would be meaningless
	rejected  error    // the cluster does not run commands
	out       io.Writer
}

func newJudge(pods members, set *v1alpha1.ReplicatedStatefulSet, out io.Writer) *judge {
	replicas := ptr.Deref(set.Spec.Replicas, 3)
	return &judge{members: pods, commands: set.Spec.Pod.Commands, out: out,
		many: ptr.Deref(set.Spec.Primaries, replicas) > 1, sequences: make([]uint64, pods.count())}
}

// try runs the story of a small set. It stops after a failed command, because later commands would fail
// as a consequence, and if the user interrupts it.
func (j *judge) try(ctx context.Context) {
	for _, part := range story {
		if j.restart(ctx) {
			return
		}
		fmt.Fprintf(j.out, "\n%s\n", part.title)
		part.run(j, ctx)
		if j.rejected != nil || ctx.Err() != nil {
			return
		}
		if j.over {
			fmt.Fprintln(j.out, "the remaining steps are skipped")
			j.restart(ctx)
			return
		}
	}
	if !j.restart(ctx) {
		j.keep(ruleProcessOne)
	}
}

func (j *judge) restart(ctx context.Context) bool {
	names := j.restarted(ctx)
	if len(names) > 0 {
		j.fault(ruleProcessOne, "the container of %s exited", strings.Join(names, ", "))
	}
	return len(names) > 0
}

func (j *judge) keep(id int) { j.verdicts[id].kept++ }

// fault records the first violation of a rule.
func (j *judge) fault(id int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(j.out, "  !", text)
	if j.verdicts[id].broken == "" {
		j.verdicts[id].broken = text
	}
}

func (j *judge) skip(id int, why string) { j.verdicts[id].skipped = why }

// rule records that a rule is kept or broken.
func (j *judge) rule(id int, ok bool, format string, args ...any) {
	switch {
	case j.over:
	case ok:
		j.keep(id)
	default:
		j.fault(id, format, args...)
	}
}

// must is a rule whose violation ends the story.
func (j *judge) must(id int, ok bool, format string, args ...any) {
	j.rule(id, ok, format, args...)
	j.over = j.over || !ok
}

// has reports whether the user specified the command.
func (j *judge) has(command string) bool {
	_, ok := j.commands[command]
	return ok
}

// orPrimary returns the command, or the command that the operator runs if it is missing.
func (j *judge) orPrimary(command string) string {
	if j.has(command) {
		return command
	}
	return v1alpha1.CommandPrimary
}

// call runs a command and checks the rules for all commands. The story ends if the outcome is unknown.
func (j *judge) call(ctx context.Context, member int, command string) (r plugin.CommandResult) {
	if j.over {
		return r
	}
	r = j.run(ctx, member, command, j.primaries)
	if r.Refused {
		j.rejected = fmt.Errorf("run %s in %s: %s", command, j.name(member), r.Why)
	}
	if j.rejected != nil || ctx.Err() != nil {
		j.over = true
		return r
	}
	fmt.Fprintf(j.out, "  %-9s in %s%s: %s\n", command, j.name(member), j.arguments(), describe(r))
	j.rule(ruleOutput, len(r.Stdout) < plugin.MaxOutput && len(r.Stderr) < plugin.MaxOutput && !strings.Contains(r.Why, "printed more than"),
		"%s printed at least %d bytes", command, plugin.MaxOutput)
	if r.Outcome == plugin.Unknown {
		j.unseen(ctx, member, command, r)
		j.over = true
		return r
	}
	j.keep(ruleEnds)
	j.keep(ruleStream)
	j.rule(ruleProgram, r.Code != 126 && r.Code != 127, "%s returned %d (%s)%s", command, r.Code, meaning(r.Code), errorOutput(r))
	codes := []int{0}
	if command == v1alpha1.CommandStatus {
		codes = []int{0, 7, 8, 190, 191}
	}
	j.rule(ruleCodes, slices.Contains(codes, r.Code), "%s returned %d (%s)%s", command, r.Code, meaning(r.Code), errorOutput(r))
	return r
}

// startFaults are container runtimes' messages for a program that cannot be started. They come without
// an exit code.
var startFaults = []string{"unable to start container process", "executable file not found", "no such file or directory", "permission denied"}

// unseen records the reason of an unknown outcome. The command could not be started, did not end, or
// has done its work but a process keeps its output stream open.
func (j *judge) unseen(ctx context.Context, member int, command string, r plugin.CommandResult) {
	asks := command == v1alpha1.CommandStatus || command == v1alpha1.CommandSequence
	switch {
	case strings.Contains(r.Why, "printed more than"): // already recorded
	case slices.ContainsFunc(startFaults, func(fault string) bool { return strings.Contains(r.Why, fault) }):
		j.fault(ruleProgram, "%s in %s: %s", command, j.name(member), r.Why)
	case asks || !strings.Contains(r.Why, "did not end within"):
		j.fault(ruleEnds, "cannot determine the result of %s in %s: %s%s", command, j.name(member), r.Why, errorOutput(r))
	default:
		status := j.run(ctx, member, v1alpha1.CommandStatus, j.primaries)
		fmt.Fprintf(j.out, "  %-9s in %s: %s\n", v1alpha1.CommandStatus, j.name(member), describe(status))
		if status.Outcome != plugin.Unknown && slices.Contains(j.doneCodes(command), status.Code) {
			j.fault(ruleStream, "%s in %s did not end within %s, but took effect: status returns %d", command, j.name(member), r.Timeout, status.Code)
			return
		}
		j.fault(ruleEnds, "%s in %s did not end within %s%s", command, j.name(member), r.Timeout, errorOutput(r))
	}
}

// doneCodes returns the exit codes of status that are expected after a command.
func (j *judge) doneCodes(command string) []int {
	switch command {
	case v1alpha1.CommandStop:
		return []int{7}
	case v1alpha1.CommandDemote:
		return []int{0, 7, 190}
	case v1alpha1.CommandSecondary:
		return []int{0, 190}
	case v1alpha1.CommandLeave:
		return []int{0, 7, 8, 190, 191}
	}
	return j.primaryCodes()
}

// arguments returns the primaries that a command gets as arguments, as text.
func (j *judge) arguments() string {
	if len(j.primaries) == 0 {
		return ""
	}
	var names []string
	for _, p := range j.primaries {
		names = append(names, j.name(p))
	}
	return ", with primaries " + strings.Join(names, ", ")
}

func describe(r plugin.CommandResult) string {
	took := r.Ended.Sub(r.Began).Round(time.Millisecond)
	if r.Outcome == plugin.Unknown {
		return fmt.Sprintf("unknown after %s: %s", took, r.Why)
	}
	text := fmt.Sprintf("%d, %s, after %s", r.Code, meaning(r.Code), took)
	if r.Code == 0 {
		text = fmt.Sprintf("0 after %s", took)
	}
	if out := strings.TrimSpace(r.Stdout); out != "" {
		text += ", printed " + strconv.QuoteToASCII(out[:min(len(out), 60)])
	}
	return text
}

// errorOutput returns the end of a command's standard error.
func errorOutput(r plugin.CommandResult) string {
	text := strings.TrimSpace(r.Stderr)
	if text == "" {
		return ""
	}
	return "; stderr: " + strconv.QuoteToASCII(text[max(0, len(text)-200):])
}

// report prints the verdict of each rule and returns the number of broken rules.
func (j *judge) report() (broken int) {
	fmt.Fprintln(j.out)
	for id, v := range j.verdicts {
		switch {
		case v.broken != "":
			broken++
			fmt.Fprintf(j.out, "FAILED   %s\n         cause:  %s\n         remedy: %s\n", rules[id].text, v.broken, rules[id].remedy)
		case v.skipped != "":
			fmt.Fprintf(j.out, "skipped  %s: %s\n", rules[id].text, v.skipped)
		case v.kept > 0:
			fmt.Fprintf(j.out, "ok       %s\n", rules[id].text)
		default:
			fmt.Fprintf(j.out, "skipped  %s: not reached\n", rules[id].text)
		}
	}
	if broken > 0 {
		fmt.Fprintf(j.out, "\n%d of %d rules are violated; skipped rules may be violated as well\n", broken, countOfRules)
	}
	return broken
}
