package status

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

var (
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statefulsingleton_actions_total",
		Help: "Successful writes for StatefulSingletons, by verb and reason. Reason Grant counts handovers.",
	}, []string{"verb", "reason"})
	waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_waiting_pods",
		Help: "Pods of a StatefulSingleton that wait for their turn.",
	}, []string{"namespace", "name"})
	availableGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_available",
		Help: "1 if the active pod of a StatefulSingleton is Ready, 0 otherwise.",
	}, []string{"namespace", "name"})
	runningGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_running_pods",
		Help: "Pods of a StatefulSingleton that may be running the program. More than 1 violates the guarantee that at most one pod runs it.",
	}, []string{"namespace", "name"})
	transitionSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "statefulsingleton_transition_seconds",
		Help:    "Seconds from the start of a handover to the grant, including the shutdown of the old program.",
		Buckets: prometheus.ExponentialBuckets(0.5, 2, 13),
	})
	timeoutsTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "statefulsingleton_timeouts_total",
		Help: "Handovers that took longer than maxTransitionTime.",
	})
)

func init() {
	metrics.Registry.MustRegister(actionsTotal, waitingGauge, availableGauge, runningGauge, transitionSeconds, timeoutsTotal)
	actionsTotal.WithLabelValues(action.Patch.Label(), rules.ReasonGrant) // start at 0, so that Prometheus sees the first increase
}

// forgetMetrics removes the metrics of a deleted object.
func forgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	waitingGauge.DeletePartialMatch(labels)
	availableGauge.DeletePartialMatch(labels)
	runningGauge.DeletePartialMatch(labels)
}

// gauge sets the gauges of an object.
func gauge(key types.NamespacedName, f *facts.Facts, available bool) {
	waitingGauge.WithLabelValues(key.Namespace, key.Name).Set(float64(len(f.Waiting)))
	runningGauge.WithLabelValues(key.Namespace, key.Name).Set(float64(len(f.Started)))
	one := 0.0
	if available {
		one = 1
	}
	availableGauge.WithLabelValues(key.Namespace, key.Name).Set(one)
}
