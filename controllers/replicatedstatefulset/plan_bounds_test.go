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

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestAnOldObjectThatWantsTooMany tests an object that is older than the schema, which may want any
// number of members.
func TestAnOldObjectThatWantsTooMany(t *testing.T) {
	s := newStage(t, fixture.SetOf(math.MaxInt32, 1))
	s.settle(20 * time.Second)
	n := noting{s.Cluster, map[string]int{}}
	w := s.observe(s.Set(), engine.View{Reader: n, Live: true})
	if !strings.Contains(w.Invalid, "spec.replicas: Invalid value: 2147483647: may be at most 1000; lower it") || s.StatefulSet() != nil {
		t.Errorf("the error is %s, and the StatefulSet is %v", w.Invalid, s.StatefulSet())
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
		s := newStage(t, fixture.SetOf(r.replicas, 1))
		stray := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-7", Namespace: "ns", Annotations: map[string]string{v1alpha1.AnnotationTemplate: "x"}}}
		s.Put(stray)
		n := noting{s.Cluster, map[string]int{}}
		s.Reader.Live = n
		w := s.observe(s.Set(), engine.View{Reader: n, Live: true})
		if len(w.Members) != 1 || w.Members[0].Name() != "rss-db-7" {
			t.Errorf("replicas %d: %d members are found, want the one that lost its labels", r.replicas, len(w.Members))
		}
		if got := int32(n.asked["*v1.Pod"]); got > max(r.gets, 1) {
			t.Errorf("replicas %d: %d pods are read one by one", r.replicas, got)
		}
	}
}

func TestAPodBeyondAllOrdinalsIsNoMember(t *testing.T) {
	s := newStage(t, fixture.SetOf(1, 1))
	for _, n := range []int{spec.MaxReplicas - 1, spec.MaxReplicas} {
		s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: spec.MemberName(fixture.SetOf(1, 1), n), Namespace: "ns", Labels: spec.OwnLabels(fixture.SetOf(1, 1))}})
	}
	var names []string
	for _, m := range s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true}).Members {
		names = append(names, m.Name())
	}
	if !slices.Equal(names, []string{"rss-db-999"}) {
		t.Errorf("the members are %q", names)
	}
}

func TestRulesAreBounded(t *testing.T) {
	set := fixture.SetOf(1, 1)
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
	pass := func() *facts.World { s.Look(); return s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true}) }
	w := pass()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if want := hashed(text); w.Rules != want || w.WhyRulesIgnored != "" {
		t.Errorf("the hash is %s (%q), want %s as on running pods", w.Rules, w.WhyRulesIgnored, want)
	}
	s.settle(20 * time.Second)
	before := s.StatefulSet().Spec.Template.Annotations[v1alpha1.AnnotationRules]
	extra := rule(spec.MaxRules, "x")
	s.Put(extra)
	if w = pass(); w.WhyRulesIgnored != "it selects 101 ConfigMaps; the max is 100" || w.Rules != before || before == "" {
		t.Errorf("the excess is %q; the hash is %q, was %q", w.WhyRulesIgnored, w.Rules, before)
	}
	p := rules.Decide(w)
	if c := meta.FindStatusCondition(status.Summarize(&p).Conditions, v1alpha1.ConditionDegraded); c.Reason+": "+c.Message != "RulesUnfollowed: spec.ruleSelector is ignored, and members are not updated for it: it selects 101 ConfigMaps; the max is 100; select fewer" {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	s.DeleteNow(extra)
	for i := range observe.MaxRuleBytes >> 20 {
		s.Put(rule(i, strings.Repeat("x", 1<<20)))
	}
	if w = pass(); w.WhyRulesIgnored != "it selects ConfigMaps of more than 8 MiB in total" || w.Rules != before {
		t.Errorf("the excess is %q; the hash is %q, was %q", w.WhyRulesIgnored, w.Rules, before)
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
