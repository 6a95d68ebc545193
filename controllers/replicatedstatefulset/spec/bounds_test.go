package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// words returns that many labels, or entries of another map of strings.
func words(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("k", i)] = "v"
	}
	return all
}

const others = "there may be at most %d; remove the others"

// bounded are the bounded parts of a spec, with the error for one more.
var bounded = []struct {
	path   string
	most   int
	says   string
	change func(*v1alpha1.ReplicatedStatefulSetSpec, int)
}{
	{"spec.replicas", 1000, "may be at most 1000; lower it", func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Replicas, s.Primaries = ptr.To(int32(n)), nil }},
	{"spec.servicePorts", 100, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.ServicePorts = make([]corev1.ServicePort, n) }},
	{"spec.imagePullSecrets", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.ImagePullSecrets = make([]corev1.LocalObjectReference, n)
	}},
	{"spec.secrets", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		for i := range n {
			s.Secrets = append(s.Secrets[:i], fmt.Sprint("s", i))
		}
	}},
	{"spec.maintenance", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		for i := range n {
			s.Maintenance = append(s.Maintenance[:i], fmt.Sprint("rss-db-", i))
		}
	}},
	{"spec.nodeSelector", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.NodeSelector = words(n) }},
	{"spec.tolerations", 128, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Tolerations = make([]corev1.Toleration, n) }},
	{"spec.ruleSelector.matchLabels", 32, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.RuleSelector = &metav1.LabelSelector{MatchLabels: words(n)}
	}},
	{"spec.pod.containers", 32, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.Pod.Containers = make([]corev1.Container, n)
		for i := range n {
			s.Pod.Containers[i] = corev1.Container{Name: fmt.Sprint("c", i), Image: "x"}
		}
	}},
	{"spec.pod.initContainers", 32, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.Pod.InitContainers = make([]corev1.Container, n)
		for i := range n {
			s.Pod.InitContainers[i] = corev1.Container{Name: fmt.Sprint("c", i), Image: "x"}
		}
	}},
	{"spec.pod.volumes", 128, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		for i := range n {
			s.Pod.Volumes = append(s.Pod.Volumes[:i], corev1.Volume{Name: fmt.Sprint("v", i)})
		}
	}},
	{"spec.pod.volumeClaimTemplates", 32, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		for i := range n {
			s.Pod.VolumeClaimTemplates = append(s.Pod.VolumeClaimTemplates[:i], corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("v", i)}})
		}
	}},
	{"spec.pod.labels", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Pod.Labels = words(n) }},
	{"spec.pod.annotations", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Pod.Annotations = words(n) }},
	{"spec.pod.nodeSelector", 64, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Pod.NodeSelector = words(n) }},
	{"spec.pod.commands[stop].command", 1024, others, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.Pod.Commands["stop"] = v1alpha1.Command{Command: append([]string{"/stop"}, make([]string, n-1)...)}
	}},
	{"spec.pod.commands[stop].command[1]", 32768, "has 32769 bytes, and the max is %d; move the script into the image or a ConfigMap", func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop", strings.Repeat("x", n)}}
	}},
	{"spec", bounds.Bytes, "has 262145 bytes as JSON, and may have at most %d; move scripts and configuration to the image or a ConfigMap", func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
		s.Pod.Annotations = map[string]string{"a": ""}
		text, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		s.Pod.Annotations["a"] = strings.Repeat("x", n-len(text))
	}},
}

func TestBounds(t *testing.T) {
	for _, r := range bounded {
		tried := func(n int) field.ErrorList {
			set := spec.WithDefaults(fixture.SetOf(3, 1))
			r.change(&set.Spec, n)
			return spec.Validate(set)
		}
		if errs := tried(r.most); len(errs) > 0 {
			t.Errorf("%d: %v", r.most, errs)
		}
		says := r.says
		if strings.Contains(says, "%d") {
			says = fmt.Sprintf(says, r.most)
		}
		if errs := tried(r.most + 1); len(errs) != 1 || errs[0].Field != r.path || errs[0].Detail != says {
			t.Errorf("%d: %v, want %s: %s", r.most+1, errs, r.path, says)
		}
	}
}

func TestMoreThanAreFollowedAreRefused(t *testing.T) {
	set := fixture.Follows(fixture.SetOf(3, 1))
	for i := range configuration.MaxSources {
		set.Spec.Pod.Containers[0].EnvFrom = append(set.Spec.Pod.Containers[0].EnvFrom, corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("s", i)}}})
	}
	errs := spec.ValidateConfig(set, field.NewPath("spec", "updateOnEnvChange"))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "at most 256") {
		t.Errorf("the errors are %v", errs)
	}
	set.Spec.UpdateOnEnvChange = false
	if errs := spec.ValidateConfig(set, nil); errs != nil {
		t.Errorf("a set that is not followed is refused: %v", errs)
	}
}
