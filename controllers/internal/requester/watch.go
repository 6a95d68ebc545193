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
	Help: "Number of missing policies: of a kind, so that the permissions of requesters are not checked, or on the operator's own service accounts (kind=accounts).",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(missingGauge) }

// Watch checks that the policies of the kinds exist, for the log and a metric. Without them, the
// operator lends its permissions to every user who can create an object. The installer maintains the
// policies, but may not be running.
type Watch struct {
	Live  client.Reader
	Kinds []Kind
	// Namespace is the operator's namespace.
	Namespace string
	// Accounts are the names of the policies for the operator's own accounts.
	Accounts []string
}

// Start checks the policies periodically until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	problem := "" // as of the last check that succeeded
	policy.Look(ctx, "The policies that check requesters, as observed by the controllers", policy.Interval, policy.Interval, func() string {
		missing, err := w.look(ctx)
		switch {
		case err != nil: // unknown; it is checked again
		case len(missing) == 0:
			problem = ""
		default:
			problem = "missing policies: " + strings.Join(missing, ", ") + ": check that the installer runs, kubectl -n " + w.Namespace + " get pods"
		}
		return problem
	})
	return nil
}

// look returns the names of missing bindings, and sets the metric.
func (w *Watch) look(ctx context.Context) (missing []string, err error) {
	lookFor := func(kind string, names []string) error {
		lacks := 0
		for _, name := range names {
			err := w.Live.Get(ctx, types.NamespacedName{Name: name}, &admissionv1.ValidatingAdmissionPolicyBinding{})
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err != nil {
				missing, lacks = append(missing, name), lacks+1
			}
		}
		missingGauge.WithLabelValues(kind).Set(float64(lacks))
		return nil
	}
	for _, kind := range w.Kinds {
		if err := lookFor(kind.Name, policyNames(kind, w.Namespace)); err != nil {
			return nil, err
		}
	}
	return missing, lookFor("accounts", w.Accounts)
}

// policyNames returns the names of a kind's policies, which are also those of their bindings.
func policyNames(kind Kind, namespace string) []string {
	names := []string{kind.policyName("requester", namespace), kind.policyName("deletion", namespace)}
	if len(kind.Owned) > 0 {
		names = append(names, kind.policyName("owner", namespace))
	}
	if len(kind.PodLabels) > 0 {
		names = append(names, kind.policyName("labels", namespace))
	}
	return names
}
