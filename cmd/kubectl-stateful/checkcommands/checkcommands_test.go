package checkcommands

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

const (
	manifestOfToy = `
apiVersion: clusterlabs.org/v1alpha1
kind: ReplicatedStatefulSet
metadata: {name: toy, namespace: elsewhere}
spec:
  replicas: 2
  primaries: 1
  chaosLevel: 3
  pod:
    containers: [{name: toy, image: toy}]
    commands:
      sequence: {command: [/toy]}
      status: {command: [/toy]}
      stop: {command: [/toy]}
      primary: {command: [/toy, $(RSS_EPOCH)]}
      secondary: {command: [/toy]}
      promote: {command: [/toy, $(RSS_EPOCH)]}
`
	manifestOfConfig  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: elsewhere, resourceVersion: '7'}\n"
	manifestOfCluster = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n"
)

// bed is a fake cluster in which the pods run a toy.
type bed struct {
	*WithT
	t *testing.T
	client.Client
	toy
	Checker
	out bytes.Buffer

	created   []string            // created objects
	arguments map[string][]string // the last arguments of each command
	roles     map[string]string   // the role of the second member in its labels when a command began
	commands  int
	before    func() // called before each command

	stuck     string // why the containers wait
	forbidden bool   // namespaces cannot be created
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{WithT: NewWithT(t), t: t, arguments: map[string][]string{}, roles: map[string]string{}, before: func() {}}
	scheme, err := kinds.Scheme()
	b.Expect(err).NotTo(HaveOccurred())
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	b.Client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithInterceptorFuncs(interceptor.Funcs{Create: b.create, Delete: remove}).Build()
	b.Checker = Checker{Client: b.Client, Run: b.exec, Out: &b.out, Timeout: time.Minute, Interval: time.Millisecond}
	return b
}

// create creates an object, and the pods of a StatefulSet.
func (b *bed) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if _, isNamespace := object.(*corev1.Namespace); isNamespace && b.forbidden {
		return apierrors.NewForbidden(corev1.Resource("namespaces"), object.GetName(), nil)
	}
	if err := c.Create(ctx, object, options...); err != nil {
		return err
	}
	b.created = append(b.created, strings.Join([]string{fmt.Sprintf("%T", object), object.GetNamespace(), object.GetName()}, " "))
	set, isSet := object.(*appsv1.StatefulSet)
	if !isSet {
		return nil
	}
	for i := range *set.Spec.Replicas {
		container := set.Spec.Template.Spec.Containers[0]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, i)},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{container}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: container.Name, ContainerID: "id"}}}}
		state := &pod.Status.ContainerStatuses[0].State
		if state.Running = &(corev1.ContainerStateRunning{}); b.stuck != "" {
			*state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: b.stuck}}
		}
		if err := c.Create(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes an object, unless ctx has ended.
func remove(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.Delete(ctx, object, options...)
}

// exec runs a command of the toy.
func (b *bed) exec(ctx context.Context, c plugin.Command) plugin.CommandResult {
	b.before()
	if ctx.Err() != nil {
		return *unknown("interrupted")
	}
	if c.Name == "processes" {
		return *exit(127)
	}
	b.commands++
	b.Expect(c.ContainerID).To(Equal("id"))
	b.Expect(c.Timeout).To(Equal(10 * time.Minute))
	b.arguments[c.Name] = c.Argv[1:]
	var second corev1.Pod
	b.Expect(client.IgnoreNotFound(b.Get(ctx, client.ObjectKey{Namespace: c.Pod.Namespace, Name: "rss-toy-1"}, &second))).To(Succeed())
	b.roles[c.Name] = second.Labels["clusterlabs.org/role"]
	member, err := strconv.Atoi(c.Pod.Name[strings.LastIndex(c.Pod.Name, "-")+1:])
	b.Expect(err).NotTo(HaveOccurred())
	return b.run(ctx, member, c.Name, nil)
}

// check checks a manifest.
func (b *bed) check(ctx context.Context, texts ...string) (broken int, err error) {
	b.t.Helper()
	m, err := Decode(objects(b.t, texts...))
	b.Expect(err).NotTo(HaveOccurred())
	return b.Check(ctx, m)
}

// namespaces returns the names of the namespaces that exist.
func (b *bed) namespaces() (names []string) {
	var list corev1.NamespaceList
	b.Expect(b.List(context.Background(), &list)).To(Succeed())
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func TestCheckInACluster(t *testing.T) {
	b := newBed(t)
	broken, err := b.check(t.Context(), manifestOfConfig, manifestOfCluster, manifestOfToy)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(broken).To(BeZero(), b.out.String())
	namespace := strings.Fields(b.created[1])[1]
	b.Expect(namespace).To(HavePrefix("check-commands-"))
	b.Expect(b.created).To(Equal([]string{"*v1.Namespace  " + namespace, "*unstructured.Unstructured " + namespace + " settings",
		"*v1.StatefulSet " + namespace + " rss-toy", "*v1.Service " + namespace + " toy-svc", "*v1.Service " + namespace + " toy-primary",
		"*v1.Service " + namespace + " toy-active", "*v1.Service " + namespace + " toy-secondary"}))
	b.Expect(b.out.String()).To(And(ContainSubstring("in namespace "+namespace), ContainSubstring("chaosLevel is ignored"),
		ContainSubstring("Node node-1 is not namespaced"), ContainSubstring("in 2 pods")))
	b.Expect(b.arguments).To(And(HaveKeyWithValue("secondary", []string{"rss-toy-1.toy-svc"}), HaveKeyWithValue("promote", []string{"2"}),
		HaveKeyWithValue("primary", []string{"3"})), "names of the primaries, and epochs")
	b.Expect(b.roles).To(And(HaveKeyWithValue("promote", "secondary"), HaveKeyWithValue("stop", "none")), "labels follow roles")
	b.Expect(b.namespaces()).To(BeEmpty())
	var pods corev1.PodList
	b.Expect(b.List(t.Context(), &pods)).To(Succeed())
	b.Expect(pods.Items).To(BeEmpty())
}

func TestCheckCountsViolatedRules(t *testing.T) {
	b := newBed(t)
	b.fault = always("status", exit(1))
	broken, err := b.check(t.Context(), manifestOfToy)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(broken).To(Equal(2))
	b.Expect(b.out.String()).To(ContainSubstring("2 of 20 rules are violated"))
	b.Expect(b.namespaces()).To(BeEmpty())
}

func TestACommandThatTheClusterRejectsIsNoViolation(t *testing.T) {
	b := newBed(t)
	forbidden := unknown("the API server rejected it: pods/exec is forbidden")
	forbidden.Refused = true
	b.fault = always("secondary", forbidden)
	broken, err := b.check(t.Context(), manifestOfToy)
	b.Expect(err).To(MatchError("run secondary in rss-toy-1: the API server rejected it: pods/exec is forbidden"))
	b.Expect(broken).To(BeZero())
	b.Expect(b.out.String()).NotTo(Or(ContainSubstring("FAILED"), ContainSubstring("!")))
	b.Expect(b.namespaces()).To(BeEmpty())
}

func TestCheckKeepsTheNamespaceOnRequest(t *testing.T) {
	b := newBed(t)
	b.Keep, b.Members = true, 1
	_, err := b.check(t.Context(), manifestOfToy)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.namespaces()).To(HaveLen(1))
	b.Expect(b.out.String()).To(And(ContainSubstring("in 1 pods"), ContainSubstring("kept namespace "+b.namespaces()[0])))
}

func TestAnInterruptedCheckDeletesTheNamespace(t *testing.T) {
	for _, row := range []struct {
		sentence string
		stuck    string
		at       int
	}{
		{"while a command runs", "", 5},
		{"while pods start", "ImagePullBackOff", 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			b := newBed(t)
			b.stuck = row.stuck
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			b.before = func() {
				if b.commands == row.at {
					interrupt()
				}
			}
			if row.stuck != "" {
				time.AfterFunc(20*time.Millisecond, interrupt)
			}
			_, err := b.check(ctx, manifestOfToy)
			b.Expect(err).To(MatchError(errInterrupted))
			b.Expect(b.commands).To(Equal(row.at))
			b.Expect(b.out.String()).NotTo(Or(ContainSubstring("FAILED"), ContainSubstring("!")))
			b.Expect(b.namespaces()).To(BeEmpty())
		})
	}
}

