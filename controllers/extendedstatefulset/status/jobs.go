package status

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
)

// jobHeld reports a suspended Job that no queue will resume.
func jobHeld(f *facts.Facts, _ *rules.Plan) facts.Notice {
	job := facts.SuspendedJob(f)
	if job == nil || facts.IsQueued(job) {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonJobSuspended, Message: "the upgrade waits until " + facts.Suspension(job)}
}

// jobUnknown reports a Job whose result is unknown, and the two ways to continue.
func jobUnknown(f *facts.Facts, _ *rules.Plan) facts.Notice {
	a := facts.JobOfPhase(f)
	if a.From == nil || a.Record == nil || a.Record.Result != v1alpha1.JobUnknown {
		return facts.Notice{}
	}
	field := "postUpdateJob"
	if a.Which == children.PreJob {
		field = "preUpdateJob"
	}
	patch := func(strategy string) string {
		return fmt.Sprintf(`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"updateStrategy":{%s}}}'`, f.Set.Namespace, f.Set.Name, strategy)
	}
	return facts.Notice{Reason: v1alpha1.ReasonJobResultUnknown, Message: fmt.Sprintf(
		"Job %s was deleted before the operator observed its result, so it may have succeeded or failed. To continue as if it had succeeded: %s. To run it again: %s",
		a.Record.Name, patch(fmt.Sprintf(`"%s":{"onFailure":"Continue"}`, field)), patch(fmt.Sprintf(`"retryCount":%d`, f.Record.Attempts)))}
}
