package status

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// MaxRevision is the max length of the name of a revision.
const MaxRevision = 40

// waitingForApproval reports that good canaries wait for approval.
func waitingForApproval(f *facts.Facts, _ *rules.Plan) facts.Notice {
	u := f.Record.Update
	if u == nil || u.HeldAt == nil || facts.GivenUp(f.Record) {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonWaitingForApproval, Message: fmt.Sprintf(
		"the canaries of version %d are good; waiting for approval of its revision: %s. To roll back, apply the template of version %d, which needs no approval",
		f.Record.UpdateVersion,
		approve(f.Set, record.UpdateRevision(f.Record)),
		f.Record.CurrentVersion,
	)}
}

// approve returns the command that approves a revision.
func approve(set *v1alpha1.ExtendedStatefulSet, revision string) string {
	return fmt.Sprintf(
		`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"approvedRevision":"%s"}}'`,
		set.Namespace,
		set.Name,
		revision,
	)
}

// strayApproval reports that the approved revision matches neither the current version nor the upgrade;
// "" if it matches.
func strayApproval(f *facts.Facts) string {
	if !spec.NeedsApproval(&f.Set.Spec) {
		return ""
	}
	approved, next := f.Set.Spec.ApprovedRevision, record.UpdateRevision(f.Record)
	current := record.RevisionName(f.Record.CurrentVersion, f.Record.CurrentDigest)
	if slices.Contains([]string{"", current, next}, approved) {
		return ""
	}
	return fmt.Sprintf(
		"; spec.approvedRevision %q is ignored: it is the revision of neither the current version nor the upgrade (%s)",
		excerpt.Of(approved, MaxRevision),
		next,
	)
}
