package causestest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// Row returns the row of the sample in the table.
func (s *Sample) Row(t *testing.T) *causes.Row {
	t.Helper()
	for i := range causes.Rows {
		if causes.Rows[i].Situation == s.Situation {
			return &causes.Rows[i]
		}
	}
	t.Fatalf("no row for %s", s.Situation)
	return nil
}

// RunsUnready reports whether the containers of the sample run, but the pod is not Ready. This may be
// temporary, so a kind need not report it in condition Degraded.
func (s *Sample) RunsUnready(t *testing.T) bool {
	return causes.Cause{Word: s.Row(t).Word}.RunsUnready()
}

// Read returns the hindrances of pods at noon. It runs two passes, so that the events of the sample
// have been read.
func (s *Sample) Read(noon time.Time, pods []causes.Named) (h causes.Hindrances) {
	known := causes.Known{}
	for _, before := range []time.Duration{2 * time.Second, 0} {
		h = known.Read(context.Background(), Events(s.Told), noon.Add(-before), pods)
	}
	return h
}

// Check checks the conditions of an object while the situation of a sample lasts. The condition of type
// in must be True, with the cause and a command. Ready must be False. Stalled must be True if and only
// if manual intervention is required. kstatus must compute Failed in this case, and InProgress
// otherwise.
func (s *Sample) Check(t *testing.T, in string, object client.Object, all []metav1.Condition) {
	t.Helper()
	find := func(kind string) metav1.Condition {
		if c := meta.FindStatusCondition(all, kind); c != nil {
			return *c
		}
		t.Fatalf("%s: condition %s is missing", s.Situation, kind)
		return metav1.Condition{}
	}
	if !s.RunsUnready(t) {
		kept := find(in)
		if kept.Status != metav1.ConditionTrue {
			t.Errorf("%s: condition %s is %s %s: %s", s.Situation, in, kept.Status, kept.Reason, kept.Message)
		}
		if !strings.Contains(kept.Message, s.Shows) || !strings.Contains(kept.Message, "kubectl ") {
			t.Errorf("%s: condition %s is %q, want %q and a command", s.Situation, in, kept.Message, s.Shows)
		}
	}
	verdict, person := status.InProgressStatus, s.Row(t).Effect == kstatus.NeedsPerson
	if person {
		verdict = status.FailedStatus
	}
	stalled := find(kstatus.Stalled)
	if got := stalled.Status == metav1.ConditionTrue; got != person {
		t.Errorf("%s: Stalled is %s %s: %s", s.Situation, stalled.Status, stalled.Reason, stalled.Message)
	}
	if ready := find(kstatus.Ready); ready.Status != metav1.ConditionFalse {
		t.Errorf("%s: Ready is %s", s.Situation, ready.Status)
	}
	if got := verdictOf(t, object); got != verdict {
		t.Errorf("%s: kstatus computes %s, want %s", s.Situation, got, verdict)
	}
}

// verdictOf returns the status that kstatus computes for an object.
func verdictOf(t *testing.T, object client.Object) status.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	read := &unstructured.Unstructured{Object: content}
	read.SetAPIVersion("any/v1")
	read.SetKind("Any")
	result, err := status.Compute(read)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// Events returns a client that lists the given events.
func Events(all ...corev1.Event) client.Reader {
	return interceptor.NewClient(nil, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		list.(*corev1.EventList).Items = all
		return nil
	}})
}
