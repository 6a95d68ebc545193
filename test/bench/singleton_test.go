package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const (
	handoverLines = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:node:node-1"},"objectRef":{"resource":"pods","subresource":"status","namespace":"n","name":"old"},"requestReceivedTimestamp":"2026-01-01T00:00:01.010000Z","stageTimestamp":"2026-01-01T00:00:01.020000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","namespace":"n","name":"s"},"requestReceivedTimestamp":"2026-01-01T00:00:00.990000Z","stageTimestamp":"2026-01-01T00:00:00.992000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","namespace":"n","name":"s"},"requestReceivedTimestamp":"2026-01-01T00:00:01.025000Z","stageTimestamp":"2026-01-01T00:00:01.028000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"OPERATOR"},"objectRef":{"resource":"pods","namespace":"n"},"requestReceivedTimestamp":"2026-01-01T00:00:01.030000Z","stageTimestamp":"2026-01-01T00:00:01.032000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"pods","namespace":"n","name":"old"},"requestReceivedTimestamp":"2026-01-01T00:00:01.035000Z","stageTimestamp":"2026-01-01T00:00:01.038000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","subresource":"status","namespace":"n","name":"s"},"requestReceivedTimestamp":"2026-01-01T00:00:01.040000Z","stageTimestamp":"2026-01-01T00:00:01.045000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"pods","namespace":"n","name":"next"},"requestReceivedTimestamp":"2026-01-01T00:00:01.046000Z","stageTimestamp":"2026-01-01T00:00:01.050000Z","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"OPERATOR"},"objectRef":{"resource":"statefulsingletons","subresource":"status","namespace":"n","name":"s"},"requestReceivedTimestamp":"2026-01-01T00:00:01.060000Z","stageTimestamp":"2026-01-01T00:00:01.065000Z","responseStatus":{"code":200}}
`
	histogramLines = `# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="other",operation="CREATE",rejected="false",type="admit",le="0.005"} 7
apiserver_admission_webhook_admission_duration_seconds_bucket{name="other",operation="CREATE",rejected="false",type="admit",le="0.025"} 7
apiserver_admission_webhook_admission_duration_seconds_bucket{name="other",operation="CREATE",rejected="false",type="admit",le="+Inf"} 7
apiserver_admission_webhook_admission_duration_seconds_sum{name="other",operation="CREATE",rejected="false",type="admit"} 1
apiserver_admission_webhook_admission_duration_seconds_count{name="other",operation="CREATE",rejected="false",type="admit"} 7
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit",le="0.005"} 98
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit",le="0.025"} 99
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit",le="+Inf"} 99
apiserver_admission_webhook_admission_duration_seconds_sum{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit"} 1
apiserver_admission_webhook_admission_duration_seconds_count{name="mpod.kb.io",operation="CREATE",rejected="false",type="admit"} 99
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit",le="0.005"} 1
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit",le="0.025"} 1
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit",le="+Inf"} 1
apiserver_admission_webhook_admission_duration_seconds_sum{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit"} 1
apiserver_admission_webhook_admission_duration_seconds_count{name="mpod.kb.io",operation="CREATE",rejected="true",type="admit"} 1
`
)

func TestTheAuditLogTellsTheStagesOfAHandover(t *testing.T) {
	g := NewWithT(t)
	requests := readAudit(strings.NewReader(strings.ReplaceAll(handoverLines, "OPERATOR", deployedOperator)), (*request).isOfHandover)
	second := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	const ms = time.Millisecond
	g.Expect(findStages(requests, "n", "old", "next", second, second.Add(80*ms))).To(Equal(stages{20 * ms, 5 * ms, 15 * ms, 10 * ms, 30 * ms, true, 2, 1}))
	g.Expect(findStages(requests, "n", "old", "another", second, second.Add(80*ms)).known).To(BeFalse(), "a pod was not granted anything")
}

func TestAHistogramIsExactAtItsBounds(t *testing.T) {
	g := NewWithT(t)
	scrape := func(text string) metrics { return parseMetrics(strings.NewReader(text)) }
	got := between(scrape(""), scrape(histogramLines), admissionMetric, podWebhook)
	g.Expect(got.Quantile(0.99)).To(Equal(0.005), "99 of 100 are within 5 ms")
	g.Expect(got.Quantile(0.5)).To(BeNumerically("<", 0.005))
	g.Expect(got.Quantile(0.995)).To(And(BeNumerically(">", 0.005), BeNumerically("<", 0.025)))
	g.Expect(tell(got)).To(Equal("100 calls, 99 within 5 ms, all within 25 ms"))
	none := between(scrape(histogramLines), scrape(histogramLines), admissionMetric, podWebhook)
	g.Expect(math.IsNaN(none.Quantile(0.99))).To(BeTrue())
	g.Expect(attempt(func() { between(scrape(""), scrape(""), admissionMetric, podWebhook) })).To(MatchError(ContainSubstring("no metric")))
}

func TestAProcessIsRead(t *testing.T) {
	dir := fmt.Sprintf("/proc/%d", os.Getpid())
	if _, err := os.Stat(dir + "/task"); err != nil {
		t.Skip("requires Linux")
	}
	p, ok := readProcess(dir)
	if !ok || p.pid != os.Getpid() || p.resident <= p.own || p.own <= 0 || p.cpu <= 0 || p.isGate() {
		t.Errorf("found %+v, %v", p, ok)
	}
	if p, ok := readProcess("/proc/0"); ok {
		t.Errorf("found %+v, want nothing", p)
	}
}
