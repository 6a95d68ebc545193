package record

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// FailureOf returns the recent failure in the member's pod. It returns nil if there is none.
func (r *Record) FailureOf(m Identity) *v1alpha1.Failure {
	for i := range r.Failures {
		x := &r.Failures[i]
		if x.UID == m.PodUID {
			return x
		}
		if x.Pod == m.Name && IsUnconfirmedStart(x) {
			return x
		}
	}
	return nil
}

// IsUnconfirmedStart reports whether a start ended with 0 and made no primary. Its pod was
// recreated because of it. The failure also counts for the next pod of that name.
func IsUnconfirmedStart(x *v1alpha1.Failure) bool {
	return x.Code == 0 && spec.StartsPrimary(x.Command)
}

// HasUnconfirmed reports whether it is on record that this start made no primary.
func (r *Record) HasUnconfirmed(c *v1alpha1.RunningCommand) bool {
	return slices.ContainsFunc(r.Failures, func(x v1alpha1.Failure) bool {
		return IsUnconfirmedStart(&x) && x.ContainerID == c.ContainerID
	})
}

// Fail records a failed command. code is 0 if the command ended with 0 and status contradicted it.
func (r *Record) Fail(o *Observed, c *v1alpha1.RunningCommand, code int) {
	r.addWarning(v1alpha1.EventMemberFailed, "%s of %s %s", c.Name, c.Pod, HowFailed(code))
	i := slices.IndexFunc(r.Failures, func(x v1alpha1.Failure) bool { return x.Pod == c.Pod })
	if i < 0 {
		i = len(r.Failures)
		r.Failures = append(r.Failures, v1alpha1.Failure{Pod: c.Pod})
	}
	x := &r.Failures[i]
	if !continues(x, c, code) || o.Now.Sub(x.Last.Time) > spec.FailureWindow(&o.Set.Spec) {
		*x = v1alpha1.Failure{Pod: c.Pod}
	}
	x.UID, x.ContainerID = c.UID, c.ContainerID
	x.Command, x.Code, x.Generation = c.Name, int32(code), o.Set.Generation
	x.Last = metav1.NewTime(o.Now)
	x.Count++
	x.Unclean = x.Unclean || spec.Starts(c.Name)
}

// continues reports whether a failure continues earlier ones: in the same pod, or as a start that
// made no primary in the replacement pod.
func continues(x *v1alpha1.Failure, c *v1alpha1.RunningCommand, code int) bool {
	again := IsUnconfirmedStart(x) && code == 0 && spec.StartsPrimary(c.Name)
	return again || x.UID == c.UID
}

// HowFailed returns the end of a message about a failed command.
func HowFailed(code int) string {
	if code == 0 {
		return "failed: it exited with 0, but status did not confirm it"
	}
	return fmt.Sprintf("failed with exit code %d", code)
}

// clearUnclean records that the program in a pod has stopped or runs as it should, so that the
// member needs no stop before its next start.
func (r *Record) clearUnclean(pod types.UID) {
	for i := range r.Failures {
		if r.Failures[i].UID == pod {
			r.Failures[i].Unclean = false
		}
	}
}

// removeLapsed removes the failures that no longer apply.
func (r *Record) removeLapsed(o *Observed) {
	for i := range o.Members {
		m := &o.Members[i]
		if runsAfterAll(r.stateOf(o, m), r.FailureOf(m.Identity)) {
			r.clearUnclean(m.PodUID)
		}
	}
	r.Failures = slices.DeleteFunc(
		r.Failures,
		func(x v1alpha1.Failure) bool { return r.hasLapsed(o, &x) },
	)
	slices.SortFunc(
		r.Failures,
		func(a, b v1alpha1.Failure) int { return strings.Compare(a.Pod, b.Pod) },
	)
}

// runsAfterAll reports whether a member with a failed start runs after all.
func runsAfterAll(now State, x *v1alpha1.Failure) bool {
	switch now {
	case Primary:
		return true
	case Secondary:
		return x != nil && x.Code == 0 && spec.Starts(x.Command)
	}
	return false
}

// hasLapsed reports whether a failure no longer applies.
func (r *Record) hasLapsed(o *Observed, x *v1alpha1.Failure) bool {
	if x.Code == OCFNotConfigured && x.Generation == o.Set.Generation {
		return false // a new pod does not correct the spec
	}
	if m := o.named(x.Pod); m != nil {
		if r.isDisproved(o, x, m) {
			return true
		}
		if NeedsStopIn(x, m.Identity) {
			return false
		}
	}
	if CannotRun(x, o.Set.Generation) {
		return false
	}
	return o.Now.Sub(x.Last.Time) > spec.FailureWindow(&o.Set.Spec)
}

// isDisproved reports whether a failure does not apply to the member's current pod. A start that
// made no primary applies to replacement pods too, until the member becomes primary or the spec is
// edited.
func (r *Record) isDisproved(o *Observed, x *v1alpha1.Failure, m *ObservedMember) bool {
	if IsUnconfirmedStart(x) {
		return (r.stateOf(o, m) == Primary && !m.Terminating) || x.Generation != o.Set.Generation
	}
	return m.PodUID != x.UID
}

// NeedsStopIn reports whether the member must be stopped before its next start because of a
// failure. The stop is not needed in another container, because the failed start ended with the old
// one.
func NeedsStopIn(x *v1alpha1.Failure, m Identity) bool {
	return x.Unclean && x.ContainerID == m.Container
}

// CannotRun reports whether the exit code of a command reported that the member cannot work in its
// pod. It applies as long as the spec is unchanged.
func CannotRun(x *v1alpha1.Failure, generation int64) bool {
	return x.Code >= ocfArgs && x.Code <= ocfInstalled && x.Generation == generation
}
