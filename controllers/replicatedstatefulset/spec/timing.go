package spec

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Bounds and defaults of durations in the spec.
const (
	MaxTime   = 24 * time.Hour
	MaxWindow = 30 * 24 * time.Hour

	DefaultInterval = time.Minute
	MinInterval     = 100 * time.Millisecond
	DefaultTimeout  = 10 * time.Minute
	MinTimeout      = 10 * time.Second
	DefaultWindow   = 10 * time.Minute
)

// Timeouts of the operator itself. timing_test.go lists which must be shorter than which. Those
// marked * count only time in which this process could observe the cluster; the others use the
// clock.
const (
	// AnswersWithin* is how long status may fail to answer before the member counts as
	// unresponsive. It does not depend on the timeout of the command.
	AnswersWithin = 30 * time.Second
	// UnreadyAfter is how long the pod of a primary may be unready before manual intervention is
	// requested. A program may need a moment between its start and its first client.
	UnreadyAfter = time.Minute
	// FreshFor is how long the sequence of a running member counts as current.
	FreshFor = 30 * time.Second
	// MaxPause is the max delay before an unanswered query or a failed start is retried.
	MaxPause = 30 * time.Second

	// SettleWithin* is how long status may contradict a command that ended with 0, because the
	// program may need a moment to start or stop. But exec may also return 0 for a process that
	// still runs (kubernetes#73056). After this time a command that may make a primary has an
	// unknown outcome; any other has failed.
	SettleWithin = 30 * time.Second
	// RefusedFor* is how much longer a refusal of the API server counts as temporary, for example
	// while RBAC rules are being changed.
	RefusedFor = time.Minute
	// StrayAfter is how long after its latest start time a command may still reach a replacement
	// container, because the API server finds the pod by its name, and the kubelet finds the
	// container by its name. Commands are not accepted later than podexec.MaxDial after that time.
	// The rest is a margin for a kubelet that has not yet reported the restart of the container.
	StrayAfter = 10 * time.Second

	// HandoverPause is how long no handover is attempted for a primary that handed its role over to
	// leave its Node, and got it back.
	HandoverPause = time.Minute
	// EvictionFor is how long after a requested eviction a primary counts as one that should leave.
	// EvictionNoted is how long a request is not recorded again.
	EvictionFor   = 2 * time.Minute
	EvictionNoted = 30 * time.Second
	// EvictionEvery is the min time between two evictions without a cordon that move a role of one
	// set. Otherwise a requester who may evict pods, but not delete them, could move it
	// continuously.
	EvictionEvery = 5 * time.Minute
	// WebhookRetry is the delay before a failed write of the webhook configuration is retried.
	WebhookRetry = 2 * time.Second

	// ReturnsWithin* is how long after the loss of the last primary the operator waits for members
	// that were lost at the same time. A pod is recreated, and a container restarted, within
	// seconds.
	ReturnsWithin = time.Minute
	// SurplusAfter* is how long the StatefulSet controller has to delete the pods of members that
	// were scaled down, while others are missing.
	SurplusAfter = 10 * time.Second
	// TrialPause is how long after a refused dry run no member is stopped to be recreated.
	TrialPause = 30 * time.Second
	// FenceAfter* is how long a Node must be missing before its machine counts as off.
	FenceAfter = time.Minute
	// FencedFor* is how long a kubelet may report that a container runs that has ended with its Lease.
	FencedFor = time.Minute
	// ResizeWithin* is how long the kubelet may take to resize a pod before the pod is recreated.
	// It covers a Node that has no room now.
	ResizeWithin = 5 * time.Minute
	// MinPodAge is the min age of a pod that is recreated because of failed starts. A failure that
	// occurs in every pod does not recreate one after the other.
	MinPodAge = time.Minute
	// ClocksDiffer is the max assumed skew between the clocks of API servers, which set creation
	// timestamps.
	ClocksDiffer = 10 * time.Second

	// Patience* is the max duration of the ordered stop of a deleted object before all its pods are
	// deleted at once. After twice this time the operator waits for none.
	Patience = 10 * time.Minute

	// MendPause is the delay between two patches of a child that no new spec caused.
	MendPause = 5 * time.Second
	// ConflictRequeue is the delay before a pass is retried after a conflict. WriteRequeue is the
	// delay after a pass that wrote something, a safety net in case a watch event is lost.
	ConflictRequeue = 50 * time.Millisecond
	WriteRequeue    = 5 * time.Second
)

