package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// podsPerSecond is how fast pods are created while their admission is timed.
const podsPerSecond = 50

// measureAdmission creates pods and asks the API server how long it waited for
// the webhook: for the pods of strangers, where there is a StatefulSingleton and
// where there is none, and for pods that get the gate.
func measureAdmission(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	const alone = "admission-alone"
	if err := n.makeNamespace(ctx, alone); err != nil {
		return nil, err
	}
	a, err := n.newApplication(ctx, "admission", v1.GateBinary, 1, deployment(appsv1.DeploymentStrategy{}))
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, lap := range []struct {
		what, namespace, app string
		// A thousand pods that wait would be a load of their own; a dry run is
		// admitted as any other.
		options []client.CreateOption
	}{
		{"pods of a namespace without a StatefulSingleton", alone, "stranger", nil},
		{"pods that match none, beside a StatefulSingleton", a.name, "stranger", nil},
		{"pods that get the gate", a.name, a.name, []client.CreateOption{client.DryRunAll}},
	} {
		step("creating %d pods a second for %s: %s", podsPerSecond, size.admission, lap.what)
		before, err := n.admissionTimes(ctx)
		if err != nil {
			return nil, err
		}
		template := a.template()
		template.Labels["app"] = lap.app
		if err := n.createSteadily(ctx, lap.namespace, template, size.admission, lap.options...); err != nil {
			return nil, err
		}
		after, err := n.admissionTimes(ctx)
		if err != nil {
			return nil, err
		}
		times := after.since(before)
		figures = append(figures, figure{title: fmt.Sprintf("webhook at %d pods a second", podsPerSecond), what: "p99, " + lap.what,
			value: times.quantile(0.99) * 1000, unit: " ms", goal: goalAdmission, detail: times.String()})
		err = n.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(lap.namespace), client.MatchingLabels{"app": "stranger"}, client.GracePeriodSeconds(0))
		if err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// createSteadily creates pods that no scheduler knows, at an even pace. One that
// takes long does not hold up the next.
func (n *nodes) createSteadily(ctx context.Context, namespace string, t corev1.PodTemplateSpec, during time.Duration, options ...client.CreateOption) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ticker := time.NewTicker(time.Second / podsPerSecond)
	defer ticker.Stop()
	var running sync.WaitGroup
	for range int(during.Seconds() * podsPerSecond) {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			running.Go(func() {
				pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
				pod.Namespace, pod.GenerateName = namespace, "admission-"
				pod.Spec.SchedulerName = "nobody"
				if err := n.client.Create(ctx, pod, options...); err != nil {
					cancel(err)
				}
			})
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// histogram is how many calls took at most so many seconds.
type histogram map[float64]float64

const (
	admissionMetric = "apiserver_admission_webhook_admission_duration_seconds_bucket"
	podWebhook      = "mpod.kb.io"
)

func (n *nodes) admissionTimes(ctx context.Context) (histogram, error) {
	text, err := n.admin.RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	defer text.Close()
	return parseHistogram(text, admissionMetric, `name="`+podWebhook+`"`)
}

// parseHistogram reads the buckets of a metric that have a label, all others
// added up.
func parseHistogram(text io.Reader, metric, label string) (histogram, error) {
	found := histogram{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, metric+"{") || !strings.Contains(line, label) {
			continue
		}
		_, rest, _ := strings.Cut(line, `le="`)
		bound, rest, _ := strings.Cut(rest, `"`)
		_, count, _ := strings.Cut(rest, "} ")
		upTo, err := strconv.ParseFloat(bound, 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", line, err)
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", line, err)
		}
		found[upTo] += number
	}
	return found, lines.Err()
}

func (h histogram) since(before histogram) histogram {
	found := histogram{}
	for bound, count := range h {
		found[bound] = count - before[bound]
	}
	return found
}

func (h histogram) bounds() []float64 {
	bounds := make([]float64, 0, len(h))
	for bound := range h {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	return bounds
}

// quantile is what Prometheus makes of the buckets: exact where it meets the
// bound of one, which 5 ms is, and in between as if the calls of a bucket lay
// evenly in it.
func (h histogram) quantile(part float64) float64 {
	bounds := h.bounds()
	if len(bounds) == 0 || h[math.Inf(1)] == 0 {
		return math.NaN()
	}
	rank, below, under := part*h[math.Inf(1)], 0.0, 0.0
	for _, bound := range bounds {
		if count := h[bound]; count >= rank {
			if math.IsInf(bound, 1) || count == below {
				return under
			}
			return under + (bound-under)*(rank-below)/(count-below)
		}
		under, below = bound, h[bound]
	}
	return under
}

func (h histogram) String() string {
	text := fmt.Sprintf("%.0f calls", h[math.Inf(1)])
	for _, bound := range h.bounds() {
		if h[bound] == h[math.Inf(1)] {
			if !math.IsInf(bound, 1) {
				text += fmt.Sprintf(", all within %g ms", bound*1000)
			}
			break
		}
		text += fmt.Sprintf(", %.0f within %g ms", h[bound], bound*1000)
	}
	return text
}
