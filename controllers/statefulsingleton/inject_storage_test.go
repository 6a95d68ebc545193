package statefulsingleton

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
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
		p := &pod().Pod
		if r.limit != "" {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(r.limit)}
		}
		if r.has != "" {
			p.Annotations = map[string]string{children.AnnotationLocalVolumes: r.has}
		}
		p = injected(t, injected(t, p, singleton("db")), singleton("db"))
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
	p := injected(t, &pod().Pod, singleton("db"))
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Mi")}
	again := injected(t, p, singleton("db"))
	if len(again.Spec.Volumes) != 2 || again.Spec.Volumes[1].EmptyDir.Medium != corev1.StorageMediumDefault {
		t.Errorf("the volumes are %+v", again.Spec.Volumes)
	}
}

func TestW16PodsThatTheirNodeEndedAreToldOf(t *testing.T) {
	refused := func(name string) *memberFixture {
		return waiting(name).silent().phase(corev1.PodFailed).with(func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "SysctlForbidden", "forbidden sysctl: net.core.somaxconn"
		})
	}
	const want = "pod b was terminated by its Node: SysctlForbidden: forbidden sysctl: net.core.somaxconn; remove the sysctl from the template, or allow it on the Node (kubelet option allowedUnsafeSysctls): kubectl -n ns describe pod b"
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"W16 a pod that its kubelet rejected", worldOf(held(), refused("b")), want},
		{"W16 a rejected pod with a new pod that has not started", worldOf(held(), refused("b"), waiting("c").unscheduled()), want},
		{"W16 a rejected pod that is older than the running pod", worldOf(held(), refused("b"), granted("a", 1).with(ready)), "no problems detected"},
		{"W16 the newest pod ended for another reason", worldOf(held(), refused("b"), granted("c", 1).ended()), "no problems detected"},
	} {
		s := status.Summarize(facts.Derive(r.w))
		if c := meta.FindStatusCondition(s.Conditions, v1.ConditionDegraded); !strings.Contains(c.Message, r.want) {
			t.Errorf("%s: %s %s", r.name, c.Reason, c.Message)
		}
	}
}
