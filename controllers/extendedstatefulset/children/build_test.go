package children_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestDigest verifies that in-place changes create no version, and that all other changes do.
func TestDigest(t *testing.T) {
	digest := func(change func(*appsv1.StatefulSetSpec)) string {
		set := fixture.Volumes()
		change(&set.Spec.Template.Spec)
		d, err := children.DigestOf(set)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	same := digest(func(*appsv1.StatefulSetSpec) {})
	for name, change := range map[string]func(*appsv1.StatefulSetSpec){
		"replicas": func(s *appsv1.StatefulSetSpec) { s.Replicas = ptr.To(int32(9)) },
		"the size of a claim": func(s *appsv1.StatefulSetSpec) {
			s.VolumeClaimTemplates[0].Spec.Resources.Requests = nil
		},
		"an empty map": func(s *appsv1.StatefulSetSpec) { s.Template.Spec.NodeSelector = map[string]string{} },
	} {
		if digest(change) != same {
			t.Errorf("%s creates a version", name)
		}
	}
	if digest(func(s *appsv1.StatefulSetSpec) { s.Template.Spec.Containers[0].Image = "two" }) == same {
		t.Error("an image creates no version")
	}
}
