package statefulcluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Successive replacements in one slot that never become Ready wait longer and
// longer.
const (
	firstBackoff = 30 * time.Second
	maxBackoff   = time.Hour
	settlingTime = 10 * time.Minute
	endedBackoff = 30 * time.Second
)

// findLost parts the alive from the lost, and names the members that would be
// lost but for the rules that protect data from a bad template.
func findLost(w *world, r *roster, p *plan) (alive []*member, lost []loss) {
	unready := 0
	for _, m := range r.alive {
		if !podstate.Ready(m.pod) && !m.node.lostNow() {
			unready++
		}
	}
	crowded := unready > w.maxConcurrent()
	lost = r.lost
	for _, m := range r.alive {
		found, ok := nodeLoss(w, m)
		if late, has := unreadyLoss(w, m); has && (!ok || late.due.Before(found.due)) {
			// That the operator was away is no news to whoever waits for the member.
			switch overdue := !late.wall.After(w.now); {
			case overdue && blameTemplate(w, m):
				p.failing = append(p.failing, m.name())
			case overdue && crowded:
				p.crowd = unready
			default:
				found, ok = late, true
			}
		}
		if ok && !found.due.After(w.now) {
			lost = append(lost, found)
			continue
		}
		if ok {
			p.lookAgain(w, found.due)
		}
		alive = append(alive, m)
	}
	slices.SortStableFunc(lost, func(a, b loss) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.name(), b.name()))
	})
	return alive, lost
}

// nodeLoss is evidence that does not depend on the template: the Node, the end
// of the pod, a claim that is gone.
func nodeLoss(w *world, m *member) (loss, bool) {
	late := backoff(w, m)
	switch {
	case m.node.gone:
		return loss{member: m, reason: v1alpha1.LossNodeGone, due: m.since(corev1.PodScheduled).Add(late)}, true
	case m.node.outOfService:
		return loss{member: m, reason: v1alpha1.LossNodeOutOfService, due: m.since(corev1.PodScheduled).Add(late)}, true
	case podstate.Ended(m.pod) && blameTemplate(w, m):
		return loss{}, false // restartEnded sees to it
	case podstate.Ended(m.pod):
		return loss{member: m, reason: v1alpha1.LossFailed, due: m.pod.CreationTimestamp.Add(late)}, true
	case hasRun(m) && len(missingClaims(w, m)) > 0:
		return loss{member: m, reason: v1alpha1.LossClaimGone, due: m.pod.CreationTimestamp.Add(late)}, true
	case !m.node.notReadySince.IsZero():
		// A replacement bound to a Node that is lost already waits its turn too.
		due := latest(w.nodeLostAt(m), m.since(corev1.PodScheduled).Add(late))
		return loss{member: m, reason: v1alpha1.LossNodeNotReady, due: due}, true
	}
	return loss{}, false
}

// nodeLostAt is when the member counts as lost if its Node stays not Ready. A
// Node that was cut off together with the operator, or whose kubelet could not
// reach the API server either, has that long to say that it is well.
func (w *world) nodeLostAt(m *member) time.Time {
	return w.watch.Deadline(m.node.notReadySince, time.Duration(*w.set.Spec.Replacement.NodeLostSeconds)*time.Second)
}

// unreadyLoss is evidence that a bad template gives too.
func unreadyLoss(w *world, m *member) (loss, bool) {
	if podstate.Ready(m.pod) || m.node.lostNow() || podstate.Ended(m.pod) {
		return loss{}, false
	}
	at := func(reason v1alpha1.LossReason, since time.Time, seconds *int32) (loss, bool) {
		after := time.Duration(*seconds)*time.Second + backoff(w, m)
		return loss{member: m, reason: reason, due: w.watch.Deadline(since, after), wall: since.Add(after)}, *seconds > 0
	}
	spec := w.set.Spec.Replacement
	if since, yes := podstate.UnschedulableSince(m.pod); yes {
		return at(v1alpha1.LossPending, since, spec.PendingSeconds)
	}
	if podstate.WasReady(m.pod) {
		return at(v1alpha1.LossUnready, m.since(corev1.PodReady), spec.UnreadySeconds)
	}
	if podstate.Scheduled(m.pod) {
		return at(v1alpha1.LossStartup, m.since(corev1.PodScheduled), spec.StartupSeconds)
	}
	return loss{}, false
}

// blameTemplate reports whether unreadiness says nothing against the member: its
// revision was never Ready anywhere, it was updated and not Ready since, or it
// crashed and its revision works nowhere else. A new member would fail the same
// way, and cost the data of this one.
func blameTemplate(w *world, m *member) bool {
	if m.pod.Annotations[v1alpha1.AnnotationInPlace] != "" {
		return true
	}
	if m.pod.Annotations[v1alpha1.AnnotationUpdated] == string(v1alpha1.UpdatingUpdate) && !podstate.WasReady(m.pod) {
		return true
	}
	return !w.everReady(revisionOf(m.pod)) || crashedWithRevision(w, m)
}

