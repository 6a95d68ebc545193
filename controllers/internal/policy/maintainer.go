package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Builder builds a policy and its binding, for an operator in a namespace. watched are the namespaces that it manages;
// empty means all.
type Builder func(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding)

// Maintainer maintains the policies of a kind.
type Maintainer struct {
	Keeper
	// Subject names the policies in the log.
	Subject string
	// CRD is the name of the CustomResourceDefinition that owns the policies.
	CRD string
	// Builders build the policies.
	Builders []Builder
	// Namespace is the operator's own namespace.
	Namespace string
	// Watched are the namespaces that the operator manages; empty means all.
	Watched []string
	// Interval is the time between two checks, and Retry that after a problem.
	Interval, Retry time.Duration
}

// Start maintains the policies until the context ends.
func (m *Maintainer) Start(ctx context.Context) error {
	Look(ctx, m.Subject, m.Interval, m.Retry, func() string {
		if err := m.keepAll(ctx); err != nil {
			return "cannot install the policies: " + err.Error()
		}
		return ""
	})
	return nil
}

// keepAll creates or updates all policies. A problem with one does not affect others.
func (m *Maintainer) keepAll(ctx context.Context) error {
	var problems []error
	for _, build := range m.Builders {
		made, binding := build(m.Namespace, m.Watched)
		if err := m.Keep(ctx, []string{m.CRD}, made, binding); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", made.Name, err))
		}
	}
	return errors.Join(problems...)
}
