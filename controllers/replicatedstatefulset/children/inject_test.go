package children_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestAntiAffinityReallyKeepsApart tests RS-7: the term exists once and selects the built pods.
func TestAntiAffinityReallyKeepsApart(t *testing.T) {
	set := fixture.Read(t, "seed.yaml")
	set.Spec.Affinity = children.Affinity(set)
	pod := children.BuildTemplate(set, children.Hashes{})
	terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 1 || terms[0].TopologyKey != "kubernetes.io/hostname" {
		t.Fatalf("terms %v", terms)
	}
	for _, has := range []map[string]string{pod.Labels, children.BuildStatefulSet(set, 3, children.Hashes{}).Spec.Template.Labels} {
		for key, value := range terms[0].LabelSelector.MatchLabels {
			if has[key] != value {
				t.Errorf("the pods' %s is %q, and the term selects %q", key, has[key], value)
			}
		}
	}
	if pod := fixture.Template(t, "seed.yaml", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.AntiAffinity = false }); pod.Spec.Affinity != nil {
		t.Errorf("unexpected affinity %v", pod.Spec.Affinity)
	}
}

func TestTheContainersOwnWordStands(t *testing.T) {
	own := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	pod := fixture.Template(t, "full.yaml", func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[1].Lifecycle = own
		s.Spec.Pod.Containers[1].Resources.Limits = corev1.ResourceList{}
		s.Spec.Pod.Container = "log"
	})
	if got := pod.Spec.Containers[1].Lifecycle; !reflect.DeepEqual(got, own) {
		t.Errorf("another container's hook is %v", got)
	}
	if got := pod.Spec.Containers[0]; got.Lifecycle == nil || got.Lifecycle.PreStop.Exec == nil || got.Resources.Requests != nil {
		t.Errorf("the commands' container has %v, %v", got.Lifecycle, got.Resources)
	}
	pod = fixture.Template(t, "full.yaml", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[1].Lifecycle = own })
	if got := pod.Spec.Containers[1].Lifecycle; !reflect.DeepEqual(got, own) {
		t.Errorf("the hook is %v", got)
	}
}

// TestChaos tests RS-56.
func TestChaos(t *testing.T) {
	for level, want := range map[int32]string{-1: "", 0: "", 1: "CHAOS_LEVEL=1 CHAOS_MODULO=19", 20: "CHAOS_LEVEL=20 CHAOS_MODULO=0"} {
		pod := fixture.Template(t, "seed.yaml", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ChaosLevel = &level })
		var got []string
		for _, e := range pod.Spec.Containers[0].Env[3:] {
			got = append(got, e.Name+"="+e.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("level %d: %v", level, got)
		}
	}
}

// TestNothingPrivilegedIsAdded tests that a user's pod that a restricted namespace accepts is still
// accepted with the operator's additions.
func TestNothingPrivilegedIsAdded(t *testing.T) {
	restricted := &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	pod := fixture.Template(t, "full.yaml", func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		s.Spec.Pod.InitContainers[0].SecurityContext = restricted
		for i := range s.Spec.Pod.Containers {
			s.Spec.Pod.Containers[i].SecurityContext = restricted
		}
	})
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range evaluator.EvaluatePod(psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if !fault.Allowed {
			t.Errorf("%s: %s", fault.ForbiddenReason, fault.ForbiddenDetail)
		}
	}
}