// UnresponsiveAfter is how many consecutive status commands must stay unanswered before a member is
// given up. It takes half a minute plus the duration of the commands. Commands that an outage of
// the API server kept from being sent do not count.
const UnresponsiveAfter = 5

// Backoff returns the backoff before an unanswered query is retried.
func Backoff(tries int) time.Duration {
	return min(time.Second<<max(0, min(tries-1, 10)), MaxPause)
}

// StrayUntil returns when a recorded command, or the start for which a grant was given, can no
// longer begin in any container. within is how long after the decision the command was allowed to
// begin. If it is nil, it is podexec.Hurry.
func StrayUntil(decided metav1.MicroTime, within *metav1.Duration) time.Time {
	hurry := podexec.Hurry
	if within != nil {
		hurry = within.Duration
	}
	return decided.Add(hurry + StrayAfter)
}

// DurationForm is the grammar of v1alpha1.Duration. The CRD schema has it too.
var DurationForm = regexp.MustCompile(`^([0-9]+|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)?)$`)

var (
	errNoDuration   = errors.New("is not a duration; use a format like 30s, 15m, 1h30m, 1D2h or 500ms, or a number of seconds like 8")
	errLongDuration = errors.New("is too long; the max is 292 years")
)

// ParseDuration parses a duration in the grammar of v1alpha1.Duration.
func ParseDuration(text string) (time.Duration, error) {
	parts := DurationForm.FindStringSubmatch(text)
	if parts == nil || text == "" {
		return 0, errNoDuration
	}
	if seconds := parts[1]; validSeconds(seconds) {
		return times(seconds, time.Second)
	}
	const day = 24 * time.Hour
	var sum time.Duration
	for i, unit := range []time.Duration{365 * day, 30 * day, day} {
		part, err := times(strings.TrimRight(parts[2+i], "YMD"), unit)
		if sum += part; err != nil || sum < 0 {
			return 0, errLongDuration
		}
	}
	if rest := strings.TrimPrefix(parts[5], "T"); rest != "" {
		part, err := time.ParseDuration(rest)
		if sum += part; err != nil || sum < 0 {
			return 0, errLongDuration // no other error is possible here
		}
	}
	return sum, nil
}

// validSeconds reports whether the text is a number without a unit.
func validSeconds(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// times multiplies a unit by a number. It returns 0 for no digits.
func times(digits string, unit time.Duration) (time.Duration, error) {
	if digits == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0, errLongDuration
	}
	return time.Duration(n) * unit, nil
}

// DurationOr returns the duration, limited to least and most. It returns other if the duration is
// zero, empty, or invalid and not rejected by admission.
func DurationOr(text v1alpha1.Duration, other, least, most time.Duration) time.Duration {
	if d, err := ParseDuration(string(text)); err == nil && d > 0 {
		return min(max(d, least), most)
	}
	return other
}

// ReconcileInterval returns spec.reconcileInterval within its bounds, or the default.
func ReconcileInterval(spec *v1alpha1.ReplicatedStatefulSetSpec) time.Duration {
	return DurationOr(spec.ReconcileInterval, DefaultInterval, MinInterval, MaxTime)
}

// FailureWindow returns spec.failureWindow within its bounds, or the default.
func FailureWindow(spec *v1alpha1.ReplicatedStatefulSetSpec) time.Duration {
	return DurationOr(spec.FailureWindow, DefaultWindow, 0, MaxWindow)
}

// TimeoutOf returns the timeout of a command.
func TimeoutOf(command v1alpha1.Command) time.Duration {
	return DurationOr(command.Timeout, DefaultTimeout, MinTimeout, MaxTime)
}
