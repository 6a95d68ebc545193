package statefulcluster

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	engine.Plan

	// updating is what status.updating must say after the steps.
	updating []v1alpha1.UpdatingMember
	// creating is what status.creating must say after the steps.
	creating []string
	// held are lost members that wait for others to be replaced.
	held []string
	// failing are members whose deadline passed and that are not replaced,
	// because their template is to blame.
	failing []string
	// crashing are members whose containers crash again and again since they have
	// their revision.
	crashing []string
	// shaky are members of the update revision that restarted since they have it:
	// the update goes on when they have been Ready for a while.
	shaky []string
	// down are the members that were Ready, in a set none of which is Ready now.
	down []string
	// ignored are members that are not Ready for long and never replaced for it.
	ignored []string
	// look asks for a live world even if the cache shows nothing to do.
	look bool
	// givenUp are the old pods of members that the steps take out of
	// status.updating because the set shrinks.
	givenUp []types.UID
	// recorded is true when the steps write status.updating and status.creating,
	// which can be done once on one version of the set.
	recorded bool
	// losses are the members that replaceLost replaces.
	losses []loss
	// crowd is how many members are unready, when they are too many to
	// replace any for it; 0 otherwise.
	crowd int
}

// Reasons of actions beside the loss reasons.
const (
	reasonRevision   = "Revision"
	reasonBudget     = "Budget"
	reasonNames      = "Names"
	reasonMissing    = "Missing"
	reasonReplaced   = "Replacement"
	reasonReturned   = "Returned"
	reasonClaim      = "Claim"
	reasonRetention  = "Retention"
	reasonRetired    = "Retired"
	reasonUpdate     = "Update"
	reasonUpdated    = "Updated"
	reasonResize     = "Resize"
	reasonExpand     = "Expand"
	reasonRelabel    = "Relabel"
	reasonRevisionOK = "RevisionReady"
	reasonHistory    = "History"
)

// facts are what rules look at.
type facts struct {
	*world
	*roster
}

// rules in order of importance.
var rules = []engine.Rule[facts, plan]{
	{Name: "record the revision", Act: on(recordRevision), Mode: engine.Leading},
	{Name: "put our labels back", Act: on(relabel)},
	{Name: "keep evicted members", Act: on(keepEvicted)},
	{Name: "give members their claims", Act: on(createClaims)},
	{Name: "retire surplus members", Act: on(scaleDown)},
	// After scaleDown, which gives up members that are not back yet.
	{Name: "bring updated members back", Act: on(bringBack), Mode: engine.Leading},
	{Name: "replace lost members", Act: on(replaceLost)},
	{Name: "create missing members", Act: on(createMissing)},
	// What disruptions the spec allows; the budget is the set's alone.
	{Name: "keep the disruption budget", Act: on(keepBudget), Mode: engine.Timeless},
	{Name: "set claims aside", Act: on(setAside)},
	// That a member was Ready once stays true.
	{Name: "mark the revision as good", Act: on(markReady), Mode: engine.Beside | engine.Timeless},
	{Name: "finish in-place updates", Act: on(finishInPlace)},
	{Name: "update members", Act: on(rollOut)},
	{Name: "restart ended members", Act: on(restartEnded)},
	{Name: "grow claims", Act: on(growClaims)},
	{Name: "trim the history", Act: on(trimHistory)},
}

func on(act func(*world, *roster, *plan)) func(facts, *plan) {
	return func(f facts, p *plan) { act(f.world, f.roster, p) }
}

// decide says what to do about a world. It is pure: the same world gives the
// same plan.
func decide(w *world) plan {
	p := plan{updating: w.set.Status.Updating}
	if !w.served() {
		return p // nothing is touched: what runs, runs on
	}
	w.target() // found here once, and known to summarize too
	own := *w
	w = &own // the rules use up its fresh ids
	r := muster(w, &p)
	p.creating = stillWanted(w, r)
	findCrashes(w, r, &p)
	findOutage(w, r, &p)
	// An old world may show alive what is going to come back.
	p.look = !w.live && len(p.updating) < len(w.set.Status.Updating)
	engine.Decide(rules, facts{w, r}, &p, &p.Plan)
	return p
}

// served tells whether the set is there to stay and its spec says how.
func (w *world) served() bool { return w.invalid == "" && w.set.DeletionTimestamp == nil }

// wantsLive tells whether the plan must be made again on the live world before
// anything is done.
func (p *plan) wantsLive() bool { return p.look || p.Timed }

// lookAgain makes the plan wake the key at that time.
func (p *plan) lookAgain(w *world, at time.Time) { p.LookAgain(at.Sub(w.now)) }

// roster sorts the members. Every member is in one list.
type roster struct {
	alive []*member
	// lost members are to be replaced now or when it is their turn.
	lost []loss
	// returning members have a pod that goes, or has gone, and comes back.
	returning []v1alpha1.UpdatingMember
	// departed members are being deleted and never come back.
	departed []*member
	// succeeded holds the names of members that have a successor.
	succeeded map[string]bool
	// abandoned is true when a returning member was given up for lost: that
	// must be on record before its successor is made.
	abandoned bool
	target    string // the update revision's name
}

// loss is a member and why it counts as lost.
type loss struct {
	*member
	reason v1alpha1.LossReason
	due    time.Time
	// wall is when it would be due if somebody had looked all the time; only
	// unreadiness has it.
	wall time.Time
}

