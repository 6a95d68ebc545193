package status

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

var (
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statefulcluster_actions_total",
		Help: "Writes to children of StatefulClusters that took effect, by verb and reason.",
	}, []string{"verb", "reason"})
	membersGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulcluster_members",
		Help: "Members of a StatefulCluster by state: ready, unready, lost, returning.",
	}, []string{"namespace", "name", "state"})
	replacementSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "statefulcluster_replacement_seconds",
		Help:    "Seconds from the detection of a loss (its deadline passed) to the creation of the replacement.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
	})
)

func init() {
	metrics.Registry.MustRegister(actionsTotal, membersGauge, replacementSeconds)
	actionsTotal.WithLabelValues(action.Create.Label(), facts.ReasonReplaced) // starts at 0, because Prometheus sees no increase in the first sample
}

// ForgetMetrics removes the metrics of a deleted set.
func ForgetMetrics(key types.NamespacedName) {
	membersGauge.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name})
}

// timed holds the loss reasons that have a deadline. The other losses are detected without one.
var timed = map[v1alpha1.LossReason]bool{v1alpha1.LossNodeNotReady: true, v1alpha1.LossUnready: true,
	v1alpha1.LossStartup: true, v1alpha1.LossPending: true}

// measure updates the metrics.
func (r *Reporter) measure(f *facts.Facts, p *rules.Plan, done Results, s *v1alpha1.StatefulClusterStatus) {
	for _, o := range done.Outcomes {
		if o.Err == nil && o.Verb != action.Try {
			actionsTotal.WithLabelValues(o.Verb.Label(), o.Reason).Inc()
		}
	}
	set := f.Set
	for state, n := range map[string]int32{"ready": s.ReadyReplicas, "unready": s.Replicas - s.ReadyReplicas,
		"lost": s.LostReplicas, "returning": int32(len(p.Updating))} {
		membersGauge.WithLabelValues(set.Namespace, set.Name, state).Set(float64(n))
	}
	for _, l := range p.Losses {
		if timed[l.Reason] && done.succeeded(l.Name()) {
			replacementSeconds.Observe(r.Reader.Now().Sub(l.Due).Seconds())
		}
	}
}
