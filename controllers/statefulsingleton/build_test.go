package statefulsingleton

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

// TestS2TheConfigMap checks the ConfigMap of a namespace, which is the same for each of its
// objects.
func TestS2TheConfigMap(t *testing.T) {
	m := buildWrapper("ns", "#!/bin/sh\n", all(singleton("web"), singleton("db")))
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
		t.Errorf("it belongs to %v, want db and web: it goes with the last of them", owners)
	}
}

// TestS2TheScriptComesOutOfTheImage checks that the script is at its usual path and comes
// from the operator's image, so that a client that may write ConfigMaps does not choose
// what runs in pods.
func TestS2TheScriptComesOutOfTheImage(t *testing.T) {
	p := injected(t, &pod().Pod, singleton("db").mode(v1.GateScript))
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap != nil {
			t.Errorf("volume %s is ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
	}
	install := p.Spec.InitContainers[0]
	if got := strings.Join(install.Command, " "); got != "/gate install /opt/wrapper" || install.Image != gateImage ||
		fmt.Sprint(install.VolumeMounts) != fmt.Sprint([]corev1.VolumeMount{{Name: "wrapper-scripts", MountPath: "/opt/wrapper"}}) {
		t.Errorf("it is installed by %s of %s, into %v", got, install.Image, install.VolumeMounts)
	}
	if v1.ScriptInPod != "/opt/wrapper/entrypoint-wrapper.sh" || script.Name != v1.FileScript {
		t.Errorf("it is called %s, and installed as %s", v1.ScriptInPod, script.Name)
	}
}

// TestS2AScriptOfTheConfigMapIsAGateStill checks that older pods, which mount the
// ConfigMap, still count as pods with a gate.
func TestS2AScriptOfTheConfigMapIsAGateStill(t *testing.T) {
	old := injected(t, &pod().Pod, singleton("db").mode(v1.GateScript))
	old.Spec.InitContainers = nil
	old.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: v1.ConfigMapWrapper}, DefaultMode: ptr.To(int32(0o755))}}
	m := &member{pod: old}
	m.lookAt(withDefaults(&singleton("db").StatefulSingleton))
	if !m.gated || strings.Join(m.program, " ") != "app" {
		t.Errorf("such a pod has a gate: %v, with program %v", m.gated, m.program)
	}
	if errs := inject(old, &singleton("db").mode(v1.GateScript).StatefulSingleton, around()); len(errs) != 1 || errs[0].Field != "spec.volumes[1].name" {
		t.Errorf("one that is made so again is told %v", errs.ToAggregate())
	}
}

// TestS2TheScriptReadsTheSignal checks that the shipped script has a shebang line, and
// reads the grant from the correct path.
func TestS2TheScriptReadsTheSignal(t *testing.T) {
	if !strings.HasPrefix(script.Text, "#!/bin/sh\n") {
		t.Errorf("it begins with %.20q", script.Text)
	}
	for _, name := range []string{v1.PathSignal, v1.FileSignal, v1.FilePodUID, v1.FileScript} {
		if !strings.Contains(script.Text, name) {
			t.Errorf("it does not say %s", name)
		}
	}
}

func TestTheGuardAsAnObject(t *testing.T) {
	watched := []string{"b", "a"}
	policy, binding := buildGuard("another", watched)
	if policy.Name != "statefulsingleton-guard-another" || binding.Name != policy.Name || binding.Spec.PolicyName != policy.Name {
		t.Errorf("named %s and %s, for %s", policy.Name, binding.Name, binding.Spec.PolicyName)
	}
	if *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Error("the guard fails open")
	}
	if p := binding.Spec.ParamRef; p.Namespace != "" || p.Name != "" || p.Selector == nil || *p.ParameterNotFoundAction != admissionv1.AllowAction {
		t.Errorf("the parameters are %v, want all of the pod's own namespace, and yes where there is none", p)
	}
	for _, selector := range []*metav1.LabelSelector{binding.Spec.MatchResources.NamespaceSelector, policy.Spec.MatchConstraints.NamespaceSelector} {
		const want = "kubernetes.io/metadata.name notin (another,kube-system),kubernetes.io/metadata.name in (a,b)"
		if got := metav1.FormatLabelSelector(selector); got != want || watched[0] != "b" {
			t.Errorf("limited to %s, want %s; the caller's list is %v", got, want, watched)
		}
	}
	if _, everywhere := buildGuard("operator-system", nil); everywhere.Spec.MatchResources != nil {
		t.Error("without watched namespaces the guard is for all")
	}
}

func TestTheGrant(t *testing.T) {
	if got := grantOf("1b4e-28ba", 7); got != "1b4e-28ba 7" {
		t.Error(got)
	}
}
