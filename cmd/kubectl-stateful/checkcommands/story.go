package checkcommands

import (
	"context"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// story is the lifecycle of a set. A violation of a required rule ends it.
var story = []struct {
	title string
	run   func(*judge, context.Context)
}{
	{"all members are stopped", (*judge).idle},
	{"the first member is started", (*judge).first},
	{"the first member is started again while it runs", (*judge).again},
	{"a second member joins", (*judge).second},
	{"the first member is stopped", (*judge).handOff},
	{"the second member takes over", (*judge).takeOver},
	{"the first member joins again", (*judge).rejoin},
	{"the second member returns its role", (*judge).giveBack},
	{"a member leaves, and joins again", (*judge).leave},
	{"all members are stopped again", (*judge).end},
	{"the first member is started again", (*judge).once},
}

// idle tries the commands for stopped members.
func (j *judge) idle(ctx context.Context) {
	if lines, ok := j.processes(ctx, 0); ok {
		j.before = lines
	}
	for i := range j.count() {
		j.idles(ctx, ruleIdle, i)
	}
	stop := j.call(ctx, 0, v1alpha1.CommandStop)
	j.must(ruleStoppedStop, stop.Code == 0, "stop of a stopped member returned %d (%s)%s", stop.Code, meaning(stop.Code), errorOutput(stop))
	j.status(ctx, ruleIdle, 0, 7)
	for i := range j.count() {
		one, two := j.sequence(ctx, ruleStoppedSequence, i), j.sequence(ctx, ruleStoppedSequence, i)
		j.rule(ruleStoppedSequence, one == two, "sequence of %s printed %d, and then %d", j.name(i), one, two)
	}
}

// primary makes a member primary, with the command or its replacement.
func (j *judge) primary(ctx context.Context, id, member int, command string) {
	j.do(ctx, id, member, j.orPrimary(command))
	j.status(ctx, id, member, j.primaryCodes()...)
}

// first seeds the first member.
func (j *judge) first(ctx context.Context) {
	j.primary(ctx, ruleSeed, 0, v1alpha1.CommandSeed)
	j.primaries = []int{0}
	j.sequence(ctx, ruleRunningSequence, 0)
	j.status(ctx, ruleRunningSequence, 0, j.primaryCodes()...)
}

// again repeats the start of a running member. The operator may do this if the outcome of a start is
// unknown.
func (j *judge) again(ctx context.Context) {
	j.primary(ctx, ruleAgain, 0, v1alpha1.CommandSeed)
	j.lasts(ctx, 0, ruleAgain)
}

// second starts another member as the operator does: as a primary if more than one is allowed,
// otherwise as a secondary.
func (j *judge) second(ctx context.Context) {
	staysAlone := !j.many && !j.has(v1alpha1.CommandSecondary)
	if j.count() < 2 || staysAlone {
		for _, id := range []int{ruleJoin, rulePromote, ruleRejoin, ruleDemote} {
			j.skip(id, "there is only one member, or only one primary and no command secondary")
		}
		return
	}
	j.join(ctx, ruleJoin, 1)
	j.join(ctx, ruleAgain, 1)
	j.sequence(ctx, ruleRunningSequence, 1)
}

// alone reports whether no other member was started.
func (j *judge) alone() bool { return j.verdicts[ruleJoin].skipped != "" }

// join starts a member while others run.
func (j *judge) join(ctx context.Context, id, member int) {
	if !j.many {
		j.do(ctx, id, member, v1alpha1.CommandSecondary)
		j.status(ctx, id, member, 0)
		return
	}
	j.primary(ctx, id, member, v1alpha1.CommandPrimary)
	if !slices.Contains(j.primaries, member) {
		j.primaries = append(j.primaries, member)
	}
}

// handOff stops the first member, as before a promotion.
func (j *judge) handOff(ctx context.Context) {
	j.stopped(ctx, 0)
	j.lasts(ctx, 0, ruleLasting)
}

// takeOver makes the second member primary.
func (j *judge) takeOver(ctx context.Context) {
	switch {
	case j.alone():
	case j.many:
		j.skip(rulePromote, "all members are primaries")
		j.status(ctx, ruleJoin, 1, j.primaryCodes()...)
	default:
		j.primary(ctx, rulePromote, 1, v1alpha1.CommandPromote)
		j.primaries = []int{1}
		j.lasts(ctx, 1, rulePromote)
	}
}

// rejoin starts the former primary with the new one as its primary.
func (j *judge) rejoin(ctx context.Context) {
	if !j.alone() {
		j.join(ctx, ruleRejoin, 0)
	}
}

// giveBack demotes the second member and promotes the first.
func (j *judge) giveBack(ctx context.Context) {
	if !j.has(v1alpha1.CommandDemote) || j.many || j.alone() {
		j.skip(ruleDemote, "there is no command demote, or it is not used: the operator runs stop, and then secondary")
		return
	}
	j.do(ctx, ruleDemote, 1, v1alpha1.CommandDemote)
	j.status(ctx, ruleDemote, 1, 0, 7)
	j.primaries = nil
	j.primary(ctx, rulePromote, 0, v1alpha1.CommandPromote)
	j.primaries = []int{0}
	j.join(ctx, ruleRejoin, 1)
}

// leave makes the application forget a member that runs, and again when it is stopped. The member then
// joins again, as after a scale-up.
func (j *judge) leave(ctx context.Context) {
	if !j.has(v1alpha1.CommandLeave) || j.alone() {
		j.skip(ruleLeave, "there is no command leave, or only one member")
		return
	}
	member := 1
	if slices.Equal(j.primaries, []int{1}) {
		member = 0
	}
	j.do(ctx, ruleLeave, member, v1alpha1.CommandLeave)
	j.status(ctx, ruleLeave, member, j.doneCodes(v1alpha1.CommandLeave)...)
	j.stopped(ctx, member)
	j.do(ctx, ruleLeave, member, v1alpha1.CommandLeave)
	j.join(ctx, ruleLeave, member)
}

// end stops all members, secondaries before primaries.
func (j *judge) end(ctx context.Context) {
	for i := range j.count() {
		if !slices.Contains(j.primaries, i) {
			j.stopped(ctx, i)
		}
	}
	for _, i := range slices.Backward(slices.Clone(j.primaries)) {
		j.stopped(ctx, i)
	}
	switch {
	case j.over:
	case j.before == nil:
		j.skip(ruleProcesses, "the image has no sh and tr to list processes; use kubectl debug")
	default:
		left := j.left(ctx)
		j.must(ruleProcesses, len(left) == 0, "after stop, processes still run in %s: %s", j.name(0), strings.Join(left, " | "))
	}
}

// looks is the max number of checks for leftover processes. A wrapper such as busybox's timeout may end
// up to a second after its command.
const looks = 4

// left returns the processes of the first member that did not run before the first start.
func (j *judge) left(ctx context.Context) (left []string) {
	for range looks {
		now, _ := j.processes(ctx, 0)
		if left = without(now, j.before); len(left) == 0 {
			break
		}
		j.wait(ctx)
	}
	return left
}

// once starts the first member again and verifies that its data is still there.
func (j *judge) once(ctx context.Context) {
	j.lasts(ctx, 0, ruleLasting)
	j.primary(ctx, ruleSeed, 0, v1alpha1.CommandSeed)
	j.primaries = []int{0}
	j.lasts(ctx, 0, ruleLasting)
	j.stopped(ctx, 0)
}

// primaryCodes returns the exit codes of status that mean primary. Without a command secondary, every
// running member is primary.
func (j *judge) primaryCodes() []int {
	if j.has(v1alpha1.CommandSecondary) {
		return []int{8, 191}
	}
	return []int{8, 191, 0, 190}
}

// do runs a command that changes something and expects exit code 0.
func (j *judge) do(ctx context.Context, id, member int, command string) {
	r := j.call(ctx, member, command)
	j.must(id, r.Code == 0, "%s in %s returned %d (%s)%s", command, j.name(member), r.Code, meaning(r.Code), errorOutput(r))
}

// status expects one of the exit codes.
func (j *judge) status(ctx context.Context, id, member int, codes ...int) {
	r := j.call(ctx, member, v1alpha1.CommandStatus)
	j.must(id, slices.Contains(codes, r.Code), "status of %s returned %d (%s), want %s%s",
		j.name(member), r.Code, meaning(r.Code), list(codes), errorOutput(r))
}

// stopped stops a member and expects that it is idle.
func (j *judge) stopped(ctx context.Context, member int) {
	j.do(ctx, ruleStop, member, v1alpha1.CommandStop)
	j.primaries = slices.DeleteFunc(j.primaries, func(p int) bool { return p == member })
	j.idles(ctx, ruleStop, member)
}

// idles runs status twice, to verify that status changes nothing.
func (j *judge) idles(ctx context.Context, id, member int) {
	j.status(ctx, id, member, 7)
	j.status(ctx, id, member, 7)
}

// sequence expects a number.
func (j *judge) sequence(ctx context.Context, id, member int) uint64 {
	r := j.call(ctx, member, v1alpha1.CommandSequence)
	n, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	j.must(id, r.Outcome == plugin.Succeeded && err == nil, "sequence of %s returned %d and printed %s%s",
		j.name(member), r.Code, strconv.QuoteToASCII(r.Stdout[:min(len(r.Stdout), 80)]), errorOutput(r))
	j.sequences[member] = max(j.sequences[member], n)
	return n
}

// lasts expects a sequence not lower than before. The story continues if it is lower.
func (j *judge) lasts(ctx context.Context, member, id int) {
	before := j.sequences[member]
	n := j.sequence(ctx, id, member)
	j.rule(id, n >= before, "sequence of %s was %d, and is now %d", j.name(member), before, n)
	j.sequences[member] = n // report a decrease only once
}

func list(codes []int) string {
	var texts []string
	for _, code := range codes {
		texts = append(texts, strconv.Itoa(code))
	}
	return strings.Join(texts, " or ")
}

// without returns the lines that are not in the other list.
func without(lines, others []string) (left []string) {
	others = slices.Clone(others)
	for _, line := range lines {
		if i := slices.Index(others, line); i >= 0 {
			others = slices.Delete(others, i, i+1)
		} else {
			left = append(left, line)
		}
	}
	return left
}
