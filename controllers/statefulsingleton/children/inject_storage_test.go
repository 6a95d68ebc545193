package children_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestW16WhereTheGateIs(t *testing.T) {
	for _, r := range []struct {
		name, limit, has string
		medium           corev1.StorageMedium
		want             string
	}{
		{"W16 without a limit the gate is on disk", "", "", corev1.StorageMediumDefault, "gate-volume"},
		{"W16 with a large limit the gate is on disk", "64Mi", "", corev1.StorageMediumDefault, "gate-volume"},
		{"W16 with a small limit the gate is in memory", "1Mi", "", corev1.StorageMediumMemory, ""},
		{"W16 the user's list of local volumes is kept", "", "data", corev1.StorageMediumDefault, "data,gate-volume"},
		{"W16 the volume is listed once", "", "gate-volume,data", corev1.StorageMediumDefault, "gate-volume,data"},
		{"W16 the user's list of local volumes is kept with a small limit", "1Mi", "data", corev1.StorageMediumMemory, "data"},
	} {
		p := &fixture.Pod().Pod
		if r.limit != "" {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(r.limit)}
		}
		if r.has != "" {
			p.Annotations = map[string]string{children.AnnotationLocalVolumes: r.has}
		}
		p = fixture.Injected(t, fixture.Injected(t, p, fixture.Singleton("db")), fixture.Singleton("db"))
		if got := p.Annotations[children.AnnotationLocalVolumes]; got != r.want {
			t.Errorf("%s: the annotation is %q, want %q", r.name, got, r.want)
		}
		if got := p.Spec.Volumes[1]; got.Name != v1.VolumeGate || got.EmptyDir.Medium != r.medium {
			t.Errorf("%s: the volume is %+v", r.name, got)
		}
	}
}

// TestW16ALimitThatComesLaterIsNoClash checks a limit that another webhook sets between two
// calls of ours.
func TestW16ALimitThatComesLaterIsNoClash(t *testing.T) {
	p := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db"))
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Mi")}
	again := fixture.Injected(t, p, fixture.Singleton("db"))
	if len(again.Spec.Volumes) != 2 || again.Spec.Volumes[1].EmptyDir.Medium != corev1.StorageMediumDefault {
		t.Errorf("the volumes are %+v", again.Spec.Volumes)
	}
}
