package rules_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestW16PodsThatTheirNodeEndedAreToldOf(t *testing.T) {
	refused := func(name string) *fixture.MemberFixture {
		return fixture.Waiting(name).Silent().Phase(corev1.PodFailed).With(func(p *corev1.Pod) {
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
		{"W16 a pod that its kubelet rejected", fixture.WorldOf(fixture.Held(), refused("b")), want},
		{"W16 a rejected pod with a new pod that has not started", fixture.WorldOf(fixture.Held(), refused("b"), fixture.Waiting("c").Unscheduled()), want},
		{"W16 a rejected pod that is older than the running pod", fixture.WorldOf(fixture.Held(), refused("b"), fixture.Granted("a", 1).With(ready)), "no problems detected"},
		{"W16 the newest pod ended for another reason", fixture.WorldOf(fixture.Held(), refused("b"), fixture.Granted("c", 1).Ended()), "no problems detected"},
	} {
		s := status.Summarize(facts.Derive(r.w))
		if c := meta.FindStatusCondition(s.Conditions, v1.ConditionDegraded); !strings.Contains(c.Message, r.want) {
			t.Errorf("%s: %s %s", r.name, c.Reason, c.Message)
		}
	}
}
