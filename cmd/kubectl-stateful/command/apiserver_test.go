package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/rollout"
)

// server is a real API server with our CRDs, and a user's kubeconfig.
type server struct {
	*WithT
	client.Client
	kubeconfig string
}

func startServer(t *testing.T) *server {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	environment := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{
		Paths: []string{filepath.Join("..", "..", "..", "config", "crd", "bases")}, ErrorIfPathMissing: true, MaxTime: 2 * time.Minute}}
	_, err := environment.Start()
	t.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })
	g.Expect(err).NotTo(HaveOccurred())
	user, err := environment.AddUser(envtest.User{Name: "person", Groups: []string{"system:masters"}}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	text, err := user.KubeConfig()
	g.Expect(err).NotTo(HaveOccurred())
	s := &server{WithT: g, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	g.Expect(os.WriteFile(s.kubeconfig, text, 0o600)).To(Succeed())
	scheme, err := kinds.Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(eventsv1.AddToScheme(scheme)).To(Succeed()) // the plugin reads events of core only
	s.Client, err = client.New(environment.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return s
}

// in returns the same server for a part of the test.
func (s *server) in(t *testing.T) *server {
	part := *s
	part.WithT = NewWithT(t)
	part.SetDefaultEventuallyTimeout(time.Minute)
	return &part
}

// kubectl runs the plugin like a user.
func (s *server) kubectl(args ...string) (code int, out, stderr string) {
	return s.kubectlWith("", args...)
}

// kubectlWith is kubectl with a standard input.
func (s *server) kubectlWith(in string, args ...string) (code int, out, stderr string) {
	var written, failed bytes.Buffer
	code = Run(context.Background(), genericiooptions.IOStreams{In: strings.NewReader(in), Out: &written, ErrOut: &failed}, "0.1.0",
		append(args, "--kubeconfig="+s.kubeconfig, "--namespace=default"))
	return code, written.String(), failed.String()
}

// does runs the plugin, which must succeed.
func (s *server) does(command string) string {
	code, out, stderr := s.kubectl(strings.Fields(command)...)
	s.Expect(code).To(BeZero(), "%s: %s%s", command, out, stderr)
	return out
}

func (s *server) make(object client.Object) {
	s.Expect(s.Create(context.Background(), object)).To(Succeed())
}

func (s *server) read(name string, object client.Object) {
	s.Expect(s.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, object)).To(Succeed())
}

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}
}

func aSet() *rssv1alpha1.ReplicatedStatefulSet {
	commands := map[string]rssv1alpha1.Command{}
	for _, name := range []string{"sequence", "status", "stop", "primary", "secondary"} {
		commands[name] = rssv1alpha1.Command{Command: []string{"/" + name}}
	}
	one := int32(1)
	return &rssv1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}, Spec: rssv1alpha1.ReplicatedStatefulSetSpec{
		Primaries: &one, Pod: rssv1alpha1.PodPolicy{Containers: []corev1.Container{{Name: "db", Image: "x"}}, Commands: commands}}}
}

func TestAPIPlugin(t *testing.T) {
	s := startServer(t)
	t.Run("pause, resume and restart", func(t *testing.T) { s.in(t).pauses() })
	t.Run("switchover and why", func(t *testing.T) { s.in(t).switches() })
	t.Run("restart and undo", func(t *testing.T) { s.in(t).undoes() })
	t.Run("fence", func(t *testing.T) { s.in(t).fences() })
	t.Run("plan", func(t *testing.T) { s.in(t).plans(t) })
	t.Run("gather and errors", func(t *testing.T) { s.in(t).gathers(t) })
	t.Run("check-commands", func(t *testing.T) { s.in(t).checks(t) })
}

func (s *server) pauses() {
	s.make(aSet())
	var set rssv1alpha1.ReplicatedStatefulSet
	s.does("rollout pause rss/db")
	s.read("db", &set)
	s.Expect(set.Spec.Paused).To(BeTrue())
	s.does("rollout resume rss db")
	s.does("rollout restart rss/db")
	s.read("db", &set)
	s.Expect(set.Spec.Paused).To(BeFalse())
	s.Expect(set.Spec.Pod.Annotations).To(HaveKey(rollout.AnnotationRestartedAt))
	s.Expect(set.ManagedFields).To(ContainElement(HaveField("Manager", "kubectl-stateful")))
}

