package webhooks

import (
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
)

// Requester returns the rights that a requester of a StatefulSingleton needs, because the
// object acts on pods of other users.
func Requester() requester.Kind {
	fields := []string{"selector", "maxTransitionTime", "terminationGracePeriod", "respectPodGracePeriod", "gateMode", "containers", "statusSidecar", "onTimeout", "onEviction", "onCrashLoop"}
	return requester.Kind{GroupVersion: v1.GroupVersion, Name: "StatefulSingleton", Plural: "statefulsingletons", Rights: []requester.Right{
		{Verb: "update", Resource: "pods", Does: "holds back pods", Fields: fields},
		{Verb: "delete", Resource: "pods", Does: "deletes pods", Fields: fields},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "refuses evictions by a PodDisruptionBudget", Fields: []string{"onEviction"},
			If: `has(spec.onEviction) && spec.onEviction == "` + string(v1.EvictionReplacesFirst) + `"`},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Does: "lets its pods write a Lease", Fields: []string{"fencing"},
			If: `has(spec.fencing) && has(spec.fencing.mode) && spec.fencing.mode == "` + string(v1.FencingLease) + `"`},
		{Verb: "update", Resource: "pods", Does: "releases pods", Fields: []string{"release"}, Annotations: []string{v1.AnnotationReleaseNow}},
	}, Free: map[string]string{"deletionProtection": "it only prevents accidental deletion"}}
}
