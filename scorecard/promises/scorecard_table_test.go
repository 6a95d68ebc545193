package promises_test

import (
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// test is a custom scorecard test: a promise with a name that is a valid label.
type test struct {
	name    string
	promise string // name or prefix of the promise
}

// tests are the tests of config/scorecard, by kind. They cover the main features of each kind on
// any cluster, without faults of nodes or operator.
var tests = map[string][]test{
	"statefulcluster": {
		{"statefulcluster-names-once", "SC-8 a retired name is never reused"},
		{"statefulcluster-image-in-place", "SC-22 SC-40 an image changes in place"},
		{"statefulcluster-recreated-on-its-data", "SC-22 any other change recreates the pod"},
		{"statefulcluster-force-deleted", "SC-39 a force-deleted pod"},
		{"statefulcluster-deletion-spares-claims", "SC-19 deletion leaves the claims"},
	},
	"replicatedstatefulset": {
		{"replicatedstatefulset-failover", "RS-34 a primary that fails"},
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

// testOf returns the name of the scorecard test of a promise, or "" if there is none.
func testOf(p kit.Promise) string {
	for _, all := range tests {
		for _, t := range all {
			if strings.HasPrefix(p.Name, t.promise) {
				return t.name
			}
		}
	}
	return ""
}

// testNames returns the sorted names of all scorecard tests.
func testNames() (names []string) {
	for _, all := range tests {
		for _, t := range all {
			names = append(names, t.name)
		}
	}
	slices.Sort(names)
	return names
}
