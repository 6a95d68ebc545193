package main

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/cache"
)

const auditLines = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"admin"},"objectRef":{"resource":"statefulclusters","namespace":"n","name":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"events","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.010000Z","responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"tokenreviews"},"requestReceivedTimestamp":"2026-01-01T00:00:00.012000Z","responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"pods","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.013000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"pods","namespace":"n","name":"a-0123456789"},"requestReceivedTimestamp":"2026-01-01T00:00:00.025500Z","responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"statefulclusters","subresource":"status","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.030000Z","responseStatus":{"code":409}}
{"stage":"ResponseComplete","verb":"cre`

func TestTheAuditLogTellsWritesFromReadsAndQuestions(t *testing.T) {
	g := NewWithT(t)
	own := readAudit(strings.NewReader(auditLines), (*request).isOperators)
	g.Expect(tallied(own)).To(Equal("1 create events, 1 create pods, 1 patch statefulclusters/status (returned 409)"))
	changes := readAudit(strings.NewReader(auditLines), (*request).isChange)
	g.Expect(tallied(changes)).To(Equal("1 create pods, 1 patch statefulclusters/status (returned 409)"))
}

func TestADelayEndsWithTheFirstPodAndNotWithAnEvent(t *testing.T) {
	g := NewWithT(t)
	writes := readAudit(strings.NewReader(auditLines), (*request).isWrite)
	find := func(want int) []time.Duration {
		return delays(writes, "n", "patch statefulclusters", "create pods", "-", want)
	}
	g.Expect(find(1)).To(HaveExactElements(25500 * time.Microsecond))
	g.Expect(attempt(func() { find(2) })).To(MatchError(`1 of 2 times "patch statefulclusters" was followed by "create pods"`))
}

func TestAnEditOfConfigurationEndsWithTheFirstPodOfItsSet(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	asked := func(verb, resource, name string, after time.Duration) *request {
		return &request{&auditv1.Event{Verb: verb, RequestReceivedTimestamp: metav1.NewMicroTime(at.Add(after)),
			ObjectRef: &auditv1.ObjectReference{Resource: resource, Namespace: "n", Name: name}}}
	}
	log := []*request{
		asked("patch", "configmaps", "set-1", 0), asked("patch", "statefulsets", "set-1-v1", 2*time.Second), asked("delete", "pods", "set-10-v1-0", 2*time.Second),
		asked("delete", "pods", "set-1-v1-0", 2100*time.Millisecond), asked("delete", "pods", "set-1-v1-1", 3*time.Second),
	}
	find := func(log []*request) []time.Duration {
		return delays(log, "n", "patch configmaps", "delete pods", "-v1-", 1)
	}
	g.Expect(find(log)).To(HaveExactElements(2100 * time.Millisecond))
	g.Expect(attempt(func() { find(log[:3]) })).NotTo(Succeed(), "an edit without a following pod is counted")
}

func TestExecsAtOneTimeAreCoveredOnce(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	exec := func(from, to int) *request {
		return &request{&auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(at(from)), StageTimestamp: metav1.NewMicroTime(at(to))}}
	}
	for _, row := range []struct {
		name string
		seen []*request
		want int
	}{
		{"none", nil, 0},
		{"sequential passes", []*request{exec(20, 30), exec(40, 60)}, 30},
		{"concurrent passes", []*request{exec(20, 60), exec(30, 40), exec(50, 70)}, 50},
		{"passes that started before or ended after the window", []*request{exec(0, 20), exec(90, 200)}, 20},
		{"passes in any order", []*request{exec(40, 60), exec(20, 30)}, 30},
		{"passes that ended before the window", []*request{exec(0, 5)}, 0},
	} {
		if got := covered(row.seen, at(10), at(100)); got != time.Duration(row.want)*time.Millisecond {
			t.Errorf("%s: %v, want %d ms", row.name, got, row.want)
		}
	}
}

func TestFiguresSayWhetherTheirGoalIsMet(t *testing.T) {
	for _, row := range []struct {
		sentence string
		figure   figure
		want     string
	}{
		{"a speed that meets the goal", figure{value: 1.2, goal: atLeast(1.2)}, "met"},
		{"a speed that misses the goal", figure{value: 1.19, goal: atLeast(1.2)}, "NOT met"},
		{"no write where none is allowed", figure{value: 0, goal: atMost(0)}, "met"},
		{"a write where none is allowed", figure{value: 1, goal: atMost(0)}, "NOT met"},
		{"a figure without a goal", figure{value: 1}, ""},
	} {
		if got := row.figure.verdict(); got != row.want {
			t.Errorf("%s: %q, want %q", row.sentence, got, row.want)
		}
	}
}