// muster sorts the members, and drops what status.updating names no more.
func muster(w *world, p *plan) *roster {
	r := &roster{succeeded: map[string]bool{}, target: w.target().Name}
	for _, m := range w.members {
		if old := m.pod.Annotations[v1alpha1.AnnotationReplaces]; old != "" {
			r.succeeded[old] = true
		}
	}
	r.returning = stillReturning(w)
	p.updating = slices.Clone(r.returning)
	back := map[types.UID]v1alpha1.UpdatingReason{}
	for _, e := range r.returning {
		back[e.UID] = cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
	}
	var taken []*member
	for _, m := range w.members {
		switch {
		case back[m.pod.UID] != "" && podstate.Terminating(m.pod) && !diedReturning(w, m, back[m.pod.UID], p):
			// counted as returning
		case back[m.pod.UID] != "" && podstate.Terminating(m.pod):
			r.abandon(m, p)
			taken = append(taken, m)
		case w.parallel() && takenByTaint(m) && !r.succeeded[m.name()] && !w.wasRetired(m):
			taken = append(taken, m)
		case podstate.Terminating(m.pod):
			r.departed = append(r.departed, m)
		default:
			r.alive = append(r.alive, m)
		}
	}
	r.alive, r.lost = findLost(w, r, p)
	r.takeIn(w, taken)
	return r
}

// diedReturning tells whether the Node of a member that is to come back was
// lost before its kubelet ended the old pod: it may never end it. Of a Node that
// is gone or out of service the control plane removes the pod; after an eviction
// its volumes can move, else onEviction would not be Keep.
func diedReturning(w *world, m *member, why v1alpha1.UpdatingReason, p *plan) bool {
	if m.node.gone || m.node.outOfService {
		return why != v1alpha1.UpdatingEviction
	}
	if m.node.notReadySince.IsZero() {
		return false
	}
	due := w.nodeLostAt(m)
	p.lookAgain(w, due)
	return !due.After(w.now)
}

// abandon gives up a returning member.
func (r *roster) abandon(m *member, p *plan) {
	is := func(e v1alpha1.UpdatingMember) bool { return e.Name == m.name() }
	r.returning, p.updating = slices.DeleteFunc(r.returning, is), slices.DeleteFunc(p.updating, is)
	r.abandoned = true
}

// parallel tells whether members are made without waiting for each other.
func (w *world) parallel() bool {
	return w.set.Spec.PodManagementPolicy == v1alpha1.ParallelPodManagement
}

// takeIn sorts members that the control plane takes from a lost Node: they are
// lost as far as slots are empty without them. The others were succeeded long
// ago, by members that are no more or came back without saying so.
func (r *roster) takeIn(w *world, taken []*member) {
	for _, m := range taken {
		if r.occupied() < wanted(w, r) {
			r.lost = append(r.lost, loss{member: m, reason: takenBecause(m), due: w.now})
		} else {
			r.departed = append(r.departed, m)
		}
	}
}

// stillReturning are the entries of status.updating that still wait: their old
// pod is going or gone and no new one is there. An entry whose old pod lives
// on was written by a pass that did not get to the delete; the rules write it
// again if it is still wanted.
func stillReturning(w *world) []v1alpha1.UpdatingMember {
	byName := map[string]*member{}
	for _, m := range w.members {
		byName[m.name()] = m
	}
	var waiting []v1alpha1.UpdatingMember
	for _, e := range w.set.Status.Updating {
		m := byName[e.Name]
		if m == nil || m.pod.UID == e.UID && podstate.Terminating(m.pod) {
			waiting = append(waiting, e)
		}
	}
	return waiting
}

// takenByTaint tells whether the control plane evicts the pod from a Node that
// is lost. Its pod hangs until the Node returns; it waits for its turn like
// any member of that Node.
func takenByTaint(m *member) bool {
	return podstate.Terminating(m.pod) && podstate.TaintEvicted(m.pod) && m.node.lostNow()
}

// takenBecause is what is wrong with the Node that the control plane takes a
// member from.
func takenBecause(m *member) v1alpha1.LossReason {
	switch {
	case m.node.gone:
		return v1alpha1.LossNodeGone
	case m.node.outOfService:
		return v1alpha1.LossNodeOutOfService
	}
	return v1alpha1.LossNodeNotReady
}

// unsucceeded are the departed members whose slot is still empty. One that a
// scale-down retired has no slot.
func (r *roster) unsucceeded(w *world) []*member {
	var waiting []*member
	for _, m := range r.departed {
		if !r.succeeded[m.name()] && !w.wasRetired(m) {
			waiting = append(waiting, m)
		}
	}
	return waiting[:min(len(waiting), max(0, wanted(w, r)-r.occupied()))]
}

// occupied is how many slots of the set have a member, or will have one again
// without a create of a new name.
func (r *roster) occupied() int { return len(r.alive) + len(r.lost) + len(r.returning) }

// refusedQuietly is refusedNow for who will look again anyway.
func (w *world) refusedQuietly(reason string) bool { return w.refusedNow(reason, &plan{}) }

// refusedNow tells whether a write for that reason was refused just now; the
// plan looks again when it may be tried.
func (w *world) refusedNow(reason string, p *plan) bool {
	r, refused := w.refused[reason]
	if !refused || !r.until.After(w.now) {
		return false
	}
	p.lookAgain(w, r.until)
	return true
}

// refusal is what the API server said to a write, and when to try again.
type refusal struct {
	message string
	until   time.Time
	times   int
}
