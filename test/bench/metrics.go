package main

import (
	"fmt"
	"io"
	"math"

	"k8s.io/component-base/metrics/testutil"
)

// The metrics of a Go program that are read.
const (
	metricLive   = "go_gc_heap_live_bytes"
	metricCycles = "go_gc_cycles_total_gc_cycles_total"
	metricRSS    = "process_resident_memory_bytes"
	metricCPU    = "process_cpu_seconds_total"
)

// metrics are those of one scrape. histograms are the ones of a metric with these
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
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() // it is one of them
			}
			fail("there is no metric %s", name)
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

// between is what all histograms of a metric with these labels took in between two
// scrapes, in one. It is added up in the second scrape, which can be asked once.
func between(before, after metrics, name string, labels map[string]string) *testutil.Histogram {
	all := after.histograms(name, labels)
	if len(all) == 0 {
		fail("there is no metric %s with %v", name, labels)
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

// boundOf is the bound of the first bucket that, with those before it, holds such a
// part of all.
func boundOf(h *testutil.Histogram, part float64) float64 {
	for _, b := range h.GetBucket() {
		if float64(b.GetCumulativeCount()) >= part*float64(h.GetSampleCount()) {
			return b.GetUpperBound()
		}
	}
	return math.Inf(1)
}

// tell says how many calls took at most how long, of a histogram of seconds.
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
