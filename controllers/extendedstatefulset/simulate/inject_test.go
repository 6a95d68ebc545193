package simulate_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
)

func TestInject(t *testing.T) {
	alone := children.Zone{Index: children.NoZone}
	pod := fixture.NewPod(fixture.Volumes(), alone, 2)
	incoming, why := simulate.Inject(pod)
	if why != "" || incoming.Name != "db-v2-2" || pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-2" || pod.Spec.Hostname != "db-2" {
		t.Errorf("the webhook returns %q, and the pod is %+v", why, pod)
	}
	stray := fixture.NewPod(fixture.Volumes(), alone, 2)
	stray.OwnerReferences = nil
	if _, why := simulate.Inject(stray); why != "its controller is not StatefulSet db-v2" || stray.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "db-unassigned" {
		t.Errorf("the webhook returns %q, and the pod is %+v", why, stray)
	}
}
