package extendedstatefulset

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	// rule is the name of the first rule that acts; "" when there is nothing to do.
	rule string
	// books is true when the books have to be written, and nothing else is done.
	books bool
	steps action.Steps
	// wait is when to look again although no event will come; 0 is never.
	wait time.Duration
	// waits says what is waited for; the first to wait has the word.
	waits string
	// taken is true when a pod that serves is taken from it; no other is then.
	taken bool
}

// rule looks for one thing to do. It writes chains into the plan, or nothing.
type rule struct {
	name string
	act  func(*world, *plan)
}

// rules in the order in which they are asked. What goes, and what has to be
// written down first, lets no other rule act.
var rules = []rule{
	{"keep the owner references on configuration", keepTracking},
	{"keep the books", keepBooks},
	{"keep the claims", keepClaims},
	{"keep the Services", keepServices},
	{"run the jobs", runJobs},
	{"keep the versions", keepChildren},
	{"replace pods without claims", replaceStrays},
	{"clean up", cleanUp},
	{"follow the active/passive probes", followProbes},
}

// decide says what to do about a world. It is pure: the same world gives the same
// plan.
func decide(w *world) plan {
	p := plan{}
	w.books = w.set.Status.DeepCopy()
	if w.set.DeletionTimestamp == nil && w.invalid == "" {
		w.books = advance(w)
	}
	for _, rule := range rules {
		rule.act(w, &p)
		if p.acts() {
			p.rule = cmp.Or(p.rule, rule.name)
		}
		if p.books || w.invalid != "" || w.set.DeletionTimestamp != nil {
			break
		}
	}
	p.lookAgainFor(w)
	return p
}

func (p *plan) acts() bool { return p.books || len(p.steps) > 0 }

// do adds chains beside those that are there.
func (p *plan) do(chains ...action.Chain) {
	if len(chains) == 0 {
		return
	}
	if len(p.steps) == 0 {
		p.steps = action.Steps{nil}
	}
	p.steps[0] = append(p.steps[0], chains...)
}

// then adds chains that are begun only when all else succeeded.
func (p *plan) then(chains ...action.Chain) {
	if len(p.steps) == 0 {
		p.do(chains...)
	} else if len(chains) > 0 {
		p.steps = append(p.steps, chains)
	}
}

// lookAgain makes the plan wake the key after that time.
func (p *plan) lookAgain(after time.Duration) {
	if after > 0 && (p.wait == 0 || after < p.wait) {
		p.wait = after
	}
}

func (p *plan) waitFor(what string) { p.waits = cmp.Or(p.waits, what) }

// lookAgainFor wakes the key for what no event tells.
func (p *plan) lookAgainFor(w *world) {
	p.lookAgain(w.configWait)
	if w.disputed() != "" {
		p.lookAgain(consentRetry)
	}
	if !w.refusalsDue.IsZero() {
		p.lookAgain(w.refusalsDue.Sub(w.now))
	}
	for _, at := range w.deadlines() {
		p.lookAgain(at.Sub(w.now))
	}
	for _, c := range w.children {
		for _, pod := range c.pods {
			_, missing := podstate.Available(pod, w.minReady(), w.now)
			p.lookAgain(missing)
			if w.books.Update != nil && c.version == w.books.UpdateVersion {
				if podstate.Ready(pod) {
					p.lookAgain(w.provenAt(pod).Sub(w.now))
				}
			}
			if since, _ := podstate.Since(pod, corev1.PodReady); w.returning() && !podstate.Ready(pod) {
				p.lookAgain(w.watch.Deadline(since, w.canaryTime()).Sub(w.now))
			}
			if w.returning() && podstate.Terminating(pod) {
				p.lookAgain(w.watch.Deadline(podstate.DeletedAt(pod), w.canaryTime()).Sub(w.now))
			}
		}
	}
}

// Questions about the world.

