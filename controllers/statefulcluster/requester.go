package statefulcluster

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
)

// Requester returns the permissions that the requester of a StatefulCluster must have.
func Requester() requester.Kind {
	return requester.Kind{GroupVersion: v1alpha1.GroupVersion, Name: "StatefulCluster", Plural: "statefulclusters", Rights: []requester.Right{
		{Verb: "create", Resource: "pods", Does: "makes pods", Fields: []string{"template", "serviceName"}},
		{Verb: "create", Resource: "pods", Does: "replaces and recreates members", Fields: []string{"replacement", "updateStrategy", "minReadySeconds", "podManagementPolicy"}},
		{Verb: "create", Resource: "persistentvolumeclaims", Does: "makes claims", Fields: []string{"volumeClaimTemplates"}},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "refuses evictions by a PodDisruptionBudget", Fields: []string{"replacement"},
			If: `has(spec.replacement) && has(spec.replacement.onEviction) && spec.replacement.onEviction == "` + string(v1alpha1.EvictionReplacesFirst) + `"`},
		{Verb: "delete", Resource: "persistentvolumeclaims", Does: "deletes claims", Fields: []string{"persistentVolumeClaimRetentionPolicy"},
			If: `has(spec.persistentVolumeClaimRetentionPolicy) && ["whenDeleted", "whenScaled", "whenLost"].exists(w, ` +
				`w in spec.persistentVolumeClaimRetentionPolicy && spec.persistentVolumeClaimRetentionPolicy[w] == "Delete")`},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "makes a PodDisruptionBudget", Created: true},
	}, Free: map[string]string{
		"replicas":             "who may scale need not be allowed to make pods; a quota bounds them",
		"selector":             "it is immutable, and selects nothing: members are known by their owner",
		"revisionHistoryLimit": "it bounds what the operator keeps for itself",
		"deletionProtection":   "it keeps from accidents",
	}, Owned: []admissionv1.Rule{{APIGroups: []string{""}, Resources: []string{"pods"}}, {APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}}},
		PodLabels: ownPodLabels}
}
