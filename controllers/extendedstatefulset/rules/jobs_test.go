package rules_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

func TestW18AJobIsStartedOnce(t *testing.T) {
	notNeeded := func(ago time.Duration) *fixture.Scene {
		return fixture.BeforeUpdate(fixture.Started, func(j *batchv1.Job) {
			j.Spec.Suspend = ptr.To(false)
			if ago > 0 {
				j.Annotations[v1alpha1.AnnotationStopped] = fixture.Noon.Add(-ago).Format(time.RFC3339)
			}
		}).But(func(w *facts.World) {
			w.Set.Status.Phase, w.Set.Status.Update.Reason = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed
		})
	}
	for _, row := range []fixture.Sentence{
		{"W18 a recorded job is started", fixture.BeforeUpdate(), "patch job db-pre-v2-1: Job, started\n"},
		{"W18 a job that another client suspended is not started again", fixture.BeforeUpdate(fixture.Started, fixture.ManagedBy("kubectl", fixture.SuspendField)), ""},
		{"W18 a job that a queue admits is not started by the operator", fixture.BeforeUpdate(fixture.Queued), ""},
		{"W18 a job that is no longer needed is suspended", notNeeded(0), "patch job db-pre-v2-1: Job, suspended: no longer needed\n"},
		{"W18 a job that another client resumes is not suspended again immediately", notNeeded(spec.StopInterval - time.Second), ""},
		{"W18 a job that another client resumes is suspended again after a minute", notNeeded(spec.StopInterval), "patch job db-pre-v2-1: Job, suspended: no longer needed\n"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
