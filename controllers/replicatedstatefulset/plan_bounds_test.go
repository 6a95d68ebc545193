package replicatedstatefulset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
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
			set := spec.WithDefaults(setOf(3, 1))
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

func TestTimesAreNoLongerThanIsHeeded(t *testing.T) {
	s := spec.WithDefaults(setOf(1, 1))
	s.Spec.ReconcileInterval, s.Spec.FailureWindow = "100Y", "31D"
	s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "25h"}
	if a, b, c := spec.ReconcileInterval(&s.Spec), spec.FailureWindow(&s.Spec), spec.TimeoutOf(s.Spec.Pod.Commands["stop"]); a != 24*time.Hour || b != 30*24*time.Hour || c != 24*time.Hour {
		t.Errorf("the effective times are %s, %s and %s", a, b, c)
	}
	want := []string{
		"spec.reconcileInterval is 100Y, which is replaced by 24h0m0s, the max; set 24h0m0s or less",
		"spec.failureWindow is 31D, which is replaced by 720h0m0s, the max; set 720h0m0s or less",
		"spec.pod.commands[stop].timeout is 25h, which is replaced by 24h0m0s, the max; set 24h0m0s or less",
	}
	if got := webhooks.OddTimes(&s.Spec); !slices.Equal(got, want) {
		t.Errorf("the warnings are %q", got)
	}
}

// TestAnOldObjectThatWantsTooMany tests an object that is older than the schema, which may want any
// number of members.
func TestAnOldObjectThatWantsTooMany(t *testing.T) {
	s := newStage(t, setOf(math.MaxInt32, 1))
	s.settle(20 * time.Second)
	n := noting{s.Cluster, map[string]int{}}
	w := s.observe(s.set(), engine.View{Reader: n, Live: true})
	if !strings.Contains(w.Invalid, "spec.replicas: Invalid value: 2147483647: may be at most 1000; lower it") || s.statefulSet() != nil {
		t.Errorf("the error is %s, and the StatefulSet is %v", w.Invalid, s.statefulSet())
	}
	count := 0
	for range w.WantedNames() {
		count++
	}
	if count != spec.MaxReplicas {
		t.Errorf("%d names are wanted", count)
	}
}

// TestManyMissingPodsAreLookedForAtOnce tests that missing pods are read one by one only while they
// are few.
func TestManyMissingPodsAreLookedForAtOnce(t *testing.T) {
	for _, r := range []struct{ replicas, gets int32 }{{observe.MaxLookups, observe.MaxLookups}, {observe.MaxLookups + 1, 0}, {1000, 0}} {
		s := newStage(t, setOf(r.replicas, 1))
		stray := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-7", Namespace: "ns", Annotations: map[string]string{v1alpha1.AnnotationTemplate: "x"}}}
		s.Put(stray)
		n := noting{s.Cluster, map[string]int{}}
		s.r.Live = n
		w := s.observe(s.set(), engine.View{Reader: n, Live: true})
		if len(w.Members) != 1 || w.Members[0].Name() != "rss-db-7" {
			t.Errorf("replicas %d: %d members are found, want the one that lost its labels", r.replicas, len(w.Members))
		}
		if got := int32(n.asked["*v1.Pod"]); got > max(r.gets, 1) {
			t.Errorf("replicas %d: %d pods are read one by one", r.replicas, got)
		}
	}
}

func TestAPodBeyondAllOrdinalsIsNoMember(t *testing.T) {
	s := newStage(t, setOf(1, 1))
	for _, n := range []int{spec.MaxReplicas - 1, spec.MaxReplicas} {
		s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: spec.MemberName(anySet, n), Namespace: "ns", Labels: spec.OwnLabels(anySet)}})
	}
	var names []string
	for _, m := range s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}).Members {
		names = append(names, m.Name())
	}
	if !slices.Equal(names, []string{"rss-db-999"}) {
		t.Errorf("the members are %q", names)
	}
}

func TestRulesAreBounded(t *testing.T) {
	set := setOf(1, 1)
	set.Spec.RuleSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rules": "yes"}}
	s := newStage(t, set)
	rule := func(i int, text string) *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("rule-", i), Namespace: "ns", Labels: map[string]string{"rules": "yes"}}, Data: map[string]string{"<a>": text}}
		if i%2 == 1 {
			c.BinaryData = map[string][]byte{"b": {1, 2, 3}}
		}
		return c
	}
	all := map[string]any{}
	for i := range spec.MaxRules {
		c := rule(i, "x")
		s.Put(c)
		all[c.Name] = []any{c.Data, c.BinaryData}
	}
	pass := func() *facts.World { s.look(); return s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}) }
	w := pass()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if want := hashed(text); w.Rules != want || w.Excess != "" {
		t.Errorf("the hash is %s (%q), want %s as on running pods", w.Rules, w.Excess, want)
	}
	s.settle(20 * time.Second)
	before := s.statefulSet().Spec.Template.Annotations[v1alpha1.AnnotationRules]
	extra := rule(spec.MaxRules, "x")
	s.Put(extra)
	if w = pass(); w.Excess != "it selects 101 ConfigMaps; the max is 100" || w.Rules != before || before == "" {
		t.Errorf("the excess is %q; the hash is %q, was %q", w.Excess, w.Rules, before)
	}
	p := rules.Decide(w)
	if c := meta.FindStatusCondition(status.Summarize(&p).Conditions, v1alpha1.ConditionDegraded); c.Reason+": "+c.Message != "RulesUnfollowed: spec.ruleSelector is ignored, and members are not updated for it: it selects 101 ConfigMaps; the max is 100; select fewer" {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	s.DeleteNow(extra)
	for i := range observe.MaxRuleBytes >> 20 {
		s.Put(rule(i, strings.Repeat("x", 1<<20)))
	}
	if w = pass(); w.Excess != "it selects ConfigMaps of more than 8 MiB in total" || w.Rules != before {
		t.Errorf("the excess is %q; the hash is %q, was %q", w.Excess, w.Rules, before)
	}
	s.restart()
	if w = pass(); w.Rules != before {
		t.Errorf("after a restart the hash is %q, was %q", w.Rules, before)
	}
}

// hashed returns the hash of rules as it was before they were read one by one.
func hashed(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
