package main

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
	"github.com/stateful-operator/stateful-operator/controllers"
)

// members are the pods in which commands are tried.
type members interface {
	count() int
	name(member int) string
	// run runs a command, with the names of the primaries.
	run(ctx context.Context, member int, command string, primaries []int) controllers.Result
	// processes lists what runs in a member; false if nobody can tell.
	processes(ctx context.Context, member int) ([]string, bool)
	// wait lets a second pass.
	wait(ctx context.Context)
	// restarted names members whose container has ended.
	restarted(ctx context.Context) []string
}

// verdict is what was seen of a rule.
type verdict struct {
	kept   int    // how often it was seen kept
	broken string // what was seen when it was first broken
	untold string // why it could not be tried
}

// judge tries the commands, and keeps what it saw.
type judge struct {
	members
	commands  map[string]v1alpha1.Command
	primaries []int // those that are primary now, as far as commands said so
	many      bool  // more than one may be
	verdicts  [countOfRules]verdict
	sequences []uint64 // the highest of each member
	before    []string // what ran in the first member while it was idle
	over      bool     // what follows would say nothing
	out       io.Writer
}

func newJudge(pods members, set *v1alpha1.ReplicatedStatefulSet, out io.Writer) *judge {
	replicas := ptr.Deref(set.Spec.Replicas, 3)
	return &judge{members: pods, commands: set.Spec.Pod.Commands, out: out,
		many: ptr.Deref(set.Spec.Primaries, replicas) > 1, sequences: make([]uint64, pods.count())}
}