func (s *server) switches() {
	ctx := context.Background()
	var set rssv1alpha1.ReplicatedStatefulSet
	s.read("db", &set)
	set.Status.Members = rssv1alpha1.Members{Primary: []string{"rss-db-0"}, Secondary: []string{"rss-db-1"}}
	set.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "OnTarget", Message: "primary: rss-db-0", LastTransitionTime: metav1.Now()}}
	s.Expect(s.Status().Update(ctx, &set)).To(Succeed())
	done := make(chan struct{})
	go func() { // simulates the operator
		defer close(done)
		s.Eventually(func(g Gomega) {
			var ordered rssv1alpha1.ReplicatedStatefulSet
			g.Expect(s.Get(ctx, client.ObjectKeyFromObject(&set), &ordered)).To(Succeed())
			g.Expect(ordered.Annotations).To(HaveKeyWithValue(rssv1alpha1.AnnotationSwitchoverTo, "rss-db-1"))
			delete(ordered.Annotations, rssv1alpha1.AnnotationSwitchoverTo)
			g.Expect(s.Update(ctx, &ordered)).To(Succeed())
			ordered.Status.Members.Primary, ordered.Status.Members.Secondary = []string{"rss-db-1"}, []string{"rss-db-0"}
			g.Expect(s.Status().Update(ctx, &ordered)).To(Succeed())
		}).Should(Succeed())
	}()
	s.Expect(s.does("switchover db --to=rss-db-1")).To(HaveSuffix("rss-db-1 is primary, as requested\n"))
	<-done

	s.make(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "db-", Namespace: "default"}, EventTime: metav1.NowMicro(), Type: "Normal",
		Reason: rssv1alpha1.EventOverrideUsed, Note: "rss-db-1 is primary, as requested", Action: "Override",
		ReportingController: "replicatedstatefulset", ReportingInstance: "one", Regarding: corev1.ObjectReference{
			APIVersion: rssv1alpha1.GroupVersion.String(), Kind: "ReplicatedStatefulSet", Namespace: "default", Name: "db", UID: set.UID}})
	s.Expect(s.does("why rss/db")).To(MatchRegexp(`Normal +OverrideUsed +rss-db-1 is primary, as requested`))
	s.Expect(s.does("status rss/db")).To(ContainSubstring("Available=True  OnTarget"))
}

func (s *server) undoes() {
	ctx := context.Background()
	set := &stcv1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: stcv1alpha1.StatefulClusterSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: podTemplate("web:2"),
		UpdateStrategy: stcv1alpha1.UpdateStrategy{InPlace: stcv1alpha1.InPlaceNever}}}
	s.make(set)
	for number, image := range map[int64]string{1: "web:1", 2: "web:2"} {
		raw, err := json.Marshal(map[string]any{"template": podTemplate(image)})
		s.Expect(err).NotTo(HaveOccurred())
		s.make(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(image, ":", "-"), Namespace: "default",
			Labels:          map[string]string{stcv1alpha1.LabelCluster: "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, stcv1alpha1.GroupVersion.WithKind("StatefulCluster"))}},
			Revision: number, Data: runtime.RawExtension{Raw: raw}})
	}
	set.Status.ObservedGeneration, set.Status.UpdateRevision = set.Generation, "web-2"
	s.Expect(s.Status().Update(ctx, set)).To(Succeed())
	s.Expect(s.does("rollout undo stc/web")).To(Equal("statefulcluster.enge.me/web rolled back to revision 1\n"))
	s.read("web", set)
	s.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("web:1"))
	s.does("rollout restart stc/web")
	s.read("web", set)
	s.Expect(set.Spec.Template.Annotations).To(HaveKey(rollout.AnnotationRestartedAt))
	_, _, stderr := s.kubectl("rollout", "status", "stc/web", "--timeout=1s")
	s.Expect(stderr).To(Equal("error: timed out waiting for the condition\n"))
}

func (s *server) fences() {
	ctx := context.Background()
	var set stcv1alpha1.StatefulCluster
	s.read("web", &set)
	s.make(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Namespace: "default", Labels: map[string]string{stcv1alpha1.LabelCluster: "web"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&set, stcv1alpha1.GroupVersion.WithKind("StatefulCluster"))}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "x"}}}}
	s.make(pod)
	code, _, stderr := s.kubectl("fence", "stc/web")
	s.Expect(code).To(Equal(1))
	s.Expect(stderr).To(ContainSubstring("web-a may be running on it, along with 0 other pods"))
	s.does("fence stc/web --yes")
	var node corev1.Node
	s.Expect(s.Get(ctx, client.ObjectKey{Name: "node-1"}, &node)).To(Succeed())
	s.Expect(node.Spec.Taints).To(ContainElement(machineOff))
	s.does("unfence node-1")
	s.Expect(s.Get(ctx, client.ObjectKey{Name: "node-1"}, &node)).To(Succeed())
	s.Expect(node.Spec.Taints).NotTo(ContainElement(machineOff))
}

func (s *server) gathers(t *testing.T) {
	files := unpack(t, []byte(s.does("gather --file=-")))
	s.Expect(files).To(HaveKey("objects/statefulclusters/web.yaml"))
	s.Expect(files).To(HaveKey("namespace/pods/web-a.yaml"))
	s.Expect(files["unread.txt"]).To(BeEmpty())
	_, _, stderr := s.kubectl("status", "ssn/none")
	s.Expect(stderr).To(Equal("Error from server (NotFound): statefulsingletons.apps.openshift.statefulsingleton.com \"none\" not found\n"))
	_, _, stderr = s.kubectl("status", "ssn/none", "--context=none")
	s.Expect(stderr).To(Equal("error: context \"none\" does not exist\n"))
}
