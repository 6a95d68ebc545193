package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

const setOfOne = `
apiVersion: clusterlabs.org/v1alpha1
kind: ReplicatedStatefulSet
metadata: {name: db}
spec:
  replicas: 1
  pod:
    containers: [{name: db, image: db}]
    commands: {sequence: {command: [/db]}, status: {command: [/db]}, stop: {command: [/db]}, primary: {command: [/db]}}
`

// checkTerminal runs check-commands in a cluster that starts one pod.
type checkTerminal struct {
	c       client.Client
	in      string
	offline error
	// violates makes status fail.
	violates bool
	running  bool
}

func newCheckTerminal(t *testing.T) *checkTerminal {
	return &checkTerminal{c: atWith(t, interceptor.Funcs{Create: startPod}).c}
}

// startPod creates an object, and the pod of a StatefulSet.
func startPod(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if err := c.Create(ctx, object, options...); err != nil {
		return err
	}
	if _, isSet := object.(*appsv1.StatefulSet); !isSet {
		return nil
	}
	return c.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName() + "-0"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "db", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}})
}

// exec runs a command of a program with one member.
func (x *checkTerminal) exec(_ context.Context, c plugin.Command) plugin.CommandResult {
	code := 0
	switch c.Name {
	case "processes":
		code = 127
	case "primary":
		x.running = true
	case "stop":
		x.running = false
	case "status":
		if code = 7; x.running {
			code = 8
		}
		if x.violates {
			code = 1
		}
	}
	if code > 0 {
		return plugin.CommandResult{Outcome: plugin.Failed, Code: code, Stderr: "a\x1b[31m"}
	}
	return plugin.CommandResult{Outcome: plugin.Succeeded, Stdout: "1\n"}
}

func (x *checkTerminal) run(args ...string) (code int, out, stderr string) {
	var written, failed bytes.Buffer
	p := &Plugin{Streams: genericiooptions.IOStreams{In: strings.NewReader(x.in), Out: &written, ErrOut: &failed}, Interval: time.Millisecond,
		Connect: func() (site, error) { return site{Client: x.c, Namespace: "default", Exec: x.exec}, x.offline }}
	code = p.Execute(context.Background(), p.Root(), append([]string{"check-commands"}, args...))
	return code, written.String(), failed.String()
}

func TestExitCodesOfCheckCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "set.yaml")
	if err := os.WriteFile(file, []byte(setOfOne), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		sentence    string
		args        string
		set         func(*checkTerminal)
		code        int
		out, stderr string
	}{
		{"no violation", "-f " + file, func(*checkTerminal) {}, 0, "ok       status of a stopped member always returns 7", ""},
		{"a manifest on standard input", "-f -", func(x *checkTerminal) { x.in = setOfOne }, 0, "checking the commands of db in 1 pods", ""},
		{"a violation", "-f " + file, func(x *checkTerminal) { x.violates = true }, 1, "2 of 20 rules are violated", ""},
		{"no file", "", func(*checkTerminal) {}, 2, "", "must specify one of -f and -k"},
		{"a file that does not exist", "-f /nonexistent.yaml", func(*checkTerminal) {}, 2, "", `the path "/nonexistent.yaml" does not exist`},
		{"no set", "-f -", func(x *checkTerminal) { x.in = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}" }, 2, "", "error: the manifest contains no ReplicatedStatefulSet"},
		{"an unknown flag", "--unknown", func(*checkTerminal) {}, 2, "", "error: unknown flag: --unknown"},
		{"an argument", "rss/db", func(*checkTerminal) {}, 2, "", `error: unknown command "rss/db"`},
		{"no cluster", "-f " + file, func(x *checkTerminal) { x.offline = errors.New("no cluster") }, 2, "", "error: no cluster"},
		{"pods that do not start", "--timeout=10ms --replicas=2 -f " + file, func(*checkTerminal) {}, 2, "in namespace check-commands-", "error: the pods did not start within 10ms: rss-db-1"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			g := NewWithT(t)
			x := newCheckTerminal(t)
			row.set(x)
			code, out, stderr := x.run(strings.Fields(row.args)...)
			g.Expect(code).To(Equal(row.code), "%s%s", out, stderr)
			g.Expect(out).To(And(ContainSubstring(row.out), Not(ContainSubstring("\x1b"))))
			if row.stderr == "" {
				g.Expect(stderr).To(BeEmpty())
			}
			g.Expect(stderr).To(ContainSubstring(row.stderr))
			var namespaces corev1.NamespaceList
			g.Expect(x.c.List(t.Context(), &namespaces)).To(Succeed())
			g.Expect(namespaces.Items).To(BeEmpty())
		})
	}
}

func TestCheckCommandsKeepsTheNamespace(t *testing.T) {
	g := NewWithT(t)
	x := newCheckTerminal(t)
	x.in = setOfOne
	code, out, _ := x.run("-f", "-", "--keep")
	g.Expect(code).To(BeZero())
	var namespaces corev1.NamespaceList
	g.Expect(x.c.List(t.Context(), &namespaces)).To(Succeed())
	g.Expect(namespaces.Items).To(HaveLen(1))
	g.Expect(out).To(ContainSubstring("kept namespace " + namespaces.Items[0].Name))
}

// checks runs the commands in a pod without a Node: the API server rejects them.
func (s *server) checks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "set.yaml")
	s.Expect(os.WriteFile(file, []byte(setOfOne), 0o600)).To(Succeed())
	ended := make(chan struct{})
	var code int
	var out, stderr string
	go func() {
		defer close(ended)
		code, out, stderr = s.kubectl("check-commands", "--filename="+file)
	}()
	var sets appsv1.StatefulSetList
	s.Eventually(func() ([]appsv1.StatefulSet, error) { return sets.Items, s.List(t.Context(), &sets) }).Should(HaveLen(1))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: sets.Items[0].Namespace, Name: "rss-db-0"}, Spec: sets.Items[0].Spec.Template.Spec}
	s.make(pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "db", ContainerID: "id", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	s.Expect(s.Status().Update(t.Context(), pod)).To(Succeed())
	s.Eventually(ended).Should(BeClosed())
	s.Expect(code).To(Equal(exitError), "%s%s", out, stderr)
	s.Expect(stderr).To(MatchRegexp("^error: run status in rss-db-0: the API server rejected it: .*pod rss-db-0 does not have a host assigned\n$"))
	s.Expect(out).NotTo(ContainSubstring("FAILED"))
	var namespace corev1.Namespace
	s.Expect(s.Get(t.Context(), client.ObjectKey{Name: pod.Namespace}, &namespace)).To(Succeed())
	s.Expect(namespace.DeletionTimestamp).NotTo(BeNil())
}