func TestCheckWaitsForPods(t *testing.T) {
	b := newBed(t)
	b.stuck, b.Timeout = "ImagePullBackOff", 20*time.Millisecond
	_, err := b.check(t.Context(), manifestOfToy)
	b.Expect(err).To(MatchError("the pods did not start within 20ms: rss-toy-0: ImagePullBackOff "))
	b.Expect(b.out.String()).To(ContainSubstring("waiting for rss-toy-0: ImagePullBackOff"))
	b.Expect(b.namespaces()).To(BeEmpty())
}

func TestCheckRejectsSetsBeforeItWrites(t *testing.T) {
	for _, row := range []struct {
		sentence, text, err string
	}{
		{"with an invalid spec", strings.ReplaceAll(manifestOfToy, "primaries: 1", "primaries: 5"), "the operator would reject toy: spec.primaries"},
		{"with spec.application", strings.ReplaceAll(manifestOfToy, "primaries: 1", "application: {type: Redis}"), "it has spec.application"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			b := newBed(t)
			_, err := b.check(t.Context(), row.text)
			b.Expect(err).To(MatchError(ContainSubstring(row.err)))
			b.Expect(b.created).To(BeEmpty())
		})
	}
}

func TestCheckWithoutTheRightToCreateNamespaces(t *testing.T) {
	b := newBed(t)
	b.forbidden = true
	_, err := b.check(t.Context(), manifestOfToy)
	b.Expect(apierrors.IsForbidden(err)).To(BeTrueBecause("the error is %v", err))
	b.Expect(b.created).To(BeEmpty())
}

func TestWhatAPodWaitsFor(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes"}}}}
	g.Expect(unscheduled(pod)).To(Equal(": 0/3 nodes"))
	g.Expect(unscheduled(&corev1.Pod{})).To(BeEmpty())
}
