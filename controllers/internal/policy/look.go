package policy

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Interval is how often policies are looked at: no watch tells of those of others.
const Interval = 15 * time.Second

// Look looks until ctx ends, at once and after each interval, or after retry while
// something is wrong. look says what is; "" is nothing. It is logged when it changes.
func Look(ctx context.Context, subject string, interval, retry time.Duration, look func() string) {
	said := ""
	for {
		problem := look()
		if problem != said && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Info(subject, "problem", problem)
			said = problem
		}
		next := interval
		if problem != "" {
			next = retry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// Problem is what a look that failed says is wrong; "" if it did not.
func Problem(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
