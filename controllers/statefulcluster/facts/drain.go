package facts

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Leaves reports whether a member is on a cordoned Node and will be retired when a new one is
// available.
func (f *Facts) Leaves(m *Member) bool {
	return f.ReplacesFirst() && m.Node.Cordoned && f.StayReason == ""
}

// stayReason returns the reason why new members could start on a cordoned Node; "" if they cannot.
// They and their successors would have to leave again. Admission validates the current template,
// but new members get an older one while a partition keeps members at it.
func (f *Facts) stayReason() string {
	if !f.ReplacesFirst() || f.Partition() == 0 {
		return ""
	}
	current, ok := children.DataOf(f.Named(f.Set.Status.CurrentRevision))
	if !ok || !spec.StartsOnCordoned(&current.Template.Spec) {
		return ""
	}
	return fmt.Sprintf("new members could start there again, because rollingUpdate.partition keeps members at revision %s, whose template sets nodeName or tolerates cordoned nodes; lower the partition",
		f.Set.Status.CurrentRevision)
}

// waitsForRoom reports whether an unschedulable member is a new one in a set whose Nodes are being
// drained. Its replacement would be unschedulable too, and each would leave claims.
func (f *Facts) waitsForRoom(l Loss) bool {
	return f.draining && l.Reason == v1alpha1.LossPending && !l.HasRun()
}
