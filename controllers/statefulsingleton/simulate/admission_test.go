package simulate

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// TestNewPodsGetTheGateOfPresentOnes checks that the image of the gate, and whether it is mounted, are those of the
// newest pod.
func TestNewPodsGetTheGateOfPresentOnes(t *testing.T) {
	object := fixture.Singleton("db")
	copies, mounts := fixture.Injected(t, newPod("a", ""), object), fixture.InjectedIn(t, newPod("b", ""), object, fixture.Mounting())
	for _, r := range []struct {
		name    string
		pods    []*corev1.Pod
		image   string
		mounted bool
	}{
		{"none", nil, unknownImage, false},
		{"a pod without a gate", []*corev1.Pod{newPod("c", "")}, unknownImage, false},
		{"a pod with a copy", []*corev1.Pod{copies}, fixture.GateImage, false},
		{"a pod with a mount", []*corev1.Pod{copies, mounts}, fixture.GateImage, true},
	} {
		if got := aroundOf(r.pods); got.Image != r.image || got.ImageVolumes != r.mounted {
			t.Errorf("%s: image %s, mounted %t", r.name, got.Image, got.ImageVolumes)
		}
	}
}

// TestRejectedPods checks that an owner whose pods the webhook rejects tries again after a change of the object.
func TestRejectedPods(t *testing.T) {
	d := newDeployment("shop", 1)
	d.Spec.Template.Spec.Containers[0].Command = nil // mode Binary requires a command
	c, o := run(t, func(s *v1.StatefulSingleton) { s.Spec.GateMode = v1.GateBinary }, d)
	set := Every[appsv1.ReplicaSet](c)[0]
	if len(roles(c)) > 0 || len(set.Status.Conditions) != 1 {
		t.Fatalf("conditions %v:\n%s", set.Status.Conditions, tail(c))
	}
	Edit(c, present(c), func(s *v1.StatefulSingleton) {
		s.Spec.GateMode = v1.GateInit
		s.Generation++
	})
	settle(t, c, o)
	if got := roles(c); !slices.Equal(got, []string{"shop-1-a one holder"}) || len(Every[appsv1.ReplicaSet](c)[0].Status.Conditions) > 0 {
		t.Errorf("pods %q:\n%s", got, tail(c))
	}
}

// TestClaimsOfOneNode checks that a claim counts as one that one node can mount, unless several can.
func TestClaimsOfOneNode(t *testing.T) {
	many := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}}
	many.Name, many.Namespace = "many", shop.Namespace
	c := newCluster(many)
	p := (&fixture.PodFixture{Pod: *newPod("a", "")}).Claim("many").Claim("missing")
	if got := New(c, shop).oneNodeClaims(&p.Pod); got.Len() != 1 || !got.Has("missing") {
		t.Errorf("claims %v", got)
	}
}
