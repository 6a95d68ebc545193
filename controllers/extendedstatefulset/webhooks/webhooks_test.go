package webhooks_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
)

// TestWarnOfApproval verifies E36: an approved revision without effect causes a warning when it is
// written.
func TestWarnOfApproval(t *testing.T) {
	for _, row := range []struct {
		name, was, now string
		approval       v1alpha1.Approval
		want           string
	}{
		{"no revision", "", "", v1alpha1.ApprovalManual, ""},
		{"revision of the upgrade", "", "v2-a", v1alpha1.ApprovalManual, ""},
		{"another revision", "", "v3-a", v1alpha1.ApprovalManual, `spec.approvedRevision: "v3-a" is ignored because it is not the revision of an upgrade in progress; status.updateRevision is "v2-a"`},
		{"another revision, unchanged", "v3-a", "v3-a", v1alpha1.ApprovalManual, ""},
		{"a revision with approval Automatic", "", "v2-a", v1alpha1.ApprovalAutomatic, "spec.approvedRevision is ignored while spec.approval is Automatic"},
	} {
		old, set := fixture.Plain(), fixture.Plain()
		old.Status.UpdateRevision = "v2-a"
		old.Spec.ApprovedRevision, set.Spec.ApprovedRevision, set.Spec.Approval = row.was, row.now, row.approval
		if got := strings.Join(webhooks.WarnOfApproval(old, set), "|"); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	set := fixture.WithClaims(fixture.FakeSet(3))
	if got := webhooks.Warnings(set); got != nil {
		t.Errorf("unexpected warnings: %v", got)
	}
	set.Spec.Template.Namespace = "ns"
	set.Spec.Template.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	set.Spec.Template.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)}}
	if got := webhooks.Warnings(set); got != nil {
		t.Errorf("unexpected warnings for fields of an exported StatefulSet: %v", got)
	}
	set.Spec.Template.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
	if got := webhooks.Warnings(set); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
