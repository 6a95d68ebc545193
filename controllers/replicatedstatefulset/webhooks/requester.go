package webhooks

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Requester returns the rights that the requester of a ReplicatedStatefulSet needs. All Secrets
// that the object names are mounted in its pods, or a condition reveals whether they exist.
func Requester() requester.Kind {
	pods := []string{"pod", "serviceAccountName", "imagePullSecrets", "resources", "nodeSelector", "tolerations", "affinity", "chaosLevel", "updateStrategy", "application", "fencing"}
	roles := []string{"primaries", "paused", "seeding", "failureThreshold", "failureWindow", "failover", "evictionPolicy", "evictionTimeout", "reconcileInterval", "minReadySeconds"}
	const follows = `has(spec.updateOnEnvChange) && spec.updateOnEnvChange`
	followed := []string{"pod", "secrets", "TLS", "application", "updateOnEnvChange"}
	return requester.Kind{GroupVersion: v1alpha1.GroupVersion, Name: "ReplicatedStatefulSet", Plural: "replicatedstatefulsets", Rights: []requester.Right{
		{Verb: "create", Resource: "pods", Does: "creates pods", Fields: pods},
		{Verb: "create", Resource: "pods", Subresource: "exec", Does: "runs commands in pods", Fields: []string{"pod", "application"}},
		{Verb: "create", Resource: "pods", Subresource: "exec", Does: "changes the roles of members by commands", Fields: roles},
		{Verb: "create", Resource: "persistentvolumeclaims", Does: "creates claims", Fields: []string{"pod.volumeClaimTemplates"}},
		{Verb: "delete", Resource: "persistentvolumeclaims", Does: "deletes claims", Fields: []string{"persistentVolumeClaimRetentionPolicy"},
			If: `has(spec.persistentVolumeClaimRetentionPolicy) && ["whenDeleted", "whenScaled"].exists(w, ` +
				`w in spec.persistentVolumeClaimRetentionPolicy && spec.persistentVolumeClaimRetentionPolicy[w] == "Delete")`},
		{Verb: "get", Resource: "secrets", Does: "gives Secrets to the members", Fields: []string{"secrets", "TLS", "application"}},
		{Verb: "get", Resource: "configmaps", Does: "reads ConfigMaps", Fields: []string{"ruleSelector"}},
		{Verb: "get", Resource: "secrets", Does: "reads Secrets", Fields: followed, If: follows},
		{Verb: "get", Resource: "configmaps", Does: "reads ConfigMaps", Fields: followed, If: follows},
		{Verb: "create", Resource: "services", Does: "creates Services", Fields: []string{"servicePorts"}},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "creates PodDisruptionBudgets", Fields: []string{"podDisruptionBudget"}},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Does: "lets its pods write Leases", Fields: []string{"fencing"},
			If: `has(spec.fencing) && has(spec.fencing.mode) && spec.fencing.mode == "` + string(v1alpha1.FencingLease) + `"`},
		{Verb: "create", Resource: "pods", Subresource: "exec", Does: "stops and starts members by commands", Fields: []string{"maintenance", "seedFrom", "switchoverTo"},
			Annotations: []string{v1alpha1.AnnotationSeedFrom, v1alpha1.AnnotationSwitchoverTo}},
		{Verb: "create", Resource: "pods", Does: "writes labels and annotations of the object into pods", Copied: true,
			NotCopied: []string{"kubectl.kubernetes.io/", v1alpha1.Prefix}},
		{Verb: "create", Resource: "services", Does: "creates Services", Created: true},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets", Does: "creates PodDisruptionBudgets", Created: true},
	}, Free: map[string]string{
		"replicas":           "users who may scale a set need no permission to create pods; a quota limits their number",
		"deletionProtection": "it only prevents accidental deletion",
	}, Owned: []admissionv1.Rule{{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}}},
		PodLabels: spec.OwnPodLabels}
}
