package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// podsPerSecond is the rate at which pods are created while their admission is timed.
const podsPerSecond = 50

const admissionMetric = "apiserver_admission_webhook_admission_duration_seconds"

var podWebhook = map[string]string{"name": "mpod.kb.io"}

// measureAdmission creates pods and reads from the API server's metrics how long it waited for the
// webhook. It measures unrelated pods in namespaces with and without a StatefulSingleton, and pods that
// get the gate.
func measureAdmission(ctx context.Context, s *site) {
	const alone = "admission-alone"
	s.makeNamespace(ctx, alone)
	a := s.newApplication(ctx, "admission", v1.GateBinary, 1, deployment(appsv1.DeploymentStrategy{}))
	for _, lap := range []struct {
		what, namespace, app string
		// A thousand pending pods would add load. A dry run has the same admission.
		options []client.CreateOption
	}{
		{"pods of a namespace without a StatefulSingleton", alone, "stranger", nil},
		{"pods that do not match, in a namespace with a StatefulSingleton", a.Name, "stranger", nil},
		{"pods that get the gate", a.Name, a.Name, []client.CreateOption{client.DryRunAll}},
	} {
		step("create %d pods a second for %s: %s", podsPerSecond, s.size.admission, lap.what)
		before := s.scrape(ctx)
		s.createSteadily(ctx, func() *corev1.Pod {
			pod := a.Pod("")
			pod.Namespace, pod.GenerateName, pod.Labels["app"], pod.Spec.SchedulerName = lap.namespace, "admission-", lap.app, "nobody"
			return pod
		}, lap.options...)
		times := between(before, s.scrape(ctx), admissionMetric, podWebhook)
		s.report(figure{title: fmt.Sprintf("webhook at %d pods a second", podsPerSecond), what: "p99, " + lap.what,
			value: times.Quantile(0.99) * 1000, unit: " ms", goal: goalAdmission, detail: tell(times)})
		check(s.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(lap.namespace), client.MatchingLabels{"app": "stranger"}, client.GracePeriodSeconds(0)))
	}
}

// createSteadily creates pods for a nonexistent scheduler at a constant rate. A slow creation does not
// delay the next one.
func (s *site) createSteadily(ctx context.Context, pod func() *corev1.Pod, options ...client.CreateOption) {
	ticker := time.NewTicker(time.Second / podsPerSecond)
	defer ticker.Stop()
	group, running := errgroup.WithContext(ctx)
	for range int(s.size.admission.Seconds() * podsPerSecond) {
		select {
		case <-running.Done():
		case <-ticker.C:
			group.Go(func() error { return s.client.Create(running, pod(), options...) })
		}
	}
	check(errors.Join(group.Wait(), ctx.Err()))
}

// scrape returns the API server's metrics.
func (s *site) scrape(ctx context.Context) metrics {
	text, err := s.admin.RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		fail("read the metrics of the API server: %w", err)
	}
	defer text.Close()
	return parseMetrics(text)
}
