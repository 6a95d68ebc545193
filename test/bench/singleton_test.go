package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	handoverLines = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:node:node-1"},"objectRef":{"resource":"pods","subresource":"status","namespace":"n","name":"old"},"requestReceivedTimestamp":"2026-01-01T00:00:01.010000Z","stageTimestamp":"2026-01-01T00:00:01.020000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:00.990000Z","stageTimestamp":"2026-01-01T00:00:00.992000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:01.025000Z","stageTimestamp":"2026-01-01T00:00:01.028000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"OPERATOR"},"objectRef":{"resource":"pods","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:01.030000Z","stageTimestamp":"2026-01-01T00:00:01.032000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"pods","namespace":"n","name":"old"},"requestReceivedTimestamp":"2026-01-01T00:00:01.035000Z","stageTimestamp":"2026-01-01T00:00:01.038000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","subresource":"status","namespace":"n","name":"s"},"requestReceivedTimestamp":"2026-01-01T00:00:01.040000Z","stageTimestamp":"2026-01-01T00:00:01.045000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"pods","namespace":"n","name":"next"},"requestReceivedTimestamp":"2026-01-01T00:00:01.046000Z","stageTimestamp":"2026-01-01T00:00:01.050000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","subresource":"status","namespace":"n","name":"s"},"requestReceivedTimestamp":"2026-01-01T00:00:01.060000Z","stageTimestamp":"2026-01-01T00:00:01.065000Z","responseStatus":{"code":200}}
`
	histogramLines = `# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="other",operation="CREATE",rejected="false",type="admit",le="0.005"} 7
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit",le="0.005"} 98
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit",le="0.025"} 99
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit",le="+Inf"} 99
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit",le="0.005"} 1
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit",le="0.025"} 1
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit",le="+Inf"} 1
`
)

func TestTheAuditLogTellsTheStagesOfAHandover(t *testing.T) {
	requests, err := readAudit(strings.NewReader(strings.ReplaceAll(handoverLines, "OPERATOR", deployedOperator)), request.isOfHandover)
	if err != nil {
		t.Fatal(err)
	}
	second := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	got := findStages(requests, "n", "old", "next", second, second.Add(80*time.Millisecond))
	const ms = time.Millisecond
	if want := (stages{20 * ms, 5 * ms, 15 * ms, 10 * ms, 30 * ms, true, 2, 1}); got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
	if got := findStages(requests, "n", "old", "another", second, second.Add(80*ms)); got.known {
		t.Errorf("found %+v of a pod that was granted nothing", got)
	}
}

func TestAHistogramIsExactAtItsBounds(t *testing.T) {
	got, err := parseHistogram(strings.NewReader(histogramLines), admissionMetric, `name="`+podWebhook+`"`)
	if err != nil || len(got) != 3 || got[0.005] != 99 || got[math.Inf(1)] != 100 {
		t.Fatalf("found %v, %v", got, err)
	}
	if p99 := got.quantile(0.99); p99 != 0.005 {
		t.Errorf("99 of 100 within 5 ms are a p99 of %v s", p99)
	}
	if p50, p995 := got.quantile(0.5), got.quantile(0.995); p50 >= 0.005 || p995 <= 0.005 || p995 >= 0.025 {
		t.Errorf("found p50 %v, p99.5 %v", p50, p995)
	}
	if left := got.since(got).quantile(0.99); !math.IsNaN(left) {
		t.Errorf("no calls have a p99 of %v", left)
	}
	const want = "100 calls, 99 within 5 ms, all within 25 ms"
	if got := got.String(); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestAProcessIsRead(t *testing.T) {
	dir := fmt.Sprintf("/proc/%d", os.Getpid())
	if _, err := os.Stat(dir + "/task"); err != nil {
		t.Skip("needs Linux")
	}
	p, ok := readProcess(dir)
	if !ok || p.pid != os.Getpid() || p.resident <= p.own || p.own <= 0 || p.cpu <= 0 || p.isGate() {
		t.Errorf("found %+v, %v", p, ok)
	}
}
