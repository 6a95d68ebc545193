package children_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

// TestS2TheConfigMap checks the ConfigMap of a namespace, which is the same for each of its
// objects.
func TestS2TheConfigMap(t *testing.T) {
	m := children.BuildWrapper("ns", "#!/bin/sh\n", fixture.All(fixture.Singleton("web"), fixture.Singleton("db")))
	if m.Name != "statefulsingleton-wrapper" || m.Namespace != "ns" || m.Data["entrypoint-wrapper.sh"] != "#!/bin/sh\n" ||
		m.Labels["app.kubernetes.io/part-of"] != "statefulsingleton-operator" || m.Labels["app.kubernetes.io/managed-by"] != "statefulsingleton-controller" {
		t.Errorf("%v", m)
	}
	var owners []string
	for _, o := range m.OwnerReferences {
		owners = append(owners, o.Name)
		if string(o.UID) != "uid-of-"+o.Name || o.Kind != "StatefulSingleton" || o.APIVersion != v1.GroupVersion.String() || o.Controller != nil || o.BlockOwnerDeletion != nil {
			t.Errorf("%v", o)
		}
	}
	if strings.Join(owners, " ") != "db web" {
		t.Errorf("its owners are %v, want db and web: it is deleted with the last of them", owners)
	}
}

// TestS2TheScriptComesOutOfTheImage checks that the script is at its usual path and comes
// from the operator's image, so that a client that may write ConfigMaps does not choose
// what runs in pods.
func TestS2TheScriptComesOutOfTheImage(t *testing.T) {
	p := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Mode(v1.GateScript))
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap != nil {
			t.Errorf("volume %s is ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
	}
	install := p.Spec.InitContainers[0]
	if got := strings.Join(install.Command, " "); got != "/gate install /opt/wrapper" || install.Image != fixture.GateImage ||
		fmt.Sprint(install.VolumeMounts) != fmt.Sprint([]corev1.VolumeMount{{Name: "wrapper-scripts", MountPath: "/opt/wrapper"}}) {
		t.Errorf("container %s of image %s installs it into %v", got, install.Image, install.VolumeMounts)
	}
	if v1.ScriptInPod != "/opt/wrapper/entrypoint-wrapper.sh" || script.Name != v1.FileScript {
		t.Errorf("the command uses path %s, and the installed path is %s", v1.ScriptInPod, script.Name)
	}
}

// TestS2AScriptOfTheConfigMapIsAGateStill checks that older pods, which mount the
// ConfigMap, still count as pods with a gate.
func TestS2AScriptOfTheConfigMapIsAGateStill(t *testing.T) {
	old := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Mode(v1.GateScript))
	old.Spec.InitContainers = nil
	old.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: v1.ConfigMapWrapper}, DefaultMode: ptr.To(int32(0o755))}}
	m := &facts.Member{Pod: old}
	m.Inspect(spec.WithDefaults(&fixture.Singleton("db").StatefulSingleton))
	if !m.Gated || strings.Join(m.Program, " ") != "app" {
		t.Errorf("has gate: %v, with program %v", m.Gated, m.Program)
	}
	if errs := children.Inject(old, &fixture.Singleton("db").Mode(v1.GateScript).StatefulSingleton, fixture.Around()); len(errs) != 1 || errs[0].Field != "spec.volumes[1].name" {
		t.Errorf("injecting the gate a second time returns %v", errs.ToAggregate())
	}
}

// TestS2TheScriptReadsTheSignal checks that the shipped script has a shebang line, and
// reads the grant from the correct path.
func TestS2TheScriptReadsTheSignal(t *testing.T) {
	if !strings.HasPrefix(script.Text, "#!/bin/sh\n") {
		t.Errorf("the script begins with %.20q", script.Text)
	}
	for _, name := range []string{v1.PathSignal, v1.FileSignal, v1.FilePodUID, v1.FileScript} {
		if !strings.Contains(script.Text, name) {
			t.Errorf("the script does not contain %s", name)
		}
	}
}

func TestTheGuardAsAnObject(t *testing.T) {
	watched := []string{"b", "a"}
	policy, binding := children.BuildGuard("another", watched)
	if policy.Name != "statefulsingleton-guard-another" || binding.Name != policy.Name || binding.Spec.PolicyName != policy.Name {
		t.Errorf("the policy and binding are named %s and %s, for %s", policy.Name, binding.Name, binding.Spec.PolicyName)
	}
	if *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Error("the failure policy of the guard is Ignore")
	}
	if p := binding.Spec.ParamRef; p.Namespace != "" || p.Name != "" || p.Selector == nil || *p.ParameterNotFoundAction != admissionv1.AllowAction {
		t.Errorf("the parameters are %v, want all objects of the pod's namespace, and Allow without objects", p)
	}
	for _, selector := range []*metav1.LabelSelector{binding.Spec.MatchResources.NamespaceSelector, policy.Spec.MatchConstraints.NamespaceSelector} {
		const want = "kubernetes.io/metadata.name notin (another,kube-system),kubernetes.io/metadata.name in (a,b)"
		if got := metav1.FormatLabelSelector(selector); got != want || watched[0] != "b" {
			t.Errorf("the binding selects namespaces %s, want %s; the caller's list is %v", got, want, watched)
		}
	}
	if _, everywhere := children.BuildGuard("operator-system", nil); everywhere.Spec.MatchResources != nil {
		t.Error("the guard without watched namespaces does not apply to all namespaces")
	}
}

func TestTheGrant(t *testing.T) {
	if got := children.GrantOf("1b4e-28ba", 7); got != "1b4e-28ba 7" {
		t.Error(got)
	}
}
