package rules

import (
	"fmt"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// replaceLost deletes the pods of lost members, which makes the loss final, and creates a new
// member for each, at most replacement.maxConcurrent at a time.
func replaceLost(f *facts.Facts, p *Plan) {
	slots, successors := freeSlots(f), CountSuccessors(f)
	refused := false
	if len(f.Lost) > 0 {
		refused = f.CreatesRefused()
		p.tryLater(f, facts.CreateReasons...)
	}
	var chains []action.Chain
	for _, l := range f.Lost {
		if !alreadyReplacing(l) {
			if slots <= 0 {
				p.Held = append(p.Held, l.Name())
				continue
			}
			slots--
		}
		if refused && f.Parallel() {
			p.Held = append(p.Held, l.Name()) // its successor could not be created
			continue
		}
		var chain action.Chain
		if !l.Terminating() {
			chain = append(chain, deletionOf(l))
		}
		if f.Parallel() && len(p.newMembers.ids) > 0 && successors > 0 {
			successors--
			chain = append(chain, p.newMembers.next(f, SuccessorOf(f.World, l.Member))...)
		}
		if len(chain) > 0 {
			p.Losses = append(p.Losses, l)
			chains = append(chains, chain)
		}
	}
	p.createMembers(f, chains...)
}

// deletionOf returns the deletion of the pod of a lost member.
func deletionOf(l facts.Loss) action.Action {
	return action.Action{Verb: action.Delete, Object: l.Pod, Reason: string(l.Reason),
		Detail: fmt.Sprintf("the member is lost and will not come back, %s", claimsFate(l.Member))}
}

// CountSuccessors returns how many of the lost members get a successor. In a surge update and during a
// drain, new members are created before old ones are retired, so the new member may already exist.
func CountSuccessors(f *facts.Facts) int {
	if f.MaxExtra() == 0 {
		return len(f.Lost)
	}
	return f.Wanted() - len(f.Alive) - len(f.Returning)
}

// freeSlots returns how many more members replacement.maxConcurrent allows to be replaced now.
// Empty slots, and slots whose new member was never Ready, count as being replaced.
func freeSlots(f *facts.Facts) int {
	empty := max(len(f.WithoutSuccessor()), emptySlots(f))
	slots := f.MaxConcurrent() - empty
	for _, m := range f.Members {
		if !m.Terminating() && m.StillReplacing() {
			slots--
		}
	}
	return slots
}

// emptySlots returns the number of slots without a member. The additional slots of a drain are not
// counted, so that lost members are replaced even if a quota refuses members for these slots.
func emptySlots(f *facts.Facts) int {
	if f.ReplacesFirst() {
		return f.Replicas() - f.Occupied() - facts.OrphanSlots(f)
	}
	return f.Wanted() - f.Occupied() - facts.OrphanSlots(f)
}

// alreadyReplacing reports whether a lost member is itself the replacement of another one. Its slot
// already counts towards maxConcurrent.
func alreadyReplacing(l facts.Loss) bool { return !l.Terminating() && l.StillReplacing() }
