package replicatedstatefulset

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
	maxTime   = 24 * time.Hour
	maxWindow = 30 * 24 * time.Hour

	defaultInterval = time.Minute
	minInterval     = 100 * time.Millisecond
	defaultTimeout  = 10 * time.Minute
	minTimeout      = 10 * time.Second
	defaultWindow   = 10 * time.Minute
)

// Timeouts of the operator itself. timing_test.go lists which must be shorter than which. Those
// marked * count only time in which this process could observe the cluster; the others use the
// clock.
const (
	// answersWithin* is how long status may fail to answer before the member counts as
	// unresponsive. It does not depend on the timeout of the command.
	answersWithin = 30 * time.Second
	// unreadyAfter is how long the pod of a primary may be unready before manual intervention is
	// requested. A program may need a moment between its start and its first client.
	unreadyAfter = time.Minute
	// freshFor is how long the sequence of a running member counts as current.
	freshFor = 30 * time.Second
	// maxPause is the max delay before an unanswered query or a failed start is retried.
	maxPause = 30 * time.Second

	// settleWithin* is how long status may contradict a command that ended with 0, because the
	// program may need a moment to start or stop. But exec may also return 0 for a process that
	// still runs (kubernetes#73056). After this time a command that may make a primary has an
	// unknown outcome; any other has failed.
	settleWithin = 30 * time.Second
	// refusedFor* is how much longer a refusal of the API server counts as temporary, for example
	// while RBAC rules are being changed.
	refusedFor = time.Minute
	// strayAfter is how long after its latest start time a command may still reach a replacement
	// container, because the API server finds the pod by its name, and the kubelet finds the
	// container by its name. Commands are not accepted later than podexec.MaxDial after that time.
	// The rest is a margin for a kubelet that has not yet reported the restart of the container.
	strayAfter = 10 * time.Second

	// handoverPause is how long no handover is attempted for a primary that handed its role over to
	// leave its Node, and got it back.
	handoverPause = time.Minute
	// evictionFor is how long after a requested eviction a primary counts as one that should leave.
	// evictionNoted is how long a request is not recorded again.
	evictionFor   = 2 * time.Minute
	evictionNoted = 30 * time.Second
	// evictionEvery is the min time between two evictions without a cordon that move a role of one
	// set. Otherwise a requester who may evict pods, but not delete them, could move it
	// continuously.
	evictionEvery = 5 * time.Minute
	// webhookRetry is the delay before a failed write of the webhook configuration is retried.
	webhookRetry = 2 * time.Second

	// returnsWithin* is how long after the loss of the last primary the operator waits for members
	// that were lost at the same time. A pod is recreated, and a container restarted, within
	// seconds.
	returnsWithin = time.Minute
	// surplusAfter* is how long the StatefulSet controller has to delete the pods of members that
	// were scaled down, while others are missing.
	surplusAfter = 10 * time.Second
	// trialPause is how long after a refused dry run no member is stopped to be recreated.
	trialPause = 30 * time.Second
	// fenceAfter* is how long a Node must be missing before its machine counts as off.
	fenceAfter = time.Minute
	// resizeWithin* is how long the kubelet may take to resize a pod before the pod is recreated.
	// It covers a Node that has no room now.
	resizeWithin = 5 * time.Minute
	// minPodAge is the min age of a pod that is recreated because of failed starts. A failure that
	// occurs in every pod does not recreate one after the other.
	minPodAge = time.Minute
	// clocksDiffer is the max assumed skew between the clocks of API servers, which set creation
	// timestamps.
	clocksDiffer = 10 * time.Second

	// patience* is the max duration of the ordered stop of a deleted object before all its pods are
	// deleted at once. After twice this time the operator waits for none.
	patience = 10 * time.Minute

	// mendPause is the delay between two patches of a child that no new spec caused.
	mendPause = 5 * time.Second
	// conflictRequeue is the delay before a pass is retried after a conflict. writeRequeue is the delay after a
	// pass that wrote something, a safety net in case a watch event is lost.
	conflictRequeue = 50 * time.Millisecond
	writeRequeue    = 5 * time.Second
)

// unresponsiveAfter is how many consecutive status commands must stay unanswered before a member is
// given up. It takes half a minute plus the duration of the commands. Commands that an outage of
// the API server kept from being sent do not count.
const unresponsiveAfter = 5

// backoff returns the backoff before an unanswered query is retried.
func backoff(tries int) time.Duration {
	return min(time.Second<<max(0, min(tries-1, 10)), maxPause)
}

// strayUntil returns when a recorded command, or the start for which a grant was given, can no
// longer reach a container. The record contains how long the command had to begin.
func strayUntil(decided metav1.MicroTime, within *metav1.Duration) time.Time {
	hurry := podexec.Hurry
	if within != nil {
		hurry = within.Duration
	}
	return decided.Add(hurry + strayAfter)
}

// durationForm is the grammar of v1alpha1.Duration. The CRD schema has it too.
var durationForm = regexp.MustCompile(`^([0-9]+|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)?)$`)

var (
	errNoDuration   = errors.New("is not a duration; use a format like 30s, 15m, 1h30m, 1D2h or 500ms, or a number of seconds like 8")
	errLongDuration = errors.New("is too long; the max is 292 years")
)

// parseDuration parses a duration in the grammar of v1alpha1.Duration.
func parseDuration(text string) (time.Duration, error) {
	parts := durationForm.FindStringSubmatch(text)
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

// durationOr returns the duration, limited to least and most. It returns other if the duration is
// zero, empty, or invalid and not rejected by admission.
func durationOr(text v1alpha1.Duration, other, least, most time.Duration) time.Duration {
	if d, err := parseDuration(string(text)); err == nil && d > 0 {
		return min(max(d, least), most)
	}
	return other
}

func reconcileInterval(spec *v1alpha1.ReplicatedStatefulSetSpec) time.Duration {
	return durationOr(spec.ReconcileInterval, defaultInterval, minInterval, maxTime)
}

func failureWindow(spec *v1alpha1.ReplicatedStatefulSetSpec) time.Duration {
	return durationOr(spec.FailureWindow, defaultWindow, 0, maxWindow)
}

// timeoutOf returns the timeout of a command.
func timeoutOf(command v1alpha1.Command) time.Duration {
	return durationOr(command.Timeout, defaultTimeout, minTimeout, maxTime)
}
