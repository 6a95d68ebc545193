package extendedstatefulset

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

func TestW18ConditionsSayWhoSuspendsAJob(t *testing.T) {
	const ours = `{"f:metadata":{"f:annotations":{"f:` + v1alpha1.AnnotationStarted + `":{}}},"f:spec":{"f:suspend":{}}}`
	const resume = `; to resume it: kubectl -n ns patch job db-pre-v2-1 --type=merge -p '{"spec":{"suspend":false}}'`
	for _, row := range []struct {
		name              string
		scene             *fixture.Scene
		progress, trouble string
	}{
		{"W18 another client suspends a job", fixture.BeforeUpdate(fixture.Started, fixture.ManagedBy("operator", `{"f:spec":{"f:template":{}}}`), fixture.ManagedBy("kubectl-patch", fixture.SuspendField)),
			"field manager kubectl-patch suspended it", "JobSuspended: the upgrade waits until Job db-pre-v2-1 is resumed: field manager kubectl-patch suspended it after the operator had started it" + resume},
		{"W18 a webhook suspends a job", fixture.BeforeUpdate(fixture.Started, fixture.ManagedBy("operator", ours)),
			"a webhook or policy suspended it", "JobSuspended: the upgrade waits until Job db-pre-v2-1 is resumed: a webhook or policy suspended it after the operator had started it" + resume},
		{"W18 a queue with a label suspends a job", fixture.BeforeUpdate(fixture.Queued), "waiting until Job db-pre-v2-1 is admitted: queue tests (label kueue.x-k8s.io/queue-name) keeps it suspended; to see why: kubectl -n ns get workloads", "Healthy: no problems detected"},
		{"W18 a queue without a label suspends a job", fixture.BeforeUpdate(fixture.Started, fixture.ManagedBy("kueue", fixture.SuspendField)), "waiting until Job db-pre-v2-1 is admitted: kueue keeps it suspended", "Healthy: no problems detected"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := row.scene.W
			cut, err := observe.CutJob(w.Jobs["db-pre-v2-1"])
			if err != nil {
				t.Fatal(err)
			}
			w.Jobs["db-pre-v2-1"] = cut.(*batchv1.Job) // as stored in the cache
			f, p := fixture.Decided(w)
			if c := status.Progressing(f, p); !strings.Contains(c.Message, row.progress) {
				t.Errorf("Progressing: %s", c.Message)
			}
			if c := status.Degraded(f, p); c.Reason+": "+c.Message != row.trouble {
				t.Errorf("Degraded: %s: %s", c.Reason, c.Message)
			}
		})
	}
}
