package statefulsingleton

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

// Builders of worlds:
//
//	worldOf(singleton("db").held("a", 1), granted("a", 1), waiting("b").old())
//
// By default a pod is on the Ready node n1, and its gate or program runs.

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// held sets the object's holder; its UID is "uid-of-" and the name.
func (s *singletonFixture) held(name string, epoch int64) *singletonFixture {
	s.Status.Holder = &v1.Holder{Name: name, UID: types.UID("uid-of-" + name), Epoch: epoch, Since: ptr.To(metav1.NewTime(noon.Add(-time.Minute)))}
	return s
}

func (s *singletonFixture) with(change func(*v1.StatefulSingleton)) *singletonFixture {
	change(&s.StatefulSingleton)
	return s
}

// goes makes the object one that a user deleted a minute ago.
func (s *singletonFixture) goes() *singletonFixture {
	s.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(-time.Minute)))
	return s
}

// worldOf returns the world at noon of an object that is an hour old and has all its
// children.
func worldOf(s *singletonFixture, members ...*memberFixture) *facts.World {
	w := &facts.World{Now: noon, FirstSeen: noon.Add(-time.Hour)}
	if s != nil {
		if s.CreationTimestamp.IsZero() {
			s.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		}
		s.Finalizers = []string{v1.FinalizerSingleton}
		w.Object = spec.WithDefaults(&s.StatefulSingleton)
		w.Invalid = spec.Problem(w.Object)
		w.Wrapper = children.BuildWrapper("ns", script.Text, []v1.StatefulSingleton{*w.Object})
	}
	for _, m := range members {
		w.Pods = append(w.Pods, &m.Member)
	}
	return w
}

func worldWith(w *facts.World, change func(*facts.World)) *facts.World {
	change(w)
	return w
}

type memberFixture struct{ facts.Member }

func newMember(name string) *memberFixture {
	p := pod(container("app").command("serve"))
	p.Name, p.UID, p.Namespace = name, types.UID("uid-of-"+name), "ns"
	p.CreationTimestamp = metav1.NewTime(noon.Add(-30 * time.Minute))
	p.Spec.NodeName = "n1"
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "c1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return &memberFixture{Member: facts.Member{Pod: &p.Pod, Program: []string{"app"}, Node: nodestate.Facts{Ready: true}}}
}

// waiting returns a pod whose gate runs. It was created under StatefulSingleton db.
func waiting(name string) *memberFixture {
	m := newMember(name)
	m.Gated = true
	m.Pod.Annotations = map[string]string{v1.AnnotationSingletonUID: "uid-of-db"}
	return m
}

// heldFor sets how long ago the gate was first seen running; by default long enough.
func (m *memberFixture) heldFor(d time.Duration) *memberFixture {
	m.HeldSince = noon.Add(-d)
	return m
}

// ungated returns a pod that was created without the gate.
func ungated(name string) *memberFixture { return newMember(name) }

// granted returns a pod that runs its program and has our finalizer.
func granted(name string, epoch int64) *memberFixture {
	m := waiting(name)
	m.Pod.Annotations[v1.AnnotationGrant], m.Pod.Annotations[v1.AnnotationReminder] = children.GrantOf(m.Pod.UID, epoch), strconv.FormatInt(epoch, 10)
	m.Pod.Finalizers = []string{v1.FinalizerPod}
	m.Pod.Status.Conditions = []corev1.PodCondition{{Type: v1.ReadinessGate, Status: corev1.ConditionTrue}}
	return m
}

func (m *memberFixture) with(change func(*corev1.Pod)) *memberFixture {
	change(m.Pod)
	return m
}

func (m *memberFixture) unprotected() *memberFixture {
	m.Pod.Finalizers = nil
	return m
}

func (m *memberFixture) protect() *memberFixture {
	m.Pod.Finalizers = []string{v1.FinalizerPod}
	return m
}

func (m *memberFixture) deleted() *memberFixture {
	m.Pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	return m
}

// phase sets the phase, and leaves the containers unchanged.
func (m *memberFixture) phase(phase corev1.PodPhase) *memberFixture {
	m.Pod.Status.Phase = phase
	return m
}

// exited sets the container status to terminated.
func (m *memberFixture) exited() *memberFixture {
	m.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	return m
}

// ended makes the pod one that has stopped, as a kubelet reports it.
func (m *memberFixture) ended() *memberFixture {
	m.Pod.Status.Conditions = append(m.Pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"})
	return m.phase(corev1.PodSucceeded).exited()
}

// coming makes the container one that is being created.
func (m *memberFixture) coming() *memberFixture { return m.stuck("ContainerCreating") }

// scripted makes the script the pod's gate.
func (m *memberFixture) scripted() *memberFixture {
	m.Pod.Spec.Containers[0].Command = []string{v1.ScriptInPod, "serve"}
	return m
}

// unstarted makes the pod one that was deleted before its program started, and that its
// kubelet has ended. knew is the generation that the kubelet observed last; 2 includes the
// deletion.
func (m *memberFixture) unstarted(knew int64) *memberFixture {
	m.deleted().exited().phase(corev1.PodFailed).Pod.Generation = 2
	m.Pod.Status.Conditions = append(m.Pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", ObservedGeneration: knew},
		corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, ObservedGeneration: knew})
	return m
}

// bare makes the pod one without a gate, according to the current object.
func (m *memberFixture) bare() *memberFixture {
	m.Gated = false
	return m
}

func (m *memberFixture) silent() *memberFixture {
	m.Pod.Status.ContainerStatuses = nil
	return m
}

// collected makes the pod one that pod garbage collection ended.
func (m *memberFixture) collected() *memberFixture {
	m.Pod.Status.Phase = corev1.PodFailed
	m.Pod.Status.Conditions = append(m.Pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"})
	return m
}

// stuck sets the reason for which the container waits.
func (m *memberFixture) stuck(reason string) *memberFixture {
	m.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}}}
	return m
}

func (m *memberFixture) onNode(n nodestate.Facts) *memberFixture {
	m.Node = n
	return m
}

func (m *memberFixture) unscheduled() *memberFixture {
	m.Pod.Spec.NodeName, m.Node = "", nodestate.Facts{}
	return m.silent().phase(corev1.PodPending)
}

func (m *memberFixture) age(minutes int) *memberFixture {
	m.Pod.CreationTimestamp = metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute))
	return m
}

// of sets the Deployment of the pod, with a rolling update.
func (m *memberFixture) of(deployment string) *memberFixture {
	m.Family = facts.Family{Owner: types.UID(deployment), Name: "Deployment " + deployment, Rolls: true, Wanted: 1,
		Deployment: deployment, ReplicaSet: deployment + "-1", Surges: true, Adopts: true}
	m.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-1", UID: "set", Controller: ptr.To(true)}}
	return m
}

// old makes the pod's revision older than the one that its Deployment wants.
func (m *memberFixture) old() *memberFixture {
	m.Family.Outdated = true
	return m
}

// mounts adds a claim that another pod mounts too.
func (m *memberFixture) mounts(mode corev1.PersistentVolumeAccessMode) *memberFixture {
	m.Claims = map[string]corev1.PersistentVolumeAccessMode{"data": mode}
	return m
}

func (m *memberFixture) on(name string) *memberFixture {
	m.Pod.Spec.NodeName = name
	return m
}
