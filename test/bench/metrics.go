package main

import (
	"fmt"
	"io"
	"math"

	"k8s.io/component-base/metrics/testutil"
)

// Metrics of a Go program that the benchmarks read.
const (
	metricLive   = "go_gc_heap_live_bytes"
	metricCycles = "go_gc_cycles_total_gc_cycles_total"
	metricRSS    = "process_resident_memory_bytes"
	metricCPU    = "process_cpu_seconds_total"
)

// metrics are the metrics of one scrape. histograms returns the histograms of a metric with these
// labels.
type metrics struct {
	value      func(name string) float64
	histograms func(name string, labels map[string]string) testutil.HistogramVec
}

func parseMetrics(text io.Reader) metrics {
	families, err := testutil.TextToMetricFamilies(text)
	check(err)
	return metrics{
		value: func(name string) float64 {
			for _, m := range families[name].GetMetric() {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() // only one is set
			}
			fail("no metric %s", name)
			return 0
		},
		histograms: func(name string, labels map[string]string) (found testutil.HistogramVec) {
			for _, m := range families[name].GetMetric() {
				if testutil.LabelsMatch(m, labels) {
					found = append(found, &testutil.Histogram{Histogram: m.GetHistogram()})
				}
			}
			return found
		},
	}
}

// between returns the sum of the observations between two scrapes, over all histograms of a metric with
// these labels. It reuses the histograms of the second scrape, so it can be called once per scrape.
func between(before, after metrics, name string, labels map[string]string) *testutil.Histogram {
	all := after.histograms(name, labels)
	if len(all) == 0 {
		fail("no metric %s with %v", name, labels)
	}
	sum := all[0]
	add := func(h *testutil.Histogram, times int64) {
		*sum.SampleSum += float64(times) * h.GetSampleSum()
		*sum.SampleCount += uint64(times) * h.GetSampleCount() // -1 wraps around twice
		for i, b := range h.Bucket {
			*sum.Bucket[i].CumulativeCount += uint64(times) * b.GetCumulativeCount()
		}
	}
	for _, h := range all[1:] {
		add(h, 1)
	}
	for _, h := range before.histograms(name, labels) {
		add(h, -1)
	}
	return sum
}

// boundOf returns the upper bound of the first bucket up to which the given part of all observations is
// counted.
func boundOf(h *testutil.Histogram, part float64) float64 {
	for _, b := range h.GetBucket() {
		if float64(b.GetCumulativeCount()) >= part*float64(h.GetSampleCount()) {
			return b.GetUpperBound()
		}
	}
	return math.Inf(1)
}

// tell returns the number of calls by duration, from a histogram of seconds.
func tell(h *testutil.Histogram) string {
	text := fmt.Sprintf("%d calls", h.GetSampleCount())
	for _, b := range h.GetBucket() {
		if b.GetCumulativeCount() == h.GetSampleCount() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				text += fmt.Sprintf(", all within %g ms", b.GetUpperBound()*1000)
			}
			break
		}
		text += fmt.Sprintf(", %d within %g ms", b.GetCumulativeCount(), b.GetUpperBound()*1000)
	}
	return text
}
