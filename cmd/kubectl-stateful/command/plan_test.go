package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/manifests"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

const webManifest = `
apiVersion: enge.me/v1alpha1
kind: StatefulCluster
metadata:
  name: planned
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1"}
`

// plans tests that plans are made of what the API server would store, and that nothing is stored. No operator runs.
func (s *server) plans(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "web.yaml")
		s.Expect(os.WriteFile(name, []byte(text), 0o600)).To(Succeed())
		return name
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "free"}}
	s.make(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Spec.Taints = nil // the API server taints new Nodes
	s.Expect(s.Update(context.Background(), node.DeepCopy())).To(Succeed())
	s.read("free", node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.Expect(s.Status().Update(context.Background(), node)).To(Succeed())
	web := file(webManifest)
	code, out, stderr := s.kubectl("plan", "-f", web)
	s.Expect(code).To(Equal(exitChanges), stderr)
	s.Expect(out).To(And(ContainSubstring("StatefulCluster default/planned (new)\n"), ContainSubstring("  1  create pod planned-new1\n"), ContainSubstring("2 pods created")))
	err := s.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "planned"}, &stcv1alpha1.StatefulCluster{})
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	s.Expect(err).To(HaveOccurred(), "a plan must not create the object")

	code, _, stderr = s.kubectl("plan", "-f", file(webManifest+"  unknownField: 1\n"))
	s.Expect(code).To(Equal(exitError))
	s.Expect(stderr).To(ContainSubstring(`unknown field "spec.unknownField"`), "as kubectl apply reports it")
	code, _, stderr = s.kubectl("plan")
	s.Expect(code).To(Equal(exitError))
	s.Expect(stderr).To(ContainSubstring("-f"))

	two := int32(2)
	s.make(&stcv1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Name: "planned", Namespace: "default"}, Spec: stcv1alpha1.StatefulClusterSpec{
		Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: podTemplate("web:1")}})
	for _, args := range [][]string{{"plan", "scale", "stc/planned", "--replicas=3"}, {"plan", "-f", "-", "--server-side", "--force-conflicts"}} {
		code, out, stderr = s.kubectlWith(webManifest, append(args, "--output=json")...)
		s.Expect(code).To(BeNumerically("<", exitError), stderr)
		var result struct{ Items []plugin.Plan }
		s.Expect(json.Unmarshal([]byte(out), &result)).To(Succeed(), out)
		s.Expect(result.Items).To(HaveLen(1))
		s.Expect(result.Items[0].New).To(BeFalse())
	}
	for _, wrong := range [][]string{{"plan", "rss/db"}, {"plan", "drain"}, {"plan", "scale", "stc/planned"}, {"plan", "-f", web, "--unknown"}, {"plan", "-f", web, "--output=xml"}} {
		code, _, _ = s.kubectl(wrong...)
		s.Expect(code).To(Equal(exitError), "%q", wrong)
	}
	code, _, stderr = s.kubectl("plan", "delete", "stc/none")
	s.Expect(code).To(Equal(exitError))
	s.Expect(stderr).To(ContainSubstring("NotFound"))
	code, _, stderr = s.kubectl("plan", "scale", "ssn/web", "--replicas=3")
	s.Expect(code).To(Equal(exitError))
	s.Expect(stderr).To(ContainSubstring("has no replicas"))
	code, _, stderr = s.kubectl("plan", "drain", "node/none")
	s.Expect(code).To(Equal(exitError))
	s.Expect(stderr).To(ContainSubstring(`"none" not found`))
}

// TestRequests tests which plans a changed workload belongs to.
func TestRequests(t *testing.T) {
	g := NewWithT(t)
	singleton := func(name, app string) *ssnv1.StatefulSingleton {
		one := &ssnv1.StatefulSingleton{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: ssnv1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		one.SetGroupVersionKind(ssnv1.GroupVersion.WithKind("StatefulSingleton"))
		return one
	}
	workload := func(app string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}}}}
	}
	var all requests
	for _, one := range []*ssnv1.StatefulSingleton{singleton("young", "web"), singleton("other", "mail")} {
		all.add(kinds.StatefulSingleton, client.ObjectKeyFromObject(one), one)
	}
	live := []ssnv1.StatefulSingleton{*singleton("live", "web"), *singleton("young", "mail")}
	for _, row := range []struct {
		before, after string
		want          []string
	}{
		{"", "web", []string{"live", "young"}},
		{"", "mail", []string{"young", "other"}},
		{"web", "none", []string{"live", "young"}},
		{"", "none", nil},
	} {
		applied := manifests.Applied{After: workload(row.after)}
		if row.before != "" {
			applied.Before = workload(row.before)
		}
		g.Expect(all.selecting(live, applied)).To(Equal(row.want), "%s to %s", row.before, row.after)
	}
	all.add(kinds.StatefulSingleton, client.ObjectKey{Namespace: "default", Name: "young"}, workload("web"))
	all.add(kinds.StatefulSingleton, client.ObjectKey{Namespace: "default", Name: "live"}, workload("web"))
	got := map[string]int{}
	for _, r := range all {
		got[r.Kind+" "+r.Key.Name] = len(r.Put)
	}
	g.Expect(got).To(Equal(map[string]int{"StatefulSingleton live": 1, "StatefulSingleton young": 2, "StatefulSingleton other": 1}))
}
