package causestest

import (
	"context"
	"strings"
	"testing"

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

// Row returns the row of the table that the sample is of.
func (s *Sample) Row(t *testing.T) *causes.Row {
	t.Helper()
	for i := range causes.Rows {
		if causes.Rows[i].Situation == s.Situation {
			return &causes.Rows[i]
		}
	}
	t.Fatalf("no row of %s", s.Situation)
	return nil
}

// RunsUnready reports whether the containers of the sample run, and only Ready is missing: that
// may pass within a moment, and a kind need not tell of it in condition Degraded.
func (s *Sample) RunsUnready(t *testing.T) bool { return s.Row(t).Seen == "condition Ready of the pod" }

// Check checks what an object says while a sample lasts: the cause in a condition of that type,
// which is True, with a command; that it is not Ready; Stalled where a person is needed, and
// only there; and what kstatus makes of it.
func (s *Sample) Check(t *testing.T, in string, object client.Object, all []metav1.Condition) {
	t.Helper()
	find := func(kind string) metav1.Condition {
		if c := meta.FindStatusCondition(all, kind); c != nil {
			return *c
		}
		t.Fatalf("%s: there is no condition %s", s.Situation, kind)
		return metav1.Condition{}
	}
	if !s.RunsUnready(t) {
		says := find(in)
		if says.Status != metav1.ConditionTrue {
			t.Errorf("%s: %s is %s %s: %s", s.Situation, in, says.Status, says.Reason, says.Message)
		}
		if !strings.Contains(says.Message, s.Shows) || !strings.Contains(says.Message, "kubectl ") {
			t.Errorf("%s: %s says %q, want %q and a command", s.Situation, in, says.Message, s.Shows)
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
		t.Errorf("%s: kstatus says %s, want %s", s.Situation, got, verdict)
	}
}

// verdictOf returns what kstatus makes of an object.
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

// Events is a client whose only events are these.
func Events(all ...corev1.Event) client.Reader {
	return interceptor.NewClient(nil, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		list.(*corev1.EventList).Items = all
		return nil
	}})
}
