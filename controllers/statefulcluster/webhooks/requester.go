package webhooks

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Requester returns the permissions that the requester of a StatefulCluster must have.
func Requester() requester.Kind {
	return requester.Kind{GroupVersion: v1alpha1.GroupVersion, Name: "StatefulCluster", Plural: "statefulclusters", Rights: []requester.Right{
		{Verb: "create", Resource: "pods", Does: "creates pods", Fields: []string{"template", "serviceName"}},
		{Verb: "create", Resource: "pods", Does: "replaces and recreates members", Fields: []string{"replacement", "updateStrategy", "minReadySeconds", "podManagementPolicy"}},
		{Verb: "create", Resource: "persistentvolumeclaims", Does: "creates claims", Fields: []string{"volumeClaimTemplates"}},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "refuses evictions by a PodDisruptionBudget", Fields: []string{"replacement"},
			If: `has(spec.replacement) && has(spec.replacement.onEviction) && spec.replacement.onEviction == "` + string(v1alpha1.EvictionReplacesFirst) + `"`},
		{Verb: "delete", Resource: "persistentvolumeclaims", Does: "deletes claims", Fields: []string{"persistentVolumeClaimRetentionPolicy"},
			If: `has(spec.persistentVolumeClaimRetentionPolicy) && ["whenDeleted", "whenScaled", "whenLost"].exists(w, ` +
				`w in spec.persistentVolumeClaimRetentionPolicy && spec.persistentVolumeClaimRetentionPolicy[w] == "Delete")`},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "creates a PodDisruptionBudget", Created: true},
	}, Free: map[string]string{
		"replicas":             "a user who may scale need not be allowed to create pods; a quota limits them",
		"selector":             "immutable, and selects no members: the owner reference identifies them",
		"revisionHistoryLimit": "limits only the revisions that the operator keeps",
		"deletionProtection":   "prevents accidental deletion",
	}, Owned: []admissionv1.Rule{{APIGroups: []string{""}, Resources: []string{"pods"}}, {APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}}},
		PodLabels: spec.OwnPodLabels}
}
