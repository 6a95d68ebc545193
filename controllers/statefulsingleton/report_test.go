package statefulsingleton

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

var (
	pods      = corev1.Resource("pods")
	overtaken = apierrors.NewConflict(pods, "a", errors.New("the object has been modified"))
	forbidden = apierrors.NewForbidden(pods, "a", errors.New("a policy of another client"))
	noAnswer  = apierrors.NewServerTimeout(pods, "patch", 1)
)

// reported returns the result of Reconcile after a pass in which one write had that
// outcome, and condition Degraded after it.
func reported(t *testing.T, s *stage, ended error) (after time.Duration, degraded string, err error) {
	t.Helper()
	ctx, o := context.Background(), s.operators[0]
	w, err := o.Reconciler.Reader.Observe(ctx, fixture.Key)
	if err != nil {
		t.Fatal(err)
	}
	f := facts.Derive(w)
	p := rules.Decide(f)
	write := action.Action{Verb: action.Patch, Object: &corev1.Pod{}, Reason: rules.ReasonProtect}
	result, err := o.Reconciler.Reporter.Report(ctx, fixture.Key, f, &p, []action.Outcome{{Action: write, Err: ended}}).Result()
	if c := meta.FindStatusCondition(s.Object().Status.Conditions, v1.ConditionDegraded); c != nil {
		degraded = c.Reason
	}
	return result.RequeueAfter, degraded, err
}

// TestAnErrorIsToldFromAConflict checks that an error of the API server is retried with
// backoff and reported, and that a conflict, which only means that an object has changed,
// is retried at once.
func TestAnErrorIsToldFromAConflict(t *testing.T) {
	for _, r := range []struct {
		name     string
		ended    []error // in consecutive passes
		after    time.Duration
		fails    bool
		degraded string
		told     int
	}{
		{"a conflict", []error{overtaken, overtaken, overtaken}, spec.Again, false, v1.ReasonHealthy, 0},
		{"a pod that was deleted", []error{apierrors.NewNotFound(pods, "a")}, spec.Again, false, v1.ReasonHealthy, 0},
		{"a successful write", []error{nil}, spec.AfterActs, false, v1.ReasonHealthy, 0},
		{"an unavailable API server", []error{noAnswer, noAnswer, noAnswer}, 0, true, v1.ReasonHealthy, 0},
		{"one refusal, which a terminating pod can cause", []error{forbidden}, 0, true, v1.ReasonHealthy, 0},
		{"two refusals", []error{forbidden, forbidden}, 0, true, v1.ReasonWriteRefused, 1},
		{"many refusals are reported once", []error{forbidden, forbidden, forbidden, forbidden}, 0, true, v1.ReasonWriteRefused, 1},
	} {
		t.Run("S24 "+r.name, func(t *testing.T) {
			s := newStage(t, 1)
			for _, act := range []act{makeObject(), makeDeployment(1, rolling)} {
				act.do(s)
				s.settle(4 * time.Second)
			}
			var after time.Duration
			var err error
			var degraded string
			for _, ended := range r.ended {
				after, degraded, err = reported(t, s, ended)
			}
			if after != r.after || (err != nil) != r.fails || degraded != r.degraded {
				t.Errorf("requeued after %s, with error %v, and Degraded %s; want %s, %t, %s", after, err, degraded, r.after, r.fails, r.degraded)
			}
			if told := toldOf(s.operators[0], v1.EventWriteRefused); told != r.told {
				t.Errorf("%d events, want %d", told, r.told)
			}
			if !r.fails {
				return
			}
			react(s.operators[0])
			s.settle(4 * time.Second)
			if c := meta.FindStatusCondition(s.Object().Status.Conditions, v1.ConditionDegraded); c.Reason != v1.ReasonHealthy {
				t.Errorf("after a pass without a refusal, Degraded still has message %s", c.Message)
			}
		})
	}
}

// toldOf returns the number of events with that reason.
func toldOf(o *simulate.Operator, reason string) (count int) {
	for _, line := range o.Events {
		if strings.HasPrefix(line, reason+":") {
			count++
		}
	}
	return count
}

// TestV7EventsComeAfterTheirWrite checks that an event for a new status is emitted once,
// after the status was written.
func TestV7EventsComeAfterTheirWrite(t *testing.T) {
	s := newStage(t, 1)
	o := s.operators[0]
	makeDeployment(3, rolling).do(s)
	for range 200 {
		s.moveOne()
	}
	for _, b := range s.Bodies {
		if b.Main != simulate.AtWork {
			s.Fatal(t, "three programs should run")
		}
	}
	refused := 0
	s.failing = func(_ int, a action.Action) (before, after error) {
		if a.Verb == action.PatchStatus && refused < 5 {
			refused++
			return overtaken, nil
		}
		return nil, nil
	}
	makeObject().do(s)
	for range 100 {
		o.Woken = true // a user edits the object repeatedly
		react(o)
		if written := len(s.Object().Status.Conditions) > 0; !written && toldOf(o, v1.EventSeveralRunning) > 0 {
			t.Fatal("the event was emitted before the status was updated")
		}
	}
	if told := toldOf(o, v1.EventSeveralRunning); refused != 5 || told != 1 {
		t.Errorf("after %d conflicts there are %d events: %q", refused, told, o.Events)
	}
	if i := slices.IndexFunc(o.Events, func(line string) bool { return strings.Contains(line, "web-1-a, web-1-b, web-1-c") }); i < 0 {
		t.Errorf("the event does not list them: %q", o.Events)
	}
}

// TestV14AnEventTells checks that one pod from before the object causes one event, and that
// several pods cause one event together.
func TestV14AnEventTells(t *testing.T) {
	for pods, want := range map[int32]string{1: v1.EventUnmanagedPod, 3: v1.EventSeveralRunning} {
		s := newStage(t, 1)
		o := s.operators[0]
		makeDeployment(pods, rolling).do(s)
		s.settle(4 * time.Second)
		makeObject().do(s)
		s.settle(4 * time.Second)
		for range 3 {
			o.Woken = true
			react(o)
		}
		if len(o.Events) != 1 || toldOf(o, want) != 1 {
			t.Errorf("%d pods older than the object: events %q, want one %s", pods, o.Events, want)
		}
	}
}
