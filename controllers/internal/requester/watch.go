package requester

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
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
	known := ""
	policy.Look(ctx, "The policies that check requesters, as the controllers see them", policy.Interval, policy.Interval, func() string {
		missing, err := w.look(ctx)
		switch {
		case err != nil: // it is not known, and is looked for again
		case len(missing) == 0:
			known = ""
		default:
			known = "missing are " + strings.Join(missing, ", ") + ": see that the installer runs, kubectl -n " + w.Namespace + " get pods"
		}
		return known
	})
	return nil
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

// policyNames are those of a kind, and of their bindings.
func policyNames(kind Kind, namespace string) []string {
	names := []string{kind.policyName("requester", namespace), kind.policyName("deletion", namespace)}
	if len(kind.Owned) > 0 {
		names = append(names, kind.policyName("owner", namespace))
	}
	return names
}
