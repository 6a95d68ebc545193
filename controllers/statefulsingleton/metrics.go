package statefulsingleton

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

var (
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statefulsingleton_actions_total",
		Help: "Writes for StatefulSingletons that took effect, by verb and reason; reason Grant counts handovers.",
	}, []string{"verb", "reason"})
	waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_waiting_pods",
		Help: "Pods of a StatefulSingleton that wait for their turn.",
	}, []string{"namespace", "name"})
	availableGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_available",
		Help: "1 while the active pod of a StatefulSingleton is Ready, else 0.",
	}, []string{"namespace", "name"})
	runningGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_running_pods",
		Help: "Pods of a StatefulSingleton that may be running the program now; more than 1 is a breach of its promise.",
	}, []string{"namespace", "name"})
	transitionSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "statefulsingleton_transition_seconds",
		Help:    "Seconds from the begin of a handover to the grant, the old program's own shutdown included.",
		Buckets: prometheus.ExponentialBuckets(0.5, 2, 13),
	})
	timeoutsTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "statefulsingleton_timeouts_total",
		Help: "Handovers that took longer than maxTransitionTime.",
	})
)

func init() {
	metrics.Registry.MustRegister(actionsTotal, waitingGauge, availableGauge, runningGauge, transitionSeconds, timeoutsTotal)
	actionsTotal.WithLabelValues(action.Patch.Label(), reasonGrant) // start at 0, so that Prometheus sees the first increase
}

func forgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	waitingGauge.DeletePartialMatch(labels)
	availableGauge.DeletePartialMatch(labels)
	runningGauge.DeletePartialMatch(labels)
}

// gauge sets the gauges of an object.
func gauge(key types.NamespacedName, f *facts, available bool) {
	waitingGauge.WithLabelValues(key.Namespace, key.Name).Set(float64(len(f.waiting)))
	runningGauge.WithLabelValues(key.Namespace, key.Name).Set(float64(len(f.started)))
	one := 0.0
	if available {
		one = 1
	}
	availableGauge.WithLabelValues(key.Namespace, key.Name).Set(one)
}
