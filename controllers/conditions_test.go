package controllers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/test/alerts"
)

func metricsOf(t *testing.T, objects ...client.Object) (*conditionMetrics, client.Client) {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		objects[i] = cached(t, objects[i])
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &conditionMetrics{reader: c, registry: prometheus.NewRegistry(), kinds: kinds}, c
}

// cached returns the object as the cache stores it.
func cached(t *testing.T, object client.Object) client.Object {
	t.Helper()
	for _, k := range kinds {
		for held, by := range k.cache() {
			if reflect.TypeOf(held) != reflect.TypeOf(object) || by.Transform == nil {
				continue
			}
			kept, err := by.Transform(object)
			if err != nil {
				t.Fatal(err)
			}
			return kept.(client.Object)
		}
	}
	return object
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func is(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason}
}

func TestConditionsOfEachKindHaveFigures(t *testing.T) {
	g := NewWithT(t)
	cluster := &engev1alpha1.StatefulCluster{ObjectMeta: named("a")}
	cluster.Status.Conditions = []metav1.Condition{is("Available", "True", "Fine")}
	set := &clusterlabsv1alpha1.ReplicatedStatefulSet{ObjectMeta: named("b")}
	set.Status.Conditions = []metav1.Condition{is("Degraded", "True", "NodeUnreachable"), is("Available", "Unknown", "Who")}
	extended := &fissilev1alpha1.ExtendedStatefulSet{ObjectMeta: named("c")}
	extended.Status.Conditions = []metav1.Condition{is("Stale", "False", "Healthy")}
	single := &statefulsingletonv1.StatefulSingleton{ObjectMeta: named("d")}
	single.Status.Conditions = []metav1.Condition{is("GuardMissing", "True", "NoPolicyAPI")}
	m, c := metricsOf(t, cluster, set, extended, single)

	want := `# HELP stateful_operator_condition Conditions of objects: 1 while a condition is True, else 0.
# TYPE stateful_operator_condition gauge
stateful_operator_condition{kind="ExtendedStatefulSet",name="c",namespace="ns",reason="Healthy",type="Stale"} 0
stateful_operator_condition{kind="ReplicatedStatefulSet",name="b",namespace="ns",reason="NodeUnreachable",type="Degraded"} 1
stateful_operator_condition{kind="ReplicatedStatefulSet",name="b",namespace="ns",reason="Who",type="Available"} 0
stateful_operator_condition{kind="StatefulCluster",name="a",namespace="ns",reason="Fine",type="Available"} 1
stateful_operator_condition{kind="StatefulSingleton",name="d",namespace="ns",reason="NoPolicyAPI",type="GuardMissing"} 1
`
	g.Expect(testutil.CollectAndCompare(m, strings.NewReader(want), "stateful_operator_condition")).To(Succeed())
	g.Expect(testutil.CollectAndLint(m)).To(BeEmpty())

	g.Expect(c.Delete(context.Background(), set)).To(Succeed())
	g.Expect(testutil.CollectAndCount(m, "stateful_operator_condition")).To(Equal(3), "metrics are removed with their object")
}

func TestFiguresOfConditionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	hostile := &engev1alpha1.StatefulCluster{ObjectMeta: named("a")}
	for i := range 100 {
		hostile.Status.Conditions = append(hostile.Status.Conditions, is(fmt.Sprint("Mine", i), "True", "Mine"), is("Mine0", "False", "Twice"))
	}
	hostile.Status.Conditions = append([]metav1.Condition{is("Long", "True", strings.Repeat("x", 1000)), is("NoText", "True", "\xff")}, hostile.Status.Conditions...)
	m, _ := metricsOf(t, hostile)
	g.Expect(testutil.CollectAndCount(m, "stateful_operator_condition")).To(BeNumerically("<=", slim.MaxConditions))

	var many engev1alpha1.StatefulClusterList
	for i := range maxObjects + 3 {
		one := engev1alpha1.StatefulCluster{ObjectMeta: named(fmt.Sprintf("o%06d", i))}
		one.Status.Conditions = []metav1.Condition{is("Available", "True", "Fine")}
		many.Items = append(many.Items, one)
	}
	m = &conditionMetrics{reader: &listing{list: many}, kinds: kinds[:1]}
	g.Expect(testutil.CollectAndCount(m, "stateful_operator_condition")).To(Equal(maxObjects))
	g.Expect(testutil.CollectAndCompare(m, strings.NewReader(`# HELP stateful_operator_condition_objects_left_out Objects of a kind whose conditions have no metrics, because there are too many objects.
# TYPE stateful_operator_condition_objects_left_out gauge
stateful_operator_condition_objects_left_out{kind="StatefulCluster"} 3
`), "stateful_operator_condition_objects_left_out")).To(Succeed())
}

