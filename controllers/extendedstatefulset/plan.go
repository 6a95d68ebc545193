package extendedstatefulset

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	engine.Plan

	// books is true when the books have to be written, and nothing else is done.
	books bool
	// taken is true when a pod that serves is taken from it; no other is then.
	taken bool
}

// rules in the order in which they are asked. Each lets the next one act; what has to be
// written down first stops the pass.
var rules = []engine.Rule[*world, plan]{
	{Name: "keep the owner references on configuration", Act: keepTracking, Mode: engine.Leading},
	{Name: "keep the books", Act: keepBooks, Mode: engine.Leading},
	{Name: "keep the claims", Act: keepClaims, Mode: engine.Leading},
	{Name: "keep the Services", Act: keepServices, Mode: engine.Leading},
	{Name: "run the jobs", Act: runJobs, Mode: engine.Leading},
	{Name: "keep the versions", Act: keepChildren, Mode: engine.Leading},
	{Name: "replace pods without claims", Act: replaceStrays, Mode: engine.Leading},
	{Name: "clean up", Act: cleanUp, Mode: engine.Leading},
	{Name: "follow the active/passive probes", Act: followProbes, Mode: engine.Leading},
}

// decide says what to do about a world. It is pure: the same world gives the same
// plan.
func decide(w *world) plan {
	p := plan{}
	w.books = w.set.Status.DeepCopy()
	asked := rules[:1] // what goes, or cannot be served, is left alone but for its owner references
	if w.set.DeletionTimestamp == nil && w.invalid == "" {
		w.books, asked = advance(w), rules
	}
	engine.Decide(asked, w, &p, &p.Plan)
	p.lookAgainFor(w)
	return p
}

func (p *plan) acts() bool { return p.books || p.Acts() > 0 }

// lookAgainFor wakes the key for what no event tells.
func (p *plan) lookAgainFor(w *world) {
	p.LookAgain(w.configWait)
	if w.disputed() != "" {
		p.LookAgain(consentRetry)
	}
	if !w.refusalsDue.IsZero() {
		p.LookAgain(w.refusalsDue.Sub(w.now))
	}
	for _, at := range w.deadlines() {
		p.LookAgain(at.Sub(w.now))
	}
	for _, c := range w.children {
		for _, pod := range c.pods {
			_, missing := podstate.Available(pod, w.minReady(), w.now)
			p.LookAgain(missing)
			if w.books.Update != nil && c.version == w.books.UpdateVersion {
				if podstate.Ready(pod) {
					p.LookAgain(w.provenAt(pod).Sub(w.now))
				}
			}
			if since, _ := podstate.Since(pod, corev1.PodReady); w.returning() && !podstate.Ready(pod) {
				p.LookAgain(w.watch.Deadline(since, w.canaryTime()).Sub(w.now))
			}
			if w.returning() && podstate.Terminating(pod) {
				p.LookAgain(w.watch.Deadline(podstate.DeletedAt(pod), w.canaryTime()).Sub(w.now))
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