// try goes through the life of a small set. It ends where going on would say
// nothing: a command that failed makes others fail.
func (j *judge) try(ctx context.Context) {
	for _, part := range story {
		if j.restart(ctx) || ctx.Err() != nil {
			return
		}
		fmt.Fprintf(j.out, "\n%s\n", part.title)
		part.tell(j, ctx)
		if j.over {
			fmt.Fprintln(j.out, "the rest is not tried")
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
		j.fault(ruleProcessOne, "the container of %s ended", strings.Join(names, ", "))
	}
	return len(names) > 0
}

func (j *judge) keep(id int) { j.verdicts[id].kept++ }

// fault notes the first time that a rule is broken.
func (j *judge) fault(id int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(j.out, "  !", text)
	if j.verdicts[id].broken == "" {
		j.verdicts[id].broken = text
	}
}

func (j *judge) untold(id int, why string) { j.verdicts[id].untold = why }

// rule is kept or broken.
func (j *judge) rule(id int, ok bool, format string, args ...any) {
	switch {
	case j.over:
	case ok:
		j.keep(id)
	default:
		j.fault(id, format, args...)
	}
}

// must is a rule without which nothing can follow.
func (j *judge) must(id int, ok bool, format string, args ...any) {
	j.rule(id, ok, format, args...)
	j.over = j.over || !ok
}

// has reports whether the user gave that command.
func (j *judge) has(command string) bool {
	_, ok := j.commands[command]
	return ok
}

// orPrimary is a command, or what the operator runs where it is not there.
func (j *judge) orPrimary(command string) string {
	if j.has(command) {
		return command
	}
	return v1alpha1.CommandPrimary
}

// call runs a command, and judges what holds for all of them. Nothing can follow
// when nobody knows how the command ended.
func (j *judge) call(ctx context.Context, member int, command string) (r controllers.Result) {
	if j.over {
		return r
	}
	r = j.run(ctx, member, command, j.primaries)
	fmt.Fprintf(j.out, "  %-9s in %s%s: %s\n", command, j.name(member), j.told(), describe(r))
	j.rule(ruleOutput, len(r.Stdout) < controllers.MostOutput && len(r.Stderr) < controllers.MostOutput && !strings.Contains(r.Why, "printed more than"),
		"%s printed %d bytes or more", command, controllers.MostOutput)
	if r.Outcome == controllers.Unknown {
		j.unseen(ctx, member, command, r)
		j.over = true
		return r
	}
	j.keep(ruleEnds)
	j.keep(ruleStream)
	j.rule(ruleProgram, r.Code != 126 && r.Code != 127, "%s ended with %d (%s)%s", command, r.Code, meaning(r.Code), said(r))
	codes := []int{0}
	if command == v1alpha1.CommandStatus {
		codes = []int{0, 7, 8, 190, 191}
	}
	j.rule(ruleCodes, slices.Contains(codes, r.Code), "%s ended with %d (%s)%s", command, r.Code, meaning(r.Code), said(r))
	return r
}

// startFaults are what runtimes say of a program that cannot be started. It has
// no exit code.
var startFaults = []string{"unable to start container process", "executable file not found", "no such file or directory", "permission denied"}

// unseen tells why nobody knows how a command ended: one that cannot be started,
// one that hangs, and one that has done its work and lets something hold the
// stream.
func (j *judge) unseen(ctx context.Context, member int, command string, r controllers.Result) {
	asks := command == v1alpha1.CommandStatus || command == v1alpha1.CommandSequence
	switch {
	case strings.Contains(r.Why, "printed more than"): // said already
	case slices.ContainsFunc(startFaults, func(fault string) bool { return strings.Contains(r.Why, fault) }):
		j.fault(ruleProgram, "%s in %s: %s", command, j.name(member), r.Why)
	case asks || !strings.Contains(r.Why, "did not end within"):
		j.fault(ruleEnds, "nobody knows how %s in %s ended: %s%s", command, j.name(member), r.Why, said(r))
	default:
		status := j.run(ctx, member, v1alpha1.CommandStatus, j.primaries)
		fmt.Fprintf(j.out, "  %-9s in %s: %s\n", v1alpha1.CommandStatus, j.name(member), describe(status))
		if status.Outcome != controllers.Unknown && slices.Contains(j.doneCodes(command), status.Code) {
			j.fault(ruleStream, "%s in %s did not end within %s, and yet did its work: status ends with %d", command, j.name(member), r.Timeout, status.Code)
			return
		}
		j.fault(ruleEnds, "%s in %s did not end within %s%s", command, j.name(member), r.Timeout, said(r))
	}
}

// doneCodes are what status says after a command has done its work.
func (j *judge) doneCodes(command string) []int {
	switch command {
	case v1alpha1.CommandStop:
		return []int{7}
	case v1alpha1.CommandDemote:
		return []int{0, 7, 190}
	case v1alpha1.CommandSecondary:
		return []int{0, 190}
	}
	return j.primaryCodes()
}

// told is whom a command is told of.
func (j *judge) told() string {
	if len(j.primaries) == 0 {
		return ""
	}
	var names []string
	for _, p := range j.primaries {
		names = append(names, j.name(p))
	}
	return ", told of " + strings.Join(names, ", ")
}

func describe(r controllers.Result) string {
	took := r.Ended.Sub(r.Began).Round(time.Millisecond)
	if r.Outcome == controllers.Unknown {
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

// said is what a command wrote to standard error, for people.
func said(r controllers.Result) string {
	text := strings.TrimSpace(r.Stderr)
	if text == "" {
		return ""
	}
	return "; it wrote " + strconv.QuoteToASCII(text[max(0, len(text)-200):])
}

// report says what became of each rule, and how many are broken.
func (j *judge) report() (broken int) {
	fmt.Fprintln(j.out)
	for id, v := range j.verdicts {
		switch {
		case v.broken != "":
			broken++
			fmt.Fprintf(j.out, "FAILED   %s\n         seen:   %s\n         remedy: %s\n", rules[id].says, v.broken, rules[id].remedy)
		case v.untold != "":
			fmt.Fprintf(j.out, "not told %s: %s\n", rules[id].says, v.untold)
		case v.kept > 0:
			fmt.Fprintf(j.out, "ok       %s\n", rules[id].says)
		default:
			fmt.Fprintf(j.out, "-        %s: not tried\n", rules[id].says)
		}
	}
	if broken > 0 {
		fmt.Fprintf(j.out, "\n%d of %d rules are broken; what was not tried may be too\n", broken, countOfRules)
	}
	return broken
}
