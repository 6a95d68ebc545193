package status_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// TestApprovalIsTold verifies E36: there is one event for each step.
func TestApprovalIsTold(t *testing.T) {
	at := metav1.NewTime(fixture.Noon)
	in := func(phase v1alpha1.Phase, u v1alpha1.UpdateStatus) *v1alpha1.ExtendedStatefulSetStatus {
		u.Digest = "0123456789abcdef0"
		return &v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1, UpdateVersion: 2, Phase: phase, Update: &u}
	}
	canary := in(v1alpha1.PhaseCanary, v1alpha1.UpdateStatus{})
	waiting := in(v1alpha1.PhaseCanary, v1alpha1.UpdateStatus{GoodAt: &at, HeldAt: &at})
	on := in(v1alpha1.PhasePromoting, v1alpha1.UpdateStatus{Approved: true})
	next := in(v1alpha1.PhaseCanary, v1alpha1.UpdateStatus{Approved: true, Zone: "b"})
	for _, row := range []struct {
		was, now *v1alpha1.ExtendedStatefulSetStatus
		want     string
	}{
		{canary, waiting, "WaitingForApproval: the canaries of version 2 are good; waiting for approval of revision v2-0123456789abcdef"},
		{waiting, waiting, ""},
		{waiting, canary, ""},
		{waiting, on, "Approved: revision v2-0123456789abcdef was approved"},
		{on, next, ""},
	} {
		var got string
		for _, s := range status.StepsOf(row.was, row.now) {
			got += s.Reason + ": " + s.Text
		}
		if got != row.want {
			t.Errorf("from %s to %s: %q, want %q", status.RecordLine(canary, row.was), status.RecordLine(canary, row.now), got, row.want)
		}
	}
}
