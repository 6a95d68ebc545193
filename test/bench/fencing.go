package main

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// Goals of fencing by a Lease, on an idle machine.
var (
	goalLease = map[float64]goal{0.5: atMost(30), 0.99: atMost(150)} // ms
	goalAlone = atMost(1.15)                                         // times the gap without a StatefulSingleton
)

// byLease is fencing by a Lease.
func byLease(s *v1.StatefulSingletonSpec) { s.Fencing = &v1.Fencing{Mode: v1.FencingLease} }

// fenced are arrangements with fencing by a Lease, each before the one that it is compared with. Five handovers of the
// first pair are measured for each one of the others.
var fenced = []arrangement{
	{name: "lease-surge", what: "Lease, rollout with surge", gate: v1.GateBinary, pods: 1, make: deployment(surge), end: rollOut, share: 1, rules: []rule{byLease}},
	{name: "proof-surge", what: "Proof, rollout with surge", gate: v1.GateBinary, pods: 1, make: deployment(surge), end: rollOut, held: true, share: 1},
	{name: "lease-recreate", what: "Recreate Deployment, Lease", gate: v1.GateBinary, pods: 1, make: deployment(witnessset.Recreate()), end: rollOut, share: 5, rules: []rule{byLease}},
	{name: "alone-recreate", what: "Recreate Deployment alone", pods: 1, make: deployment(witnessset.Recreate()), end: rollOut, share: 5},
	{name: "lease-set", what: "StatefulSet of one, Lease", gate: v1.GateBinary, pods: 1, make: setOfOne, end: rollOut, share: 5, rules: []rule{byLease}},
	{name: "alone-set", what: "StatefulSet of one alone", pods: 1, make: setOfOne, end: rollOut, share: 5},
}

// measureFencing measures handovers by a Lease. The compared arrangements alternate in one run.
func measureFencing(ctx context.Context, s *site) {
	s.permitFencing(ctx)
	s.alternate(ctx, fenced, s.size.fenced, func(seen [][]handover) {
		for i, how := range fenced {
			s.reportFenced(how, seen[i])
		}
		for i := 0; i < len(fenced); i += 2 {
			s.reportRatios(fenced[i], fenced[i+1], gaps(seen[i]), gaps(seen[i+1]))
		}
	})
}

// permitFencing gives the operator the rights that fencing requires, as docs/security.md describes.
func (s *site) permitFencing(ctx context.Context) {
	check(s.client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "stateful-operator-fencing"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stateful-operator-fencing-role"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: operatorDeployment}},
	}))
}

// parts are the reported quantiles of handovers by a Lease.
var parts = []float64{0.5, 0.9, 0.99}

// percentile returns the name of a quantile.
func percentile(part float64) string {
	if part == 1 {
		return "max"
	}
	return fmt.Sprintf("p%.0f", 100*part)
}

// reportFenced reports the quantiles of an arrangement. Only handovers that find a waiting pod with a Lease have a goal.
func (s *site) reportFenced(how arrangement, seen []handover) {
	if len(seen) == 0 {
		return
	}
	detail := fmt.Sprintf("%d handovers", len(seen))
	if how.held {
		detail += "; " + medianStages(seen)
	}
	for _, part := range append(parts, 1) {
		f := figure{title: "gap, " + how.what, what: percentile(part), value: milliseconds(quantile(gaps(seen), part)), unit: " ms", digits: 1}
		if how.name == fenced[0].name {
			f.goal = goalLease[part]
		}
		if part == parts[0] {
			f.detail = detail
		}
		s.report(f)
	}
}

// reportRatios reports the gaps of an arrangement as multiples of those of another one. Only a comparison with no
// StatefulSingleton has a goal.
func (s *site) reportRatios(how, other arrangement, lengths, others []time.Duration) {
	if len(others) == 0 {
		return
	}
	for _, part := range parts {
		f := figure{title: "ratio of gaps, " + how.what + " : " + other.what, what: percentile(part), value: ratio(lengths, others, part), unit: " times"}
		if other.gate == "" && part == parts[0] {
			f.goal = goalAlone
		}
		s.report(f)
	}
}

// gaps returns the times between the programs.
func gaps(seen []handover) []time.Duration {
	lengths := make([]time.Duration, 0, len(seen))
	for _, h := range seen {
		lengths = append(lengths, h.gap)
	}
	return lengths
}

// ratio returns how many times as long a quantile is as that of the others, which are not empty.
func ratio(lengths, others []time.Duration, part float64) float64 {
	return quantile(lengths, part).Seconds() / quantile(others, part).Seconds()
}
