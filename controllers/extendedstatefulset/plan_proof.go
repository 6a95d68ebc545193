package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// watchedSince is when canaryWatchTime begins: when the canaries were asked for, or when
// their StatefulSet was made, if that came later. Until it is made only updateWatchTime
// counts, as the version is not to blame.
func watchedSince(u *v1alpha1.UpdateStatus, c *child) time.Time {
	if made := c.set.CreationTimestamp.Time; made.After(u.CanaryAt.Time) {
		return made
	}
	return u.CanaryAt.Time
}

// deadlines are when the upgrade has failed, if nothing happens before.
func (w *world) deadlines() (at []time.Time) {
	u, clock := w.record.Update, w.clock()
	if u == nil || u.Returning || givenUp(w.record) {
		return nil
	}
	add := func(from time.Time, limit time.Duration) {
		at = append(at, clock.deadline(from, limit), clock.deadline(from, limit+clock.probation()))
	}
	if u.StartedAt != nil && u.HeldAt == nil {
		add(u.StartedAt.Time, clock.updateTime())
	}
	c := w.children.find(w.zoneOf(u).index, w.record.UpdateVersion)
	if c != nil && u.CanaryAt != nil && u.GoodAt == nil && w.record.Phase == v1alpha1.PhaseCanary {
		add(watchedSince(u, c), clock.canaryTime())
	}
	return at
}

// allowed is a time that is allowed, and the probation if all is Ready that must be.
func (b *recorder) allowed(limit time.Duration) time.Duration {
	if b.allServe() {
		return limit + b.w.clock().probation()
	}
	return limit
}

// allServe reports whether all pods serve that the phase waits for.
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

// unsettled says why an upgrade from a version cannot begin yet; "" if it can. One
// that restarts its pods has one down, and the upgrade would take another.
func (s standing) unsettled() string {
	if why := s.notReady(); why != "" {
		return why
	}
	for _, c := range s.children() {
		if rolls(c.set) && !holdsBack(&c.set.Spec.UpdateStrategy) {
			return fmt.Sprintf("%s restarts its pods", c.set.Name)
		}
	}
	return ""
}

// split reports whether ordinals of a version are with others, or on their way.
func (s standing) split() bool {
	return slices.ContainsFunc(s.children(), func(c *child) bool {
		beside := func(other *child) bool { return other.zone == c.zone && other.version != c.version }
		return !c.hasAll(s.replicas) && slices.ContainsFunc(s.world.children, beside)
	})
}

// holdsPods says why pods of a version must not be restarted now; "" if they may.
// While an ordinal changes hands its pod is down, and no other may be. A claim that
// was deleted goes with its pod, whatever the pod's version.
func (w *world) holdsPods(number int64) string {
	if w.standing(w.set.Status.CurrentVersion).split() && !w.standing(number).onTrial() {
		return "ordinals change hands"
	}
	if why := w.storage().unconsented(); why != "" {
		return "they wait until " + why
	}
	if name := w.storage().anyDeletedClaim(); name != "" {
		return fmt.Sprintf("claim %s was deleted, and its data is lost when its pod ends", name)
	}
	return ""
}

// onTrial reports whether a version has canaries, and none that is good yet. They may be
// restarted, which may be their cure: no second ordinal is taken for such a one.
func (s standing) onTrial() bool {
	now := &s.set.Status
	if s.number != now.UpdateVersion || now.Phase != v1alpha1.PhaseCanary || now.Update == nil || now.Update.Returning {
		return false
	}
	return !slices.ContainsFunc(s.world.children.ofVersion(s.number), func(c *child) bool { return s.proven(c) > 0 })
}

// absent says which ordinal of a zone has no pod that serves, but for one; "" if all
// have. On a way back one that had its time holds up nothing: what is bad stays bad.
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

// absentOn says why an ordinal of a version does not serve; "" if it does, or will not.
func (w *world) absentOn(z zone, ordinal int32, owner int64, back bool) string {
	c := w.children.find(z.index, owner)
	switch {
	case c == nil && w.inTransit(z, ordinal):
		return fmt.Sprintf("ordinal %d%s has changed hands", ordinal, z.in())
	case c == nil, w.clock().available(c.pods[ordinal]):
		return ""
	case back && w.clock().hadItsTime(c.pods[ordinal]):
		return ""
	}
	return fmt.Sprintf("%s-%d is available", c.set.Name, ordinal)
}

// inTransit reports whether an ordinal without an owner will soon have one: its old pod
// does not hang.
func (w *world) inTransit(z zone, ordinal int32) bool {
	stuck := func(p podOfOrdinal) bool {
		orphan := !p.owned && !podstate.Terminating(p.pod)
		return p.isOn(z, ordinal) && (orphan || w.clock().hangs(p.pod))
	}
	return !slices.ContainsFunc(w.pods, stuck)
}

// notReady says what of a version is not available; "" if all is.
func (s standing) notReady() string {
	for _, c := range s.children() {
		if n := s.serving(c); n < s.replicas {
			return fmt.Sprintf("%s has %d of %d pods available", c.set.Name, n, s.replicas)
		}
	}
	return ""
}

// unreturned says what versions other than that one still have, or what it lacks; "" if
// it has all.
func (s standing) unreturned() string {
	return cmp.Or(s.stillElsewhere(), s.notGotBack())
}

// stillElsewhere names a StatefulSet of another version that has pods of a zone in
// which they could be given back.
func (s standing) stillElsewhere() string {
	known := s.known(s.number)
	elsewhere := func(c *child) bool {
		if c.version == s.number || c.empty() || !s.wanted(c.zone) {
			return false
		}
		return known || s.world.children.find(c.zone, s.number) != nil
	}
	if c, some := first(s.world.children, elsewhere); some {
		return fmt.Sprintf("%s still has pods", c.set.Name)
	}
	return ""
}

// notGotBack names a StatefulSet of a version that does not have all ordinals.
func (s standing) notGotBack() string {
	if c, some := first(s.children(), func(c *child) bool { return !c.hasAll(s.replicas) }); some {
		return fmt.Sprintf("%s does not have all its ordinals yet", c.set.Name)
	}
	return ""
}
