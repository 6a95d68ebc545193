package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Clock evaluates pods by the durations of a spec. There are three levels: a pod is Healthy if it is
// Ready and not terminating, Available after minReadySeconds in addition, and Proven after its probation.
// Time during which this process did not watch the cluster is not counted, neither for a pod nor against
// it.
type Clock struct {
	Now   time.Time
	Watch leadership.Watch
	Spec  *v1alpha1.ExtendedStatefulSetSpec
}

// Clock returns the clock of a pass.
func (w *World) Clock() Clock { return Clock{w.Now, w.Watch, &w.Set.Spec} }

// MinReady returns minReadySeconds.
func (c Clock) MinReady() time.Duration {
	return time.Duration(c.Spec.Template.Spec.MinReadySeconds) * time.Second
}

// CanaryTime returns canaryWatchTime.
func (c Clock) CanaryTime() time.Duration {
	if d := c.Spec.UpdateStrategy.CanaryWatchTime; d != nil {
		return d.Duration
	}
	return spec.DefaultCanaryWatch
}

// UpdateTime returns updateWatchTime.
func (c Clock) UpdateTime() time.Duration {
	if d := c.Spec.UpdateStrategy.UpdateWatchTime; d != nil {
		return d.Duration
	}
	return spec.DefaultUpdateWatch
}

// Probation returns how long a pod of a new version must have been Ready to count as good:
// minReadySeconds if it is set, else MaxProbation, or half of canaryWatchTime if that is shorter.
func (c Clock) Probation() time.Duration {
	if d := c.MinReady(); d > 0 {
		return d
	}
	return min(spec.MaxProbation, c.CanaryTime()/2)
}

// Available reports whether a pod has been Ready for minReadySeconds and is not terminating. It returns
// false for a missing pod.
func (c Clock) Available(pod *corev1.Pod) bool {
	if pod == nil || podstate.Terminating(pod) {
		return false
	}
	ok, _ := podstate.Available(pod, c.MinReady(), c.Now)
	return ok
}

// Proven reports whether a pod has passed its probation.
func (c Clock) Proven(pod *corev1.Pod) bool { return Healthy(pod) && !c.ProvenAt(pod).After(c.Now) }

// ProvenAt returns when a Ready pod passes its probation. Time during which this process did not watch
// does not count as proof either: while the API server is unreachable, a kubelet cannot report that a
// pod is no longer Ready.
func (c Clock) ProvenAt(pod *corev1.Pod) time.Time {
	since, _ := podstate.Since(pod, corev1.PodReady)
	return c.Deadline(since, c.Probation())
}

// UnreadyTooLong reports whether a pod that is not Ready has been so for canaryWatchTime. For a Ready pod
// the result has no meaning. A missing pod may still be created, so it returns false.
func (c Clock) UnreadyTooLong(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	since, _ := podstate.Since(pod, corev1.PodReady)
	return c.RanOut(since, c.CanaryTime())
}

// hangs reports whether a pod has been terminating for longer than canaryWatchTime.
func (c Clock) hangs(pod *corev1.Pod) bool {
	return podstate.Terminating(pod) && c.RanOut(podstate.DeletedAt(pod), c.CanaryTime())
}

// RanOut reports whether limit has passed since from. Time during which this process did not watch is
// not counted, because events in it may have been missed.
func (c Clock) RanOut(from time.Time, limit time.Duration) bool {
	return c.Watch.Elapsed(from, c.Now) >= limit
}

// Deadline returns when RanOut becomes true.
func (c Clock) Deadline(from time.Time, limit time.Duration) time.Time {
	return c.Watch.Deadline(from, limit)
}

// In returns the duration from now to at. It is negative if at has passed.
func (c Clock) In(at time.Time) time.Duration { return at.Sub(c.Now) }

// Soonest returns the shorter of two durations. A duration of 0 or less means never.
func Soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b, 0)
	}
	return min(a, b)
}
