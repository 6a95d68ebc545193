package replicatedstatefulset

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Durations, where the user says none, and the least and the most that are heeded.
const (
	mostTime   = 24 * time.Hour
	mostWindow = 30 * 24 * time.Hour

	defaultInterval = time.Minute
	leastInterval   = 100 * time.Millisecond
	defaultTimeout  = 10 * time.Minute
	leastTimeout    = 10 * time.Second
	defaultWindow   = 10 * time.Minute
)

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
