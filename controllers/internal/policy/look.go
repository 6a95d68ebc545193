package policy

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Interval is the default interval of Look. Policies and webhook configurations are polled, because
// there is no watch for them.
const Interval = 15 * time.Second

// Look calls check immediately and then after each interval, until ctx ends. After a problem it waits
// for retry instead. check returns a description of the problem, or "". Look logs a problem of subject
// when it changes.
func Look(ctx context.Context, subject string, interval, retry time.Duration, check func() string) {
	look(ctx, subject, func() (string, time.Duration) {
		if problem := check(); problem != "" {
			return problem, retry
		}
		return "", interval
	})
}

// look is Look with a check that also returns the time until the next one.
func look(ctx context.Context, subject string, check func() (problem string, next time.Duration)) {
	logged := ""
	for {
		problem, next := check()
		if problem != logged && ctx.Err() == nil {
			log.FromContext(ctx).Info(subject, "problem", problem)
			logged = problem
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// Problem returns the text of an error, or "" if err is nil. It is a result for Look.
func Problem(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
