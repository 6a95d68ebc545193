package statefulsingleton

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// S2: the ConfigMap of a namespace, whichever object asks for it.
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

// S2: the script can be executed, and is the one of the ConfigMap.
func TestS2TheScriptIsMounted(t *testing.T) {
	source := scriptsVolume().ConfigMap
	if source.Name != buildWrapper("ns", "", nil).Name || *source.DefaultMode != 0o755 || v1.ScriptInPod != "/opt/wrapper/entrypoint-wrapper.sh" {
		t.Errorf("%v", source)
	}
}

// S2: the script that is shipped starts by itself, and looks where the grant is.
func TestS2TheScriptReadsTheSignal(t *testing.T) {
	if !strings.HasPrefix(wrapperScript, "#!/bin/sh\n") {
		t.Errorf("it begins with %.20q", wrapperScript)
	}
	for _, name := range []string{v1.PathSignal, v1.FileSignal, v1.FilePodUID, v1.FileScript} {
		if !strings.Contains(wrapperScript, name) {
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
