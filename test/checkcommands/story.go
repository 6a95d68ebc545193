package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers"
)

// part is one part of the life of a set; it is false when nothing can follow.
type part struct {
	title string
	tell  func(*judge, context.Context) bool
}

var story = []part{
	{"all members are stopped", (*judge).idle},
	{"the first member is started", (*judge).first},
	{"it is started again", (*judge).again},
	{"a second member joins", (*judge).second},
	{"the first is stopped", (*judge).handOff},
	{"the second takes over", (*judge).takeOver},
	{"the first joins again", (*judge).rejoin},
	{"the second gives its role back", (*judge).giveBack},
	{"all are stopped", (*judge).end},
	{"the first is started once more", (*judge).once},
}

// idle tries what is asked of members in which nothing runs.
func (j *judge) idle(ctx context.Context) bool {
	if lines, ok := j.processes(ctx, 0); ok {
		j.before = lines
	}
	for i := range j.count() {
		if !j.idles(ctx, ruleIdle, i) {
			return false
		}
	}
	stop, seen := j.call(ctx, 0, v1alpha1.CommandStop)
	if !seen || !j.rule(ruleStoppedStop, stop.Code == 0, "stop of a stopped member ended with %d (%s)%s", stop.Code, meaning(stop.Code), said(stop)) {
		return false
	}
	if !j.status(ctx, ruleIdle, 0, 7) {
		return false
	}
	for i := range j.count() {
		one, ok := j.sequence(ctx, ruleStoppedSequence, i)
		if !ok {
			return false
		}
		two, ok := j.sequence(ctx, ruleStoppedSequence, i)
		if !ok {
			return false
		}
		j.rule(ruleStoppedSequence, one == two, "sequence of %s said %d, and then %d", j.name(i), one, two)
	}
	return true
}

// first seeds a member.
func (j *judge) first(ctx context.Context) bool {
	if !j.do(ctx, ruleSeed, 0, j.orPrimary(v1alpha1.CommandSeed)) || !j.status(ctx, ruleSeed, 0, j.primary()...) {
		return false
	}
	j.primaries = []int{0}
	if _, ok := j.sequence(ctx, ruleRunningSequence, 0); !ok {
		return false
	}
	return j.status(ctx, ruleRunningSequence, 0, j.primary()...)
}

// again repeats the start of what runs: an operator that saw no end may.
func (j *judge) again(ctx context.Context) bool {
	if !j.do(ctx, ruleAgain, 0, j.orPrimary(v1alpha1.CommandSeed)) || !j.status(ctx, ruleAgain, 0, j.primary()...) {
		return false
	}
	return j.lasts(ctx, 0, ruleAgain)
}

// second starts another member as the operator would: as a primary where there
// may be more than one, else as a secondary.
func (j *judge) second(ctx context.Context) bool {
	if j.count() < 2 || !j.many && !j.has(v1alpha1.CommandSecondary) {
		for _, id := range []int{ruleJoin, rulePromote, ruleRejoin, ruleDemote} {
			j.untold(id, "there is one member, or no command secondary and one primary")
		}
		return true
	}
	if !j.join(ctx, ruleJoin, 1) || !j.join(ctx, ruleAgain, 1) {
		return false
	}
	_, ok := j.sequence(ctx, ruleRunningSequence, 1)
	return ok
}

// joins is the command with which another member is started.
func (j *judge) joins() string {
	if j.many {
		return v1alpha1.CommandPrimary
	}
	return v1alpha1.CommandSecondary
}

// alone tells whether no other member was started.
func (j *judge) alone() bool { return j.verdicts[ruleJoin].untold != "" }

func (j *judge) join(ctx context.Context, id, member int) bool {
	roles := []int{0}
	if j.many {
		roles = j.primary()
	}
	if !j.do(ctx, id, member, j.joins()) || !j.status(ctx, id, member, roles...) {
		return false
	}
	if j.many && !slices.Contains(j.primaries, member) {
		j.primaries = append(j.primaries, member)
	}
	return true
}

// handOff stops the first member, as before a promotion.
func (j *judge) handOff(ctx context.Context) bool {
	return j.stopped(ctx, 0) && j.lasts(ctx, 0, ruleLasting)
}

// takeOver makes the second primary.
func (j *judge) takeOver(ctx context.Context) bool {
	if j.alone() {
		return true
	}
	if j.many {
		j.untold(rulePromote, "all members are primaries")
		return j.status(ctx, ruleJoin, 1, j.primary()...)
	}
	if !j.do(ctx, rulePromote, 1, j.orPrimary(v1alpha1.CommandPromote)) || !j.status(ctx, rulePromote, 1, j.primary()...) {
		return false
	}
	j.primaries = []int{1}
	return j.lasts(ctx, 1, rulePromote)
}

// rejoin starts the former primary beside the new one.
func (j *judge) rejoin(ctx context.Context) bool {
	return j.alone() || j.join(ctx, ruleRejoin, 0)
}

