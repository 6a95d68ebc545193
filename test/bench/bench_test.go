package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const auditLines = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"admin"},"objectRef":{"resource":"statefulclusters","namespace":"n","name":"a"},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"events","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.010000Z","responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"tokenreviews"},"requestReceivedTimestamp":"2026-01-01T00:00:00.012000Z","responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"pods","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.013000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"pods","namespace":"n","name":"a-0123456789"},"requestReceivedTimestamp":"2026-01-01T00:00:00.025500Z","responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"` + operatorUser + `"},"objectRef":{"resource":"statefulclusters","subresource":"status","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.030000Z","responseStatus":{"code":409}}
{"stage":"ResponseComplete","verb":"cre`

func readLines(t *testing.T) []request {
	t.Helper()
	writes, err := readAudit(strings.NewReader(auditLines), request.isWrite)
	if err != nil {
		t.Fatal(err)
	}
	return writes
}

func TestTheAuditLogTellsWritesFromReadsAndQuestions(t *testing.T) {
	changes, events := byOperator(readLines(t))
	if len(events) != 1 {
		t.Errorf("found %d events, want 1", len(events))
	}
	const want = "1 create pods, 1 patch statefulclusters/status (answered 409)"
	if got := tallied(changes); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestADelayEndsWithTheFirstPodAndNotWithAnEvent(t *testing.T) {
	got, err := delays(readLines(t), "n", 1)
	if err != nil || len(got) != 1 || got[0] != 25.5 {
		t.Errorf("found %v, %v, want 25.5 ms", got, err)
	}
	if _, err := delays(readLines(t), "n", 2); err == nil {
		t.Error("a change that nothing followed is not missed")
	}
}

func TestAnEditOfConfigurationEndsWithTheFirstPodOfItsSet(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	asked := func(verb, resource, name string, after time.Duration) request {
		r := request{Verb: verb, Received: at.Add(after)}
		r.Object.Resource, r.Object.Namespace, r.Object.Name = resource, "n", name
		return r
	}
	log := []request{
		asked("patch", "configmaps", "set-1", 0), asked("patch", "statefulsets", "set-1-v1", 2*time.Second), asked("delete", "pods", "set-10-v1-0", 2*time.Second),
		asked("delete", "pods", "set-1-v1-0", 2100*time.Millisecond), asked("delete", "pods", "set-1-v1-1", 3*time.Second),
	}
	if got, err := restartDelays(log, "n", 1); err != nil || len(got) != 1 || got[0] != 2.1 {
		t.Errorf("found %v, %v, want 2.1 s", got, err)
	}
	if _, err := restartDelays(log[:3], "n", 1); err == nil {
		t.Error("an edit that no pod followed is not missed")
	}
}

func TestFiguresSayWhetherTheirGoalIsMet(t *testing.T) {
	for _, row := range []struct {
		sentence string
		figure   figure
		want     string
	}{
		{"a speed that is enough", figure{value: 1.2, goal: atLeast(1.2)}, "met"},
		{"a speed that is not", figure{value: 1.19, goal: atLeast(1.2)}, "NOT met"},
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
	laps := []lap{{created: 3 * time.Second}, {created: time.Second}, {created: 2 * time.Second}}
	if got := medianOf(laps, func(l lap) float64 { return l.created.Seconds() }); got != 2 {
		t.Errorf("the median of 1, 2 and 3 is %v", got)
	}
	values := make([]float64, 300)
	for i := range values {
		values[i] = float64(i + 1)
	}
	if got := quantile(values, 0.99); got != 297 {
		t.Errorf("99 %% of 1 to 300 are at most %v, want 297", got)
	}
}

func TestASpectatorCountsAPodOnceAndForgetsItWhenGone(t *testing.T) {
	w := &spectator{pods: map[types.UID]bool{}, claims: map[types.UID]bool{}}
	pod := &corev1.Pod{}
	pod.UID = "one"
	good := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }
	reached := w.when(func(t tally) bool { return t.good == 1 })
	w.sawPod(pod, good)
	pod.Status.Phase = corev1.PodRunning
	w.sawPod(pod, good)
	w.sawPod(pod, good)
	if got := w.now(); got != (tally{pods: 1, good: 1}) || len(reached.done) != 1 {
		t.Errorf("found %+v and %d milestones", got, len(reached.done))
	}
	w.lostPod(pod)
	if got := w.now(); got != (tally{}) {
		t.Errorf("found %+v after the pod went", got)
	}
}

func TestMetricsWithoutLabelsAreRead(t *testing.T) {
	got, err := parseMetrics(strings.NewReader("# HELP a b\na 1.5e+06\nb{c=\"d e\"} 2\n"))
	if err != nil || len(got) != 1 || got["a"] != 1.5e6 {
		t.Errorf("found %v, %v", got, err)
	}
}

func TestAHistogramTellsWhatItTookInBetweenTwoScrapes(t *testing.T) {
	scrape := func(text string) map[string]float64 {
		values, err := parseMetrics(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	before := scrape("a_bucket{le=\"1\"} 0\na_bucket{le=\"2\"} 0\na_bucket{le=\"+Inf\"} 7\na_sum 70\na_count 7\n")
	after := scrape("a_bucket{le=\"1\"} 98\na_bucket{le=\"2\"} 99\na_bucket{le=\"+Inf\"} 107\nb_bucket{le=\"0.5\"} 200\na_sum 220\na_count 107\n")
	if got, want := observedBetween(before, after, "a"), (observed{count: 100, mean: 1.5, p99: 2}); got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
}
