package replicatedstatefulset_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
)

// fakeControlPlane simulates the StatefulSet controller, scheduler, kubelets and application in one
// namespace. Its application reports the role that commands gave it.
type fakeControlPlane struct {
	namespace string
	mu        sync.Mutex
	roles     map[string]string // by container
	restarts  map[types.UID]int32
	ran       []string // mutating commands, with the pod's name
	most      int      // max concurrent primaries
	hanging   int      // commands that have not ended
	hangs     bool     // no command ends before the operator does
	fails     []string // commands that fail once
	nodes     string   // prefix of the node names, one node for each ordinal; "" for one common node
}

func startFakeControlPlane(namespace string) *fakeControlPlane {
	GinkgoHelper()
	p := &fakeControlPlane{namespace: namespace, roles: map[string]string{}, restarts: map[types.UID]int32{}}
	server.Play(namespace, p.play, &appsv1.StatefulSetList{}, &corev1.PodList{})
	return p
}

// play does the next step for each object.
func (p *fakeControlPlane) play(ctx context.Context) error {
	var sets appsv1.StatefulSetList
	var pods corev1.PodList
	if err := user.List(ctx, &sets, client.InNamespace(p.namespace)); err != nil {
		return err
	}
	if err := user.List(ctx, &pods, client.InNamespace(p.namespace)); err != nil {
		return err
	}
	for i := range sets.Items {
		if err := p.control(ctx, &sets.Items[i], pods.Items); err != nil {
			return err
		}
	}
	for i := range pods.Items {
		if err := p.run(ctx, &pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// control creates and deletes the pods of a StatefulSet.
func (p *fakeControlPlane) control(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) error {
	if set.Status.ObservedGeneration != set.Generation {
		set.Status.ObservedGeneration = set.Generation
		var err error
		if set.Status.UpdateRevision, err = p.revise(ctx, set); err != nil {
			return err
		}
		if err := user.Status().Update(ctx, set); err != nil {
			return err
		}
	}
	have := map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		have[pod.Name] = true
		ordinal, err := strconv.Atoi(pod.Name[len(set.Name)+1:])
		if err == nil && ordinal >= int(*set.Spec.Replicas) && pod.DeletionTimestamp == nil {
			if err := user.Delete(ctx, pod); err != nil {
				return err
			}
		}
	}
	for i := range int(*set.Spec.Replicas) {
		pod := children.BuildPod(set, i)
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = set.Status.UpdateRevision
		if !have[pod.Name] {
			if err := user.Create(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// revise stores the template of a StatefulSet as a revision, and returns its name.
func (p *fakeControlPlane) revise(ctx context.Context, set *appsv1.StatefulSet) (string, error) {
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": set.Spec.Template}})
	if err != nil {
		return "", err
	}
	owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: fmt.Sprintf("%s-%x", set.Name, sha256.Sum256(data))[:len(set.Name)+11],
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: set.Generation,
	}
	return revision.Name, client.IgnoreAlreadyExists(user.Create(ctx, revision))
}

// sizes resizes a pod as a kubelet does.
func (p *fakeControlPlane) sizes(ctx context.Context, pod *corev1.Pod) error {
	has, wants := &pod.Status.ContainerStatuses[0], &pod.Spec.Containers[0].Resources
	if !server.AtLeast("1.33") || (has.Resources != nil && apiequality.Semantic.DeepEqual(has.Resources, wants)) {
		return nil
	}
	has.Resources, pod.Status.ObservedGeneration = wants, pod.Generation
	return user.Status().Update(ctx, pod)
}

// run binds a pod, runs it, and ends it after its deletion.
func (p *fakeControlPlane) run(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		return user.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: p.nodeOf(pod)}})
	case pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodFailed:
		if *pod.DeletionGracePeriodSeconds == 0 {
			return nil // it waits for a finalizer
		}
		return user.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case pod.DeletionTimestamp != nil:
		p.forget(pod)
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"}}
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = ended(pod.Spec.Containers), ended(pod.Spec.InitContainers)
		return user.Status().Update(ctx, pod)
	}
	id := p.container(pod)
	if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].ContainerID == id {
		return p.sizes(ctx, pod)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, ContainerID: id, RestartCount: p.restarts[pod.UID],
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	return user.Status().Update(ctx, pod)
}

// ended returns the statuses of containers that have ended.
func ended(containers []corev1.Container) (statuses []corev1.ContainerStatus) {
	for i := range containers {
		statuses = append(statuses, corev1.ContainerStatus{Name: containers[i].Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}})
	}
	return statuses
}