// giveBack demotes the second and promotes the first.
func (j *judge) giveBack(ctx context.Context) bool {
	if !j.has(v1alpha1.CommandDemote) || j.many || j.alone() {
		j.untold(ruleDemote, "there is no command demote, or no use for it: the operator runs stop, and then secondary")
		return true
	}
	if !j.do(ctx, ruleDemote, 1, v1alpha1.CommandDemote) || !j.status(ctx, ruleDemote, 1, 0, 7) {
		return false
	}
	j.primaries = nil
	promote := j.orPrimary(v1alpha1.CommandPromote)
	if !j.do(ctx, rulePromote, 0, promote) || !j.status(ctx, rulePromote, 0, j.primary()...) {
		return false
	}
	j.primaries = []int{0}
	return j.join(ctx, ruleRejoin, 1)
}

// end stops all, secondaries before primaries.
func (j *judge) end(ctx context.Context) bool {
	for i := range j.count() {
		if !slices.Contains(j.primaries, i) && !j.stopped(ctx, i) {
			return false
		}
	}
	for _, i := range slices.Backward(slices.Clone(j.primaries)) {
		if !j.stopped(ctx, i) {
			return false
		}
	}
	if j.before == nil {
		j.untold(ruleProcesses, "the image has no sh and tr to look with; look with kubectl debug")
		return true
	}
	left := j.left(ctx)
	return j.rule(ruleProcesses, len(left) == 0, "after stop this runs still in %s: %s", j.name(0), strings.Join(left, " | "))
}

// looks is how often it is looked for what stays behind: what watches over a
// command, as busybox's timeout does, ends up to a second after it.
const looks = 4

// left is what runs in the first member, and did not before anything was started.
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

// once starts the first anew: what was written is still there.
func (j *judge) once(ctx context.Context) bool {
	if !j.lasts(ctx, 0, ruleLasting) || !j.do(ctx, ruleSeed, 0, j.orPrimary(v1alpha1.CommandSeed)) || !j.status(ctx, ruleSeed, 0, j.primary()...) {
		return false
	}
	j.primaries = []int{0}
	return j.lasts(ctx, 0, ruleLasting) && j.stopped(ctx, 0)
}

// primary are the codes of status that mean primary: without a command
// secondary, all that run are.
func (j *judge) primary() []int {
	if j.has(v1alpha1.CommandSecondary) {
		return []int{8, 191}
	}
	return []int{8, 191, 0, 190}
}

// do runs a command that changes something, and wants 0.
func (j *judge) do(ctx context.Context, id, member int, command string) bool {
	r, seen := j.call(ctx, member, command)
	return seen && j.rule(id, r.Code == 0, "%s in %s ended with %d (%s)%s", command, j.name(member), r.Code, meaning(r.Code), said(r))
}

// status wants one of those codes.
func (j *judge) status(ctx context.Context, id, member int, codes ...int) bool {
	r, seen := j.call(ctx, member, v1alpha1.CommandStatus)
	return seen && j.rule(id, slices.Contains(codes, r.Code), "status of %s ended with %d (%s), and not with %s%s",
		j.name(member), r.Code, meaning(r.Code), list(codes), said(r))
}

// stopped stops a member, and looks twice.
func (j *judge) stopped(ctx context.Context, member int) bool {
	if !j.do(ctx, ruleStop, member, v1alpha1.CommandStop) {
		return false
	}
	j.primaries = slices.DeleteFunc(j.primaries, func(p int) bool { return p == member })
	return j.idles(ctx, ruleStop, member)
}

// idles looks twice: asking changes nothing.
func (j *judge) idles(ctx context.Context, id, member int) bool {
	for range 2 {
		if !j.status(ctx, id, member, 7) {
			return false
		}
	}
	return true
}

// sequence wants a number.
func (j *judge) sequence(ctx context.Context, id, member int) (uint64, bool) {
	r, seen := j.call(ctx, member, v1alpha1.CommandSequence)
	if !seen {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	if r.Outcome != controllers.Succeeded || err != nil {
		j.fault(id, "sequence of %s ended with %d and printed %s%s", j.name(member), r.Code,
			strconv.QuoteToASCII(r.Stdout[:min(len(r.Stdout), 80)]), said(r))
		return 0, false
	}
	j.keep(id)
	j.sequences[member] = max(j.sequences[member], n)
	return n, true
}

// lasts wants a sequence that is no lower than before. Where it is, the rest can
// be tried all the same.
func (j *judge) lasts(ctx context.Context, member, id int) bool {
	before := j.sequences[member]
	n, ok := j.sequence(ctx, id, member)
	if ok && !j.rule(id, n >= before, "sequence of %s was %d, and is %d", j.name(member), before, n) {
		j.sequences[member] = n // said once
	}
	return ok
}

func list(codes []int) string {
	var texts []string
	for _, code := range codes {
		texts = append(texts, strconv.Itoa(code))
	}
	return strings.Join(texts, " or ")
}

// without are the lines that are in one list and not in another.
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