// listing is a cache with one list.
type listing struct {
	client.Reader
	list engev1alpha1.StatefulClusterList
}

func (l *listing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.list.DeepCopyInto(list.(*engev1alpha1.StatefulClusterList))
	return nil
}

func TestConditionsAreToldWhileThisProcessLeads(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	m, _ := metricsOf(t)
	m.registry = registry
	gathered := func() int {
		n, err := testutil.GatherAndCount(registry)
		g.Expect(err).NotTo(HaveOccurred())
		return n
	}
	g.Expect(gathered()).To(BeZero())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	g.Eventually(gathered).WithTimeout(time.Minute).Should(Equal(len(Kinds())), "objects without metrics are counted by kind")
	g.Expect(m.Start(ctx)).To(Succeed(), "a second manager of a process exposes no metrics")
	cancel()
	g.Expect(<-done).To(Succeed())
	g.Expect(gathered()).To(BeZero())
}

// alertsOn returns the alerts of config/prometheus.
func alertsOn(t *testing.T) []alerts.Alert {
	t.Helper()
	all, err := alerts.All(filepath.Join("..", "config"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// constants returns the values of the constants in apis/ whose names have that prefix.
func constants(t *testing.T, beginning string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "apis", "*", "*", "names.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	var words []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\b`+beginning+`\w+\s+=\s+"(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			words = append(words, found[1])
		}
	}
	return words
}

// saidByOthers are conditions for programs: they summarize the other conditions.
var saidByOthers = []string{"Ready", "Reconciling", "Stalled"}

func TestEachConditionThatWantsAPersonHasAnAlert(t *testing.T) {
	g := NewWithT(t)
	var alerted []string
	for _, a := range alertsOn(t) {
		for _, found := range regexp.MustCompile(`type="(\w+)"`).FindAllStringSubmatch(a.Expr, -1) {
			alerted = append(alerted, found[1])
		}
		for _, found := range regexp.MustCompile(`reason!?=~?"([\w|]+)"`).FindAllStringSubmatch(a.Expr, -1) {
			for reason := range strings.SplitSeq(found[1], "|") {
				g.Expect(constants(t, "Reason")).To(ContainElement(reason), "%s uses a reason that no condition has", a.Alert)
			}
		}
	}
	for _, known := range constants(t, "Condition") {
		if slices.Contains(saidByOthers, known) {
			continue
		}
		g.Expect(alerted).To(ContainElement(known), "condition %s has no alert in config/prometheus/conditions.yaml", known)
	}
	g.Expect(constants(t, "Condition")).To(ContainElements(alerted), "an alert is on a condition that no kind has")
}

func TestEachAlertHasARunbookThatEndsInCommands(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "docs", "runbooks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := alertsOn(t)
	if len(pages) != len(all) {
		t.Errorf("%d pages and %d alerts", len(pages), len(all))
	}
	for _, a := range all {
		t.Run(a.Alert, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(a.Annotations).To(HaveKeyWithValue("runbook_url", HaveSuffix("/docs/runbooks/"+a.Alert+".md")))
			text, err := os.ReadFile(filepath.Join("..", "docs", "runbooks", a.Alert+".md"))
			g.Expect(err).NotTo(HaveOccurred())
			for _, part := range []string{"# " + a.Alert, "**What it means.**", "**How to see it.**", "**What to do.**", "**What not to do.**", "**Commands.**"} {
				g.Expect(string(text)).To(ContainSubstring(part))
			}
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			g.Expect(lines[len(lines)-1]).To(HavePrefix("    kubectl "))
		})
	}
}
