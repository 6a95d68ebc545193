package simulate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func waitingFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// TestBodiesOfPresentPods checks the state that the status of a pod shows, and that its kubelet does not change the
// status.
func TestBodiesOfPresentPods(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	grant := func(p *corev1.Pod) {
		p.Annotations[v1.AnnotationGrant] = children.GrantOf(p.UID, 1)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	}
	for _, r := range []struct {
		name   string
		mode   v1.GateMode
		gate   bool
		app    corev1.ContainerState
		change func(*corev1.Pod)
		want   State
		stuck  bool
		over   bool
	}{
		{name: "it waits in its gate", mode: v1.GateBinary, gate: true, app: running(), want: AtGate},
		{name: "it runs with a grant", mode: v1.GateBinary, gate: true, app: running(), change: grant, want: AtWork},
		{name: "it has the grant of another pod", mode: v1.GateBinary, gate: true, app: running(), change: func(p *corev1.Pod) { p.Annotations[v1.AnnotationGrant] = "other 1" }, want: AtGate},
		{name: "it waits as a whole", mode: v1.GateInit, gate: true, app: waitingFor("PodInitializing"), change: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1.ContainerWait, State: running()}}
		}, want: AtGate},
		{name: "it is being created", mode: v1.GateBinary, gate: true, app: waitingFor("ContainerCreating"), want: NotStarted},
		{name: "its image cannot be pulled", mode: v1.GateBinary, gate: true, app: waitingFor("ImagePullBackOff"), want: NotStarted, stuck: true},
		{name: "it is in a crash loop", mode: v1.GateBinary, gate: true, app: waitingFor("CrashLoopBackOff"), change: grant, want: NotStarted, stuck: true},
		{name: "it has crashed", mode: v1.GateBinary, gate: true, app: ended, change: grant, want: NotStarted, stuck: true},
		{name: "it has ended", mode: v1.GateBinary, gate: true, app: ended, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, want: NotStarted, over: true},
		{name: "it has no gate", app: running(), change: func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}, want: AtWork},
	} {
		t.Run(r.name, func(t *testing.T) {
			object := fixture.Singleton("db").Mode(r.mode).Containers("app")
			p := &fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("tail")).Pod
			p.UID, p.Annotations = "a", map[string]string{}
			if r.gate {
				p = fixture.Injected(t, p, object)
			}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "log", State: running(), ContainerID: "1"}, {Name: "app", State: r.app, ContainerID: "2", RestartCount: 3}}}
			if r.change != nil {
				r.change(p)
			}
			setReady(fixture.Noon, &p.Status, r.want == AtWork && !r.gate)
			b := bodyOf(p, &object.StatefulSingleton, false)
			if b.Main != r.want || b.stuck != r.stuck || b.Over != r.over {
				t.Errorf("state %q, stuck %t, over %t", b.Main, b.stuck, b.Over)
			}
			if got := b.Status(fixture.Noon, p); !apiequality.Semantic.DeepEqual(got, p.Status) {
				t.Errorf("the kubelet changes the status to %v", got)
			}
		})
	}
}

// TestStatusesKeepWhatDoesNotChange checks that the end of a pod changes only the states of its containers.
func TestStatusesKeepWhatDoesNotChange(t *testing.T) {
	p := &fixture.Pod(fixture.App(), fixture.Container("log")).Pod
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: running(), ContainerID: "1", RestartCount: 2, ImageID: "x"}, {Name: "log", State: running(), ContainerID: "2"}}
	p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", State: running(), ContainerID: "3"}}
	b := bodyOf(p, &fixture.Singleton("db").StatefulSingleton, false)
	b.Main, b.Over, b.asFound = NotStarted, true, false
	got := b.Status(fixture.Noon, p)
	for _, st := range append(got.ContainerStatuses, got.EphemeralContainerStatuses...) {
		if st.State.Terminated == nil {
			t.Errorf("%s has not ended", st.Name)
		}
	}
	if app := got.ContainerStatuses[0]; app.ContainerID != "1" || app.RestartCount != 2 || app.ImageID != "x" {
		t.Errorf("the status is %v", app)
	}
	b = &Body{Pod: p, Main: AtWork, earlier: map[string]int32{"app": 2}, restarts: 1}
	if app := b.Status(fixture.Noon, p).ContainerStatuses[0]; app.RestartCount != 3 || app.ContainerID != "app-3" {
		t.Errorf("after a restart the status is %v", app)
	}
}

// TestSidecarsRunWhileThePodRuns checks an init container that restarts always.
func TestSidecarsRunWhileThePodRuns(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	p := &fixture.Pod().Inits(fixture.Container("proxy").With(func(c *corev1.Container) { c.RestartPolicy = &always }), fixture.Container("init")).Pod
	p.ObjectMeta = metav1.ObjectMeta{Name: "a"}
	got := (&Body{Pod: p, Main: AtWork, passed: true}).Status(fixture.Noon, p).InitContainerStatuses
	if got[0].State.Running == nil || got[1].State.Terminated == nil {
		t.Errorf("statuses %v", got)
	}
	if got := (&Body{Pod: p, Over: true}).Status(fixture.Noon, p).InitContainerStatuses; got[0].State.Terminated == nil {
		t.Errorf("after the end: %v", got)
	}
}
