package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// watchedSince returns when canaryWatchTime begins: when the canaries were requested, or when their
// StatefulSet was created, if that was later. Until the StatefulSet exists only updateWatchTime counts,
// because the delay is not caused by the version.
func watchedSince(u *v1alpha1.UpdateStatus, c *child) time.Time {
	if made := c.set.CreationTimestamp.Time; made.After(u.CanaryAt.Time) {
		return made
	}
	return u.CanaryAt.Time
}

// deadlines returns when the upgrade fails if no event occurs before.
func (f *facts) deadlines() (at []time.Time) {
	u, clock := f.record.Update, f.clock()
	if u == nil || u.Returning || givenUp(f.record) {
		return nil
	}
	add := func(from time.Time, limit time.Duration) {
		at = append(at, clock.deadline(from, limit), clock.deadline(from, limit+clock.probation()))
	}
	if u.StartedAt != nil && u.HeldAt == nil {
		add(u.StartedAt.Time, clock.updateTime())
	}
	c := f.children.find(f.zoneOf(u).index, f.record.UpdateVersion)
	if c != nil && u.CanaryAt != nil && u.GoodAt == nil && f.record.Phase == v1alpha1.PhaseCanary {
		add(watchedSince(u, c), clock.canaryTime())
	}
	return at
}

// allowed returns limit, plus the probation if all required pods are Ready.
func (b *recorder) allowed(limit time.Duration) time.Duration {
	if b.allServe() {
		return limit + b.w.clock().probation()
	}
	return limit
}

// allServe reports whether all pods that the phase requires serve.
func (b *recorder) allServe() bool {
	n := b.w.serving(b.w.children.find(b.zone().index, b.UpdateVersion))
	switch b.Phase {
	case v1alpha1.PhaseCanary:
		return n >= b.w.canaries()
	case v1alpha1.PhasePromoting:
		return n == b.w.replicas
	case v1alpha1.PhasePostJob:
		return b.w.standing(b.UpdateVersion).complete()
	}
	return false
}

// unsettled returns the reason why an upgrade from a version cannot begin yet; "" if it can. A version
// that restarts its pods has one pod down, and the upgrade would stop another.
func (s standing) unsettled() string {
	if why := s.notReady(); why != "" {
		return why
	}
	for _, c := range s.members() {
		if rolls(c.set) && !holdsBack(&c.set.Spec.UpdateStrategy) {
			return fmt.Sprintf("%s is restarting its pods", c.set.Name)
		}
	}
	return ""
}

// split reports whether ordinals of a version belong to other versions or are being moved.
func (s standing) split() bool {
	return slices.ContainsFunc(s.members(), func(c *child) bool {
		beside := func(other *child) bool { return other.zone == c.zone && other.version != c.version }
		return !c.hasAll(s.replicas) && slices.ContainsFunc(s.children, beside)
	})
}

// holdsPods returns the reason why pods of a version must not be restarted now; "" if they may. While
// an ordinal moves, its pod is down, and no other pod may be. A terminating claim is removed when its
// pod ends, so its pod must not be restarted either.
func (w *world) holdsPods(number int64) string {
	if w.standing(w.set.Status.CurrentVersion).split() && !w.standing(number).onTrial() {
		return "ordinals are moving between versions"
	}
	if why := unconsented(w); why != "" {
		return "they wait until " + why
	}
	if name := anyDeletedClaim(w); name != "" {
		return fmt.Sprintf("claim %s is terminating, and its data is lost when its pod is deleted", name)
	}
	return ""
}

// onTrial reports whether a version has canaries, but no good one yet. They may be restarted,
// because a restart may fix them, and because no second ordinal is taken for them.
func (s standing) onTrial() bool {
	now := &s.set.Status
	if s.number != now.UpdateVersion || now.Phase != v1alpha1.PhaseCanary || now.Update == nil || now.Update.Returning {
		return false
	}
	return !slices.ContainsFunc(s.children.ofVersion(s.number), func(c *child) bool { return s.proven(c) > 0 })
}

// absent returns the reason if an ordinal of a zone has no serving pod; "" if all have one. The ordinal
// but is ignored. In a rollback, a pod that was not Ready for canaryWatchTime is ignored too, because it
// is not expected to recover.
func (w *world) absent(z zone, all spans, but int32, back bool) string {
	if len(all) == 0 {
		return ""
	}
	for o := range w.replicas {
		if o == but {
			continue
		}
		if why := w.absentOn(z, o, all.owner(o), back); why != "" {
			return why
		}
	}
	return ""
}

// absentOn returns the reason why an ordinal of a version does not serve; "" if it serves, or is not
// expected to.
func (w *world) absentOn(z zone, ordinal int32, owner int64, back bool) string {
	c := w.children.find(z.index, owner)
	switch {
	case c == nil && w.inTransit(z, ordinal):
		return fmt.Sprintf("ordinal %d%s has moved to another version", ordinal, z.in())
	case c == nil, w.clock().available(c.pods[ordinal]):
		return ""
	case back && w.clock().hadItsTime(c.pods[ordinal]):
		return ""
	}
	return fmt.Sprintf("%s-%d is available", c.set.Name, ordinal)
}

// inTransit reports whether an ordinal without an owner will soon get one. It returns false if the old
// pod is orphaned, or hangs while terminating.
func (w *world) inTransit(z zone, ordinal int32) bool {
	stuck := func(p podOfOrdinal) bool {
		orphan := !p.owned && !podstate.Terminating(p.pod)
		return p.isOn(z, ordinal) && (orphan || w.clock().hangs(p.pod))
	}
	return !slices.ContainsFunc(w.pods, stuck)
}

// notReady returns a StatefulSet of the version whose pods are not all available; "" if there is none.
func (s standing) notReady() string {
	for _, c := range s.members() {
		if n := s.serving(c); n < s.replicas {
			return fmt.Sprintf("%s has %d of %d pods available", c.set.Name, n, s.replicas)
		}
	}
	return ""
}

// unreturned returns which ordinals still have to be returned to the version of a record; "" if it has
// all.
func (s standing) unreturned(record *v1alpha1.ExtendedStatefulSetStatus) string {
	return cmp.Or(s.stillElsewhere(s.isKnown(record, s.number)), s.notGotBack())
}

// stillElsewhere returns a StatefulSet of another version that still has pods which could be returned.
// known is true if the template has the content of the version.
func (s standing) stillElsewhere(known bool) string {
	elsewhere := func(c *child) bool {
		if c.version == s.number || c.empty() || !s.wanted(c.zone) {
			return false
		}
		return known || s.children.find(c.zone, s.number) != nil
	}
	if c, some := first(s.children, elsewhere); some {
		return fmt.Sprintf("%s still has pods", c.set.Name)
	}
	return ""
}

// notGotBack returns a StatefulSet of the version that lacks ordinals.
func (s standing) notGotBack() string {
	if c, some := first(s.members(), func(c *child) bool { return !c.hasAll(s.replicas) }); some {
		return fmt.Sprintf("%s does not have all its ordinals yet", c.set.Name)
	}
	return ""
}
