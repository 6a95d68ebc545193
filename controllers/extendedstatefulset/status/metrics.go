package status

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

var (
	versionGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "extendedstatefulset_version", Help: "The version of an ExtendedStatefulSet, by role: current, update.",
	}, []string{"namespace", "name", "role"})
	phaseGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "extendedstatefulset_phase", Help: "1 for the phase of an ExtendedStatefulSet.",
	}, []string{"namespace", "name", "phase"})
	upgradesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "extendedstatefulset_upgrades_total", Help: "Steps of upgrades: begun, held, approved, upgraded, retried, stale, aborted, superseded.",
	}, []string{"step"})
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "extendedstatefulset_actions_total", Help: "Writes for ExtendedStatefulSets, by verb and reason.",
	}, []string{"verb", "reason"})
	refusedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "extendedstatefulset_refused_total", Help: "Writes that failed, by the reason of the write.",
	}, []string{"reason"})
)

func init() {
	metrics.Registry.MustRegister(versionGauge, phaseGauge, upgradesTotal, actionsTotal, refusedTotal)
	for _, step := range []string{"begun", "held", "approved", "upgraded", "retried", "stale", "aborted", "superseded"} {
		upgradesTotal.WithLabelValues(step) // start from 0: Prometheus detects no increase in a first value
	}
}

// ForgetMetrics removes the metrics of an object.
func ForgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	versionGauge.DeletePartialMatch(labels)
	phaseGauge.DeletePartialMatch(labels)
}

// gauge sets the metrics of an object.
func gauge(key types.NamespacedName, s *v1alpha1.ExtendedStatefulSetStatus) {
	ForgetMetrics(key)
	versionGauge.WithLabelValues(key.Namespace, key.Name, "current").Set(float64(s.CurrentVersion))
	versionGauge.WithLabelValues(key.Namespace, key.Name, "update").Set(float64(s.UpdateVersion))
	phaseGauge.WithLabelValues(key.Namespace, key.Name, string(s.Phase)).Set(1)
}