func TestTheMedianAndTheSlowestPercentAreMeasuredValues(t *testing.T) {
	g := NewWithT(t)
	laps := []lap{{created: 3 * time.Second}, {created: time.Second}, {created: 2 * time.Second}}
	g.Expect(medianOf(laps, lap.tillCreated)).To(Equal(2.0))
	g.Expect(medianOf(nil, lap.tillCreated)).To(BeZero())
	values := make([]float64, 300)
	for i := range values {
		values[i] = float64(300 - i)
	}
	g.Expect(quantile(values, 0.99)).To(Equal(297.0))
}

func TestASpectatorCountsAPodOnceAndForgetsItWhenGone(t *testing.T) {
	g := NewWithT(t)
	running := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }
	w := &spectator{isGood: running, pods: map[types.UID]bool{}, claims: map[types.UID]bool{}}
	pod := &corev1.Pod{}
	pod.UID = "one"
	reached := w.when(func(t tally) bool { return t.good == 1 })
	w.saw(pod)
	g.Expect(w.now()).To(Equal(tally{pods: 1}))
	pod.Status.Phase = corev1.PodRunning
	w.saw(pod)
	w.saw(pod)
	w.saw(&corev1.PersistentVolumeClaim{})
	g.Expect(w.now()).To(Equal(tally{pods: 1, good: 1, claims: 1}))
	g.Expect(reached.done).To(HaveLen(1))
	w.lost(cache.DeletedFinalStateUnknown{Obj: pod})
	g.Expect(w.now()).To(Equal(tally{claims: 1}))
}

func TestMetricsWithoutLabelsAreRead(t *testing.T) {
	g := NewWithT(t)
	m := parseMetrics(strings.NewReader("# HELP a b\na 1.5e+06\n# TYPE c counter\nc 2\n# TYPE d gauge\nd 3\n"))
	g.Expect([]float64{m.value("a"), m.value("c"), m.value("d")}).To(Equal([]float64{1.5e6, 2, 3}))
	g.Expect(attempt(func() { m.value("e") })).To(MatchError("no metric e"))
	g.Expect(attempt(func() { parseMetrics(strings.NewReader("no metrics\n")) })).NotTo(Succeed())
}

func TestAHistogramTellsWhatItTookInBetweenTwoScrapes(t *testing.T) {
	g := NewWithT(t)
	before := "# TYPE a histogram\na_bucket{le=\"1\"} 0\na_bucket{le=\"2\"} 0\na_bucket{le=\"+Inf\"} 7\na_sum 70\na_count 7\n"
	after := "# TYPE a histogram\na_bucket{le=\"1\"} 98\na_bucket{le=\"2\"} 99\na_bucket{le=\"+Inf\"} 107\na_sum 220\na_count 107\n" +
		"# TYPE b histogram\nb_bucket{le=\"0.5\"} 200\nb_bucket{le=\"+Inf\"} 200\nb_sum 1\nb_count 200\n"
	got := between(parseMetrics(strings.NewReader(before)), parseMetrics(strings.NewReader(after)), "a", nil)
	g.Expect(got.GetSampleCount()).To(Equal(uint64(100)))
	g.Expect(got.Average()).To(Equal(1.5))
	g.Expect(boundOf(got, 0.99)).To(Equal(2.0))
}

func TestWhatFailsSaysWhereAndLeavesTheRestAlone(t *testing.T) {
	g := NewWithT(t)
	found, cleared := &results{}, false
	err := attempt(func() {
		defer func() { cleared = true }()
		within("outer", func() {
			found.report(figure{title: "before"})
			within("inner", func() { check(os.ErrNotExist) })
			found.report(figure{title: "after"})
		})
	})
	g.Expect(err).To(MatchError(os.ErrNotExist))
	g.Expect(err).To(MatchError("outer: inner: file does not exist"))
	g.Expect(found.figures).To(HaveLen(1))
	g.Expect(cleared).To(BeTrue())
	g.Expect(attempt(func() {})).To(Succeed())
	g.Expect(func() { _ = attempt(func() { panic("an error") }) }).To(PanicWith("an error"))
}

func TestWorkIsSpreadUntilOneFails(t *testing.T) {
	g := NewWithT(t)
	var done [100]atomic.Bool
	g.Expect(spread(t.Context(), len(done), func(i int) error { done[i].Store(true); return nil })).To(Succeed())
	for i := range done {
		g.Expect(done[i].Load()).To(BeTrue(), "%d", i)
	}
	g.Expect(spread(t.Context(), len(done), func(i int) error { return os.ErrInvalid })).To(MatchError(os.ErrInvalid))
	ended, end := context.WithCancel(t.Context())
	end()
	g.Expect(spread(ended, 1, func(int) error { return nil })).To(MatchError(context.Canceled))
}
