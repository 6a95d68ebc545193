package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// figure is one measured number.
type figure struct {
	title, what string
	value       float64
	unit        string
	digits      int // decimals; 0 means 2, negative means none
	goal        goal
	detail      string
}

// goal is a bound. The zero value has none.
type goal struct {
	bound   float64
	atLeast bool
	set     bool
}

// bounds are the goals for a duration's quantiles.
type bounds struct{ p50, p99 goal }

func atLeast(bound float64) goal { return goal{bound, true, true} }
func atMost(bound float64) goal  { return goal{bound, false, true} }

func (f figure) verdict() string {
	switch {
	case !f.goal.set:
		return ""
	case f.goal.atLeast && f.value >= f.goal.bound, !f.goal.atLeast && f.value <= f.goal.bound:
		return "met"
	}
	return "NOT met"
}

func (f figure) measured() string {
	return fmt.Sprintf("%.*f%s", max(cmp.Or(f.digits, 2), 0), f.value, f.unit)
}

func (f figure) wanted() string {
	if !f.goal.set {
		return ""
	}
	sign := "≤"
	if f.goal.atLeast {
		sign = "≥"
	}
	return fmt.Sprintf("%s %g%s", sign, f.goal.bound, f.unit)
}

// String returns the line that is printed for the figure while the benchmarks run.
func (f figure) String() string {
	line := fmt.Sprintf("%s: %s: %s", f.title, f.what, f.measured())
	if f.goal.set {
		line += fmt.Sprintf(" (goal %s): %s", f.wanted(), f.verdict())
	}
	if f.detail != "" {
		line += " [" + f.detail + "]"
	}
	return line
}

// tables returns the text of docs/benchmarks.md.
func tables(figures []figure, conditions []string) string {
	var text strings.Builder
	text.WriteString("| Benchmark | Figure | Measured | Goal | |\n|---|---|---|---|---|\n")
	for _, f := range figures {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", f.title, f.what, f.measured(), f.wanted(), f.verdict())
	}
	text.WriteString("\nSources of the figures:\n\n")
	for _, f := range figures {
		if f.detail != "" {
			fmt.Fprintf(&text, "- %s, %s: %s\n", f.title, f.what, f.detail)
		}
	}
	text.WriteString("\nTest environment:\n\n")
	for _, line := range conditions {
		fmt.Fprintf(&text, "- %s\n", line)
	}
	return text.String()
}

// describe returns the conditions of the measurement.
func describe(ctx context.Context, programs string, chosen settings, loadBefore string) []string {
	how := fmt.Sprintf("medians of %d rounds; each round runs the contestants in another order", chosen.size.rounds)
	if chosen.quick {
		how = "a QUICK run: a tenth of the size, once; not for comparison"
	}
	machine := cmp.Or(procField("/proc/cpuinfo", "model name"), runtime.GOARCH)
	versions := "versions: " + runtime.Version()
	// The binaries do not contain their version. The name of their folder does.
	if _, version, ok := strings.Cut(filepath.Base(programs), "-"); ok {
		version, _, _ = strings.Cut(version, "-")
		versions += ", Kubernetes " + version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "sigs.k8s.io/controller-runtime" {
				versions += ", controller-runtime " + module.Version
			}
		}
	}
	if commit, err := output(ctx, "git", "describe", "--always", "--dirty"); err == nil {
		versions += ", this project at " + commit
	}
	return []string{"date: " + time.Now().UTC().Format("2006-01-02 15:04 MST"), how,
		fmt.Sprintf("machine: %s, %d cores, %s; contestants, control plane and nodes share it", machine, runtime.NumCPU(), memory()),
		"load average (1, 5, 15 minutes) before the run: " + loadBefore, versions}
}

func memory() string {
	var kib int64
	if _, err := fmt.Sscan(procField("/proc/meminfo", "MemTotal"), &kib); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB", math.Round(float64(kib)/(1<<20)))
}

// procField returns the first value with the name in a file of /proc, or "" on other systems than
// Linux.
func procField(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func machineLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], ", ")
}

// medianOf returns the median over the rounds, or 0 without rounds.
func medianOf[T cmp.Ordered](laps []lap, of func(lap) T) T {
	values := make([]T, 0, len(laps))
	for _, l := range laps {
		values = append(values, of(l))
	}
	return quantile(values, 0.5)
}

// quantile returns the smallest value such that at least the given part of the values is not above it.
func quantile[T cmp.Ordered](values []T, part float64) (none T) {
	if len(values) == 0 {
		return none
	}
	return slices.Sorted(slices.Values(values))[max(0, int(math.Ceil(part*float64(len(values))))-1)]
}

// spread3 reports p50, p99 and max of a duration.
func (r *results) spread3(title string, lengths []time.Duration, want bounds, detail string) {
	if len(lengths) == 0 {
		return
	}
	r.report(figure{title: title, what: "p50", value: quantile(lengths, 0.5).Seconds(), unit: " s", goal: want.p50, detail: detail})
	r.report(figure{title: title, what: "p99", value: quantile(lengths, 0.99).Seconds(), unit: " s", goal: want.p99})
	r.report(figure{title: title, what: "max", value: slices.Max(lengths).Seconds(), unit: " s"})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mib(bytes float64) float64 { return bytes / (1 << 20) }

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