func (p *fakeControlPlane) nodeOf(pod *corev1.Pod) string {
	if p.nodes == "" {
		return "node-1"
	}
	return p.nodes + pod.Name[strings.LastIndex(pod.Name, "-"):]
}

// container returns the ID of the container of a pod that should run.
func (p *fakeControlPlane) container(pod *corev1.Pod) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id(pod, p.restarts[pod.UID])
}

// id returns the ID of the container of a pod after that many restarts.
func (p *fakeControlPlane) id(pod *corev1.Pod, restarts int32) string {
	return fmt.Sprintf("fake://%s/%d", pod.UID, restarts)
}

func (p *fakeControlPlane) forget(pod *corev1.Pod) {
	id := p.container(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.roles, id)
}

// crash ends the container of a pod. It is restarted at once.
func (p *fakeControlPlane) crash(pod *corev1.Pod) {
	p.forget(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts[pod.UID]++
}

// exec runs the operator's commands.
func (p *fakeControlPlane) exec(ctx context.Context, c podexec.Command) podexec.Result {
	if p.hangs {
		return p.hang(ctx, c)
	}
	r := podexec.Result{Command: c, Outcome: podexec.Unknown, Began: time.Now()}
	defer func() { r.Ended = time.Now() }()
	var pod corev1.Pod
	if err := user.Get(ctx, c.Pod, &pod); err != nil || pod.UID != c.UID || p.container(&pod) != c.ContainerID {
		r.Why, r.Ended = "the container is not there", time.Now()
		return r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Sent, r.Outcome = true, podexec.Succeeded
	switch c.Name {
	case "status":
		r.Code = map[string]int{"primary": 8, "secondary": 0, "": 7}[p.roles[c.ContainerID]]
	case "sequence":
		r.Stdout = "1\n"
	default:
		if i := slices.Index(p.fails, c.Name); i >= 0 {
			p.fails, r.Code = slices.Delete(p.fails, i, i+1), 1
			break
		}
		p.ran = append(p.ran, c.Pod.Name+" "+c.Name)
		p.roles[c.ContainerID] = map[string]string{"seed": "primary", "primary": "primary", "promote": "primary", "secondary": "secondary", "demote": "secondary"}[c.Name]
		p.most = max(p.most, p.count("primary"))
	}
	if r.Code != 0 {
		r.Outcome = podexec.Failed
	}
	r.Ended = time.Now()
	return r
}

func (p *fakeControlPlane) hang(ctx context.Context, c podexec.Command) podexec.Result {
	began := time.Now()
	p.mu.Lock()
	p.hanging++
	p.mu.Unlock()
	<-ctx.Done()
	return podexec.Result{Command: c, Outcome: podexec.Unknown, Why: "it hangs", Sent: true, Began: began, Ended: time.Now()}
}

// fail makes commands fail once.
func (p *fakeControlPlane) fail(commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = commands
}

func (p *fakeControlPlane) hung() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hanging
}

// plays returns the roles of all containers.
func (p *fakeControlPlane) plays() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.roles)
}

// count returns the number of containers with the role. The lock must be held.
func (p *fakeControlPlane) count(role string) (n int) {
	for _, is := range p.roles {
		if is == role {
			n++
		}
	}
	return n
}

// commands returns the mutating commands that were run.
func (p *fakeControlPlane) commands() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ran)
}

func (p *fakeControlPlane) maxPrimaries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// versionsOf returns the resourceVersions of the objects in a namespace that the operator writes,
// except pods.
func versionsOf(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&v1alpha1.ReplicatedStatefulSetList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
		Expect(user.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			versions[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
			return nil
		})).To(Succeed())
	}
	return versions
}
