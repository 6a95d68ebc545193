package requester

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var missingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "stateful_operator_requester_policies_missing",
	Help: "Policies of a kind that are not there, so that who asks for an object is not asked for rights of their own.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(missingGauge) }

// Watch looks whether the policies of kinds are there, for the log and a metric: without
// them the operator lends its rights to everybody who may make an object. The installer,
// which keeps them, may not run.
type Watch struct {
	Live  client.Reader
	Kinds []Kind
	// Namespace is the operator's own.
	Namespace string
}

// Start looks until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	warned := false
	for {
		if missing, err := w.look(ctx); err == nil && len(missing) > 0 != warned {
			warned = len(missing) > 0
			log := ctrl.LoggerFrom(ctx)
			if warned {
				log.Info("Policies that check requesters are missing: see that the installer runs, kubectl -n "+w.Namespace+" get pods", "missing", missing)
			} else {
				log.Info("The policies that check requesters are there")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// look finds the names of bindings that are not there.
func (w *Watch) look(ctx context.Context) (missing []string, err error) {
	for _, kind := range w.Kinds {
		lacks := 0
		for _, name := range policyNames(kind, w.Namespace) {
			err := w.Live.Get(ctx, types.NamespacedName{Name: name}, &admissionv1.ValidatingAdmissionPolicyBinding{})
			if client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			if err != nil {
				missing, lacks = append(missing, name), lacks+1
			}
		}
		missingGauge.WithLabelValues(kind.Name).Set(float64(lacks))
	}
	return missing, nil
}

// policyNames are those of a kind.
func policyNames(kind Kind, namespace string) []string {
	_, binding := Policy(kind, namespace, nil)
	names := []string{binding.Name}
	if len(kind.Owned) > 0 {
		_, binding = Owners(kind, namespace)
		names = append(names, binding.Name)
	}
	return names
}
