package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

var (
	createdTotal = prometheus.NewCounter(prometheus.CounterOpts{Name: "rss_operator_controller_clusters_created", Help: "ReplicatedStatefulSets that this process observed for the first time."})
	unknownTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "replicatedstatefulset_commands_unknown_total",
		Help: "Commands with an unknown outcome, by name. The log contains the reason.",
	}, []string{"command"})
)

func init() {
	metrics.Registry.MustRegister(createdTotal, unknownTotal)
	for _, name := range spec.SentCommands() {
		unknownTotal.WithLabelValues(name)
	}
}
