package webhooks

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
)

// freeFields maps the fields of spec that require no permission of the requester to the reason.
var freeFields = map[string]string{
	"template.spec.replicas": "a user who may scale needs no permission to create pods; a quota limits them",
	"scaling":                "it limits the replicas that a user may request through /scale",
	"updateStrategy":         "it sets when and in which order requested pods are created; exceptions are its Jobs, and handover, which lets two pods share a claim",
	"approval":               "it delays requested pods",
	"approvedRevision":       "the pods of the revision were requested by the user who changed the template",
	"deletionProtection":     "it prevents accidental deletion",
}

// Requester returns the permissions that the requester of an ExtendedStatefulSet must have.
func Requester() requester.Kind {
	const (
		template = "template.spec.template"
		reads    = `has(spec.updateOnEnvChange) && spec.updateOnEnvChange`
		owns     = `has(spec.configTracking) && spec.configTracking == "` + string(v1alpha1.TrackByOwnerReference) + `"`
	)
	return requester.Kind{GroupVersion: v1alpha1.GroupVersion, Name: "ExtendedStatefulSet", Plural: "extendedstatefulsets", Rights: []requester.Right{
		{Verb: "create", Resource: "pods", Does: "creates pods", Fields: []string{template, "zones", "zoneNodeLabel", "az", "injectReplicasEnv", "updateStrategy.handover",
			"template.metadata", "template.spec.minReadySeconds", "template.spec.updateStrategy", "template.spec.podManagementPolicy",
			"template.spec.ordinals", "template.spec.selector", "template.spec.persistentVolumeClaimRetentionPolicy", "template.spec.revisionHistoryLimit"}},
		{Verb: "create", Resource: "persistentvolumeclaims", Does: "creates claims", Fields: []string{"template.spec.volumeClaimTemplates"}},
		{
			Verb:        "create",
			Resource:    "pods",
			Subresource: "exec",
			Does:        "runs probes in pods",
			Fields:      []string{"activePassiveProbes"},
		},
		{
			Verb:     "create",
			Resource: "services",
			Does:     "creates Services",
			Fields:   []string{"template.spec.serviceName"},
			If:       `has(spec.template.spec.serviceName) && spec.template.spec.serviceName != ""`,
		},
		{
			Verb:     "create",
			Group:    "policy",
			Resource: "poddisruptionbudgets",
			Does:     "creates PodDisruptionBudgets",
			Fields:   []string{"podDisruptionBudget"},
		},
		{
			Verb:     "create",
			Group:    "batch",
			Resource: "jobs",
			Does:     "runs Jobs",
			Fields:   []string{"updateStrategy.preUpdateJob", "updateStrategy.postUpdateJob"},
		},
		{
			Verb:     "get",
			Resource: "secrets",
			Does:     "reads Secrets",
			Fields:   []string{template, "updateOnEnvChange"},
			If:       reads,
		},
		{
			Verb:     "get",
			Resource: "configmaps",
			Does:     "reads ConfigMaps",
			Fields:   []string{template, "updateOnEnvChange"},
			If:       reads,
		},
		{
			Verb:     "patch",
			Resource: "secrets",
			Does:     "writes owner references into Secrets",
			Fields:   []string{template, "configTracking"},
			If:       owns,
		},
		{
			Verb:     "patch",
			Resource: "configmaps",
			Does:     "writes owner references into ConfigMaps",
			Fields:   []string{template, "configTracking"},
			If:       owns,
		},
	}, Free: freeFields, Owned: []admissionv1.Rule{{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}}, {APIGroups: []string{"batch"}, Resources: []string{"jobs"}}},
		PodLabels: children.OwnPodLabels}
}