// child finds a StatefulSet; nil if there is none.
func (w *world) child(index int32, number int64) *child {
	for _, c := range w.children {
		if c.zone == index && c.version == number {
			return c
		}
	}
	return nil
}

// ofVersion are the StatefulSets of a version, in all zones.
func (w *world) ofVersion(number int64) (found []*child) {
	for _, c := range w.children {
		if c.version == number {
			found = append(found, c)
		}
	}
	return found
}

// wanted tells whether a zone of that index is in the spec.
func (w *world) wanted(index int32) bool {
	return slices.ContainsFunc(w.zones, func(z zone) bool { return z.index == index })
}

func (w *world) minReady() time.Duration {
	return time.Duration(w.set.Spec.Template.Spec.MinReadySeconds) * time.Second
}

func (w *world) canaries() int32 {
	return min(max(1, ptr.Deref(w.set.Spec.UpdateStrategy.Canaries, 1)), w.replicas)
}

func (w *world) canaryTime() time.Duration {
	if d := w.set.Spec.UpdateStrategy.CanaryWatchTime; d != nil {
		return d.Duration
	}
	return 5 * time.Minute
}

func (w *world) updateTime() time.Duration {
	if d := w.set.Spec.UpdateStrategy.UpdateWatchTime; d != nil {
		return d.Duration
	}
	return 10 * time.Minute
}

// available tells whether a pod serves: Ready for long enough, and not going.
func (w *world) available(pod *corev1.Pod) bool {
	if pod == nil || podstate.Terminating(pod) {
		return false
	}
	ok, _ := podstate.Available(pod, w.minReady(), w.now)
	return ok
}

// serving counts the ordinals below limit on which a pod of the version is
// available.
func (w *world) serving(c *child, limit int32) (n int32) {
	if c == nil {
		return 0
	}
	for ordinal, pod := range c.pods {
		if ordinal < limit && c.span().has(ordinal) && w.available(pod) {
			n++
		}
	}
	return n
}

// span is the ordinals that the StatefulSet has.
func (c *child) span() span {
	s := span{replicas: ptr.Deref(c.set.Spec.Replicas, 1)}
	if c.set.Spec.Ordinals != nil {
		s.start = c.set.Spec.Ordinals.Start
	}
	return s
}

func (c *child) digest() string { return c.set.Annotations[v1alpha1.AnnotationDigest] }

func (c *child) going() bool { return c.set.DeletionTimestamp != nil }

// stale tells whether the version was given up.
func (c *child) stale() bool { return c.set.Annotations[v1alpha1.AnnotationStale] == v1alpha1.True }

// anyReady tells whether a pod of the StatefulSet is Ready.
func (c *child) anyReady() bool {
	for _, pod := range c.pods {
		if podstate.Ready(pod) && !podstate.Terminating(pod) {
			return true
		}
	}
	return false
}

// attempts is how many attempts were made to upgrade to its version.
func attemptsOf(set *appsv1.StatefulSet) int32 {
	n, _ := strconv.ParseInt(set.Annotations[v1alpha1.AnnotationAttempts], 10, 32)
	return int32(n)
}

// zonesOf are the wanted zones. One that has no index yet gets the next: an index
// is never given to another zone, since claims are named after it.
func zonesOf(set *v1alpha1.ExtendedStatefulSet, s *v1alpha1.ExtendedStatefulSetStatus) []zone {
	names := set.Spec.Zones[:min(len(set.Spec.Zones), mostZones)] // nothing is done for a set that has more
	if len(names) == 0 {
		return []zone{{index: noZone}}
	}
	next, known := int32(0), map[string]int32{}
	for _, z := range s.Zones {
		known[z.Name], next = z.Index, max(next, z.Index+1)
	}
	zones := make([]zone, 0, len(names))
	for _, name := range names {
		index, ok := known[name]
		if !ok {
			index, known[name] = next, next
			next++
		}
		zones = append(zones, zone{name, index})
	}
	return zones
}
