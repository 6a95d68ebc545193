package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
)

// test is a custom scorecard test: a promise under a name that fits a label.
type test struct {
	name    string
	promise string // its name, or the beginning of that
}

// tests are those that config/scorecard has, by kind. They try what people
// choose a kind for, on any cluster: nodes and operator are left alone.
var tests = map[string][]test{
	"statefulcluster": {
		{"statefulcluster-names-once", "SC-8 a retired name never returns"},
		{"statefulcluster-image-in-place", "SC-22 SC-40 an image changes in place"},
		{"statefulcluster-recreated-on-its-data", "SC-22 any other change recreates the pod"},
		{"statefulcluster-force-deleted", "SC-39 a force-deleted pod"},
		{"statefulcluster-deletion-spares-claims", "SC-19 deletion leaves the claims"},
	},
	"replicatedstatefulset": {
		{"replicatedstatefulset-failover", "RS-34 a primary that dies"},
		{"replicatedstatefulset-handovers", "RS-33 RS-57 roles are handed over"},
		{"replicatedstatefulset-to-zero-and-back", "RS-37 RS-38 RS-39 RS-46 stopped in order"},
		{"replicatedstatefulset-paused", "RS-45 RS-47 a paused set"},
	},
	"extendedstatefulset": {
		{"extendedstatefulset-canaries", "E2 E3 E4 E19 two canaries"},
		{"extendedstatefulset-bad-versions", "E5 E6 E7 E8 a failing version"},
		{"extendedstatefulset-claims-follow", "E26 claims follow their ordinals"},
		{"extendedstatefulset-config-restarts", "E14 E16 changed ConfigMaps"},
		{"extendedstatefulset-one-active-pod", "E34 a single active pod"},
	},
	"statefulsingleton": {
		{"statefulsingleton-rollout-hands-over", "S8 a rollout with surge"},
		{"statefulsingleton-any-owner", "S11 Recreate, no surge and a StatefulSet"},
		{"statefulsingleton-slow-shutdown", "S12 the next one waits"},
		{"statefulsingleton-standbys", "S15 of three replicas"},
		{"statefulsingleton-deleted-by-force", "S23 a pod deleted by force"},
	},
}

// ofKind are the promises that a kind's tests try.
var ofKind = map[string][]promises.Promise{
	"statefulcluster":       promises.StatefulCluster,
	"replicatedstatefulset": promises.ReplicatedStatefulSet,
	"extendedstatefulset":   promises.ExtendedStatefulSet,
	"statefulsingleton":     promises.StatefulSingleton,
}

// promised finds the promise of a test.
func promised(name string) (promises.Promise, error) {
	var known []string
	for kind, all := range tests {
		for _, t := range all {
			known = append(known, t.name)
			if t.name != name {
				continue
			}
			i := slices.IndexFunc(ofKind[kind], func(p promises.Promise) bool { return strings.HasPrefix(p.Name, t.promise) })
			if i < 0 {
				return promises.Promise{}, fmt.Errorf("no promise begins with %q", t.promise)
			}
			return ofKind[kind][i], nil
		}
	}
	slices.Sort(known)
	return promises.Promise{}, fmt.Errorf("there is no test %q, but %s", name, strings.Join(known, ", "))
}
