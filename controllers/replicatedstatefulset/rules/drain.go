package rules

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// drainPrimary hands the role of a primary that should leave its Node over to a member that should
// not. It is a switchover without a user's order, and begins only while no member is missing.
func drainPrimary(f *facts.Facts, p *Plan) {
	for _, m := range f.Members {
		p.LookAgain(m.EvictionAt.Add(spec.EvictionFor).Sub(f.Now))
	}
	m := PrimaryToDrain(f)
	if m == nil {
		return
	}
	p.LookAgain(triedUntil(m).Sub(f.Now))
	if WhyNotDrained(f, m).Reason != "" {
		return
	}
	demoteWithSuccessor(f, p, transfer{Facts: f, primary: m, avoidLeaving: true}, whyToLeave(m))
}

// drainChecks are the conditions under which a primary cannot hand its role over now, the
// longest-lasting first. Each check returns its reason and message, or nothing.
var drainChecks = []func(*facts.Facts, *facts.Member) facts.Notice{
	commandsNotAllowed, commandPending, memberMissing, demoteFailed, noSuccessor, otherOrderFirst, beingUpdated, triedRecently,
}

// WhyNotDrained returns the notice of the first of drainChecks that fails.
func WhyNotDrained(f *facts.Facts, m *facts.Member) facts.Notice {
	return firstNotice(f, drainChecks, m)
}

// firstNotice returns the notice of the first check that fails.
func firstNotice(f *facts.Facts, checks []func(*facts.Facts, *facts.Member) facts.Notice, m *facts.Member) facts.Notice {
	return engine.First(checks, func(check func(*facts.Facts, *facts.Member) facts.Notice) facts.Notice { return check(f, m) })
}

func commandsNotAllowed(f *facts.Facts, _ *facts.Member) facts.Notice {
	switch {
	case f.Set.Spec.Paused:
		return facts.Notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "spec.paused is true, so no command is run; set it to false"}
	case !f.MayStartMembers():
		return facts.Notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "no command is run: " + cmp.Or(f.Invalid, f.Fatal())}
	}
	return facts.Notice{}
}

func commandPending(_ *facts.Facts, m *facts.Member) facts.Notice {
	if m.Command == nil {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonHandingOver, Message: "waiting for command " + m.Command.Name}
}

func memberMissing(f *facts.Facts, _ *facts.Member) facts.Notice {
	if f.WellStaffed() {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "a role is handed over only while no member is missing; missing: " + f.WhatIsMissing()}
}

func demoteFailed(f *facts.Facts, m *facts.Member) facts.Notice {
	if !m.FailedToStepDown() {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonNoSuccessor, Message: fmt.Sprintf(
		"%s %s; it will be retried %s after the failure. To stop the primary instead, request a switchover to another member twice: kubectl -n %s annotate rss %s %s=<pod>",
		m.Failure.Command, record.HowFailed(int(m.Failure.Code)), spec.FailureWindow(&f.Set.Spec), f.Set.Namespace, f.Set.Name, v1alpha1.AnnotationSwitchoverTo,
	)}
}

func noSuccessor(f *facts.Facts, m *facts.Member) facts.Notice {
	var others []string
	for _, o := range f.Members {
		if o.State == record.Primary {
			continue
		}
		why := (transfer{Facts: f, primary: m, avoidLeaving: true}).whyNoSuccessor(o)
		if why == "" {
			return facts.Notice{}
		}
		others = append(others, fmt.Sprintf("%s (%s)", o.Name(), why))
	}
	return facts.Notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "no member can take over: " + strings.Join(others, ", ") + "; uncordon one of their Nodes, repair one of them, or add a member"}
}

func otherOrderFirst(f *facts.Facts, _ *facts.Member) facts.Notice {
	o := openOrderOf(f, v1alpha1.OrderSwitchoverTo)
	if o.name == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonHandingOver, Message: fmt.Sprintf("%s requests a switchover to %s first", o.source(), o.name)}
}

func beingUpdated(f *facts.Facts, _ *facts.Member) facts.Notice {
	if len(facts.ParkedMembers(f)) > 0 {
		return facts.Notice{} // parking waits for them too
	}
	for _, m := range f.Members {
		if !m.UpToDate {
			return facts.Notice{Reason: v1alpha1.ReasonHandingOver, Message: "members are being recreated from the current template; see Progressing and Degraded"}
		}
	}
	if f.IsRecreating() {
		return facts.Notice{Reason: v1alpha1.ReasonHandingOver, Message: "a member is being recreated"}
	}
	return facts.Notice{}
}

func triedRecently(f *facts.Facts, m *facts.Member) facts.Notice {
	until := triedUntil(m)
	if !until.After(f.Now) {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonHandingOver, Message: fmt.Sprintf(
		"the last handover was undone because no other member had caught up; next attempt at %s. Command demote should not end before another member has all data of the primary",
		until.UTC().Format("15:04:05"),
	)}
}

// triedUntil returns the end of the pause after a primary was demoted or stopped, and became
// primary again because no other member had all of its data. Each attempt causes a moment without a
// primary.
func triedUntil(m *facts.Member) (until time.Time) {
	for _, command := range []string{v1alpha1.CommandDemote, v1alpha1.CommandStop} {
		if r, ok := m.Result(command); ok && r.Ended.Add(spec.HandoverPause).After(until) {
			until = r.Ended.Add(spec.HandoverPause)
		}
	}
	return until
}
