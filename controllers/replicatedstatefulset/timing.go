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

// What the user may say, and what counts where he says nothing.
const (
	mostTime   = 24 * time.Hour
	mostWindow = 30 * 24 * time.Hour

	defaultInterval = time.Minute
	leastInterval   = 100 * time.Millisecond
	defaultTimeout  = 10 * time.Minute
	leastTimeout    = 10 * time.Second
	defaultWindow   = 10 * time.Minute
)

// How long the operator itself waits. What must be shorter than what is in
// timing_test.go. Those marked * count the time in which an operator could look, the
// others that of the clock.
const (
	// answersWithin* is how long status may not answer before the member counts as one
	// that does not. It does not depend on the timeout of the command.
	answersWithin = 30 * time.Second
	// unreadyAfter is how long the pod of a primary may not be Ready before a person is
	// called. A program may need a moment between its start and its first client.
	unreadyAfter = time.Minute
	// freshFor is how long the sequence of a member that runs is taken for new.
	freshFor = 30 * time.Second
	// mostPause is the longest pause before a question without an answer is asked again,
	// or a start is tried again that failed.
	mostPause = 30 * time.Second

	// settleWithin* is how long after a command that ended with 0 status may say
	// something else: the program may need a moment to start, or to stop. But exec may
	// also say 0 of a process that goes on (kubernetes#73056), so one that may make a
	// primary is taken for one then whose end was not seen. Any other has failed.
	settleWithin = 30 * time.Second
	// refusedFor* is how much longer a refusal of the API server is taken for a moment's,
	// as while rights are being changed.
	refusedFor = time.Minute
	// strayAfter is how long after a command may begin at the latest it may reach a
	// container that took the place of the one that was meant: the API server finds the
	// pod by its name, and the kubelet the container by its. Commands are not accepted
	// later than podexec.MostDial after that; the rest is for a kubelet that has not told
	// yet that it restarted the container.
	strayAfter = 10 * time.Second

	// handoverPause is how long a primary is left alone that handed its role over since it is
	// to leave its Node, and got it back.
	handoverPause = time.Minute
	// evictionFor is how long a primary counts as one that is to leave, after its eviction was
	// asked for. evictionNoted is for how long that is not written again.
	evictionFor   = 2 * time.Minute
	evictionNoted = 30 * time.Second
	// evictionEvery is the time between two evictions without a cordon that move a role of one
	// set: who may evict pods, and not delete them, could have it move all the time.
	evictionEvery = 5 * time.Minute
	// webhookRetry is when the configuration of webhooks is looked at again that could not be
	// written.
	webhookRetry = 2 * time.Second

	// returnsWithin* is how long after the loss of the last primary members are awaited
	// that went together with it: a pod is made again within seconds, and a container
	// started again.
	returnsWithin = time.Minute
	// surplusAfter* is how long the controller of the StatefulSet has to delete the pods of
	// members that were scaled down, while others are missing.
	surplusAfter = 10 * time.Second
	// trialPause is how long after a refused dry run no member is taken down to be recreated.
	trialPause = 30 * time.Second
	// fenceAfter* is for how long a Node must be gone before its machine counts as off.
	fenceAfter = time.Minute
	// resizeWithin* is how long the kubelet may take to change the resources of a pod, before
	// that is recreated. It stands for a Node that has no room now.
	resizeWithin = 5 * time.Minute
	// minPodAge is how old a pod has to be before it is recreated for starts that failed:
	// what fails in every pod does not recreate one after the other.
	minPodAge = time.Minute
	// clocksDiffer is how far the clocks of API servers may be apart, by which pods and
	// objects are dated.
	clocksDiffer = 10 * time.Second

	// patience* is how long the orderly stop of a deleted object may take at most, before
	// its pods are deleted all at once; after twice as long none is waited for.
	patience = 10 * time.Minute

	// mendPause is the delay between two patches of a child that no new spec caused.
	mendPause = 5 * time.Second
	// soon is when a pass is made again that another overtook, afterActs one that wrote
	// something, should the event of that get lost.
	soon      = 50 * time.Millisecond
	afterActs = 5 * time.Second
)

// unresponsiveAfter is how often in a row status did not answer of a member that is given
// up: half a minute, and the time of the commands. What an outage of the API server kept
// from being sent does not count.
const unresponsiveAfter = 5

// again is how long an unanswered question waits before it is asked again.
func again(tries int) time.Duration {
	return min(time.Second<<max(0, min(tries-1, 10)), mostPause)
}

// strayUntil is when a command of the record, or the start that a grant was given for,
// reaches no container any more. The record says how long it had to begin.
func strayUntil(decided metav1.MicroTime, within *metav1.Duration) time.Time {
	hurry := podexec.Hurry
	if within != nil {
		hurry = within.Duration
	}
	return decided.Add(hurry + strayAfter)
}

// durationForm is the grammar of v1alpha1.Duration; the schema has it too.
var durationForm = regexp.MustCompile(`^([0-9]+|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)?)$`)

var (
	errNoDuration   = errors.New("is no duration; write it like 30s, 15m, 1h30m, 1D2h or 500ms, or as a number of seconds like 8")
	errLongDuration = errors.New("is too long; the longest is 292 years")
)

// parseDuration reads a duration in the grammar of v1alpha1.Duration.
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
			return 0, errLongDuration // nothing else can be wrong with it
		}
	}
	return sum, nil
}

// validSeconds tells a number without a unit from the other form.
func validSeconds(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// times is that many of a unit; none for no digits.
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

// durationOr is a duration, no less than the least and no more than the most, or the
// other where it says none: zero, nothing, or what cannot be read and slipped past
// admission.
func durationOr(text v1alpha1.Duration, other, least, most time.Duration) time.Duration {
	if d, err := parseDuration(string(text)); err == nil && d > 0 {
		return min(max(d, least), most)
	}
	return other
}

func reconcileInterval(spec *v1alpha1.ReplicatedStatefulSetSpec) time.Duration {
	return durationOr(spec.ReconcileInterval, defaultInterval, leastInterval, mostTime)
}

func failureWindow(spec *v1alpha1.ReplicatedStatefulSetSpec) time.Duration {
	return durationOr(spec.FailureWindow, defaultWindow, 0, mostWindow)
}

// timeoutOf is how long a command may take.
func timeoutOf(command v1alpha1.Command) time.Duration {
	return durationOr(command.Timeout, defaultTimeout, leastTimeout, mostTime)
}