// backoff is how much longer than at first the member is waited for: nothing
// for one that settled down or fills its slot for the first time.
func backoff(w *world, m *member) time.Duration {
	n := replacements(m)
	if n < 2 || settledDown(w, m) {
		return 0
	}
	return min(firstBackoff<<min(n-2, 10), maxBackoff)
}

// settledDown tells whether the member was Ready and is some minutes old: what
// happens to it now is no repetition of what happened to its predecessor.
func settledDown(w *world, m *member) bool {
	start := m.pod.Status.StartTime
	return podstate.WasReady(m.pod) && start != nil && w.now.Sub(start.Time) >= settlingTime
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// replacements is how many successive replacements the member's slot has seen.
func replacements(m *member) int {
	n, err := strconv.Atoi(m.pod.Annotations[v1alpha1.AnnotationReplacements])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// replaceLost deletes the pods of lost members, the mark that they never come
// back, and creates a new member for each, as many at a time as
// replacement.maxConcurrent allows.
func replaceLost(w *world, r *roster, p *plan) {
	slots := w.maxConcurrent() - max(len(r.unsucceeded(w)), wanted(w, r)-r.occupied())
	for _, m := range w.members {
		if !podstate.Terminating(m.pod) && r.replacing(m) {
			slots--
		}
	}
	refused := len(r.lost) > 0 && w.createsRefused(p)
	var chains []action.Chain
	for _, l := range r.lost {
		if podstate.Terminating(l.pod) || !r.replacing(l.member) { // else it has a slot already
			if slots <= 0 {
				p.held = append(p.held, l.name())
				continue
			}
			slots--
		}
		var chain action.Chain
		if !podstate.Terminating(l.pod) {
			chain = append(chain, action.Action{Verb: action.Delete, Object: l.pod, Reason: string(l.reason),
				Detail: fmt.Sprintf("the member is lost and will not come back, %s", claimsFate(l.member))})
		}
		if refused && w.parallel() {
			p.held = append(p.held, l.name()) // its successor could not be made
			continue
		}
		if w.parallel() && len(w.fresh) > 0 {
			chain = append(chain, newMember(w, w.nextID(), successorOf(w, l.member))...)
		}
		if len(chain) > 0 {
			p.losses = append(p.losses, l)
			chains = append(chains, chain)
		}
	}
	p.make(w, r, chains...)
}

// restartEnded recreates, under their names and on their data, members that
// ended and whose template is to blame: a new member would end the same way.
func restartEnded(w *world, r *roster, p *plan) {
	var again []*member
	for _, m := range r.alive {
		if !podstate.Ended(m.pod) || m.node.lostNow() || !blameTemplate(w, m) {
			continue
		}
		p.failing = append(p.failing, m.name())
		if due := m.pod.CreationTimestamp.Add(endedBackoff); due.After(w.now) {
			p.lookAgain(w, due)
			continue
		}
		again = append(again, m)
	}
	recreate(w, p, again, "")
}

// replacing tells whether the member fills the slot of a lost one and was not
// Ready yet: its slot is taken.
func (r *roster) replacing(m *member) bool {
	return m.pod.Annotations[v1alpha1.AnnotationReplaces] != "" && !podstate.WasReady(m.pod)
}

func (m *member) since(kind corev1.PodConditionType) time.Time {
	t, _ := podstate.Since(m.pod, kind)
	return t
}

// hasRun tells whether the member's data may exist: it was Ready, a container
// was started, or the pod was recreated for a member that has been there before.
func hasRun(m *member) bool {
	if podstate.WasReady(m.pod) || m.pod.Annotations[v1alpha1.AnnotationUpdated] != "" {
		return true
	}
	for _, c := range slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses) {
		if c.ContainerID != "" {
			return true
		}
	}
	return false
}

// nodeOf reads a Node for a pod that was bound to that name. A Node younger
// than the binding is another one: the machine that ran the pod is gone, even
// if the name is back.
func nodeOf(pod *corev1.Pod, n *corev1.Node) node {
	if n == nil {
		return node{gone: true}
	}
	bound, scheduled := podstate.Since(pod, corev1.PodScheduled)
	out := node{gone: scheduled && n.CreationTimestamp.After(bound) && pod.CreationTimestamp.Before(&n.CreationTimestamp)}
	for _, t := range n.Spec.Taints {
		out.outOfService = out.outOfService || t.Key == corev1.TaintNodeOutOfService
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			out.notReadySince = c.LastTransitionTime.Time
		}
	}
	return out
}
