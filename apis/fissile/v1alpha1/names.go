package v1alpha1

// Kind is the kind of the objects of this package.
const Kind = "ExtendedStatefulSet"

// Finalizer keeps an ExtendedStatefulSet with configTracking OwnerReference until its owner
// references are removed from the users' ConfigMaps and Secrets.
const Finalizer = "fissile.cloudfoundry.org/finalizer"

// Labels of the operator on StatefulSets, pods, claims, Services and Jobs. They select the objects
// that the operator caches. The controller owner reference determines the owner of an object.
const (
	// LabelSet is the name of the ExtendedStatefulSet. The webhook sets the claims of pods with it.
	LabelSet = "fissile.cloudfoundry.org/extendedstatefulset"
	// LabelVersion is the version, on pods and StatefulSets. It is part of the selector of each
	// StatefulSet, so that versions share no pods.
	LabelVersion = "fissile.cloudfoundry.org/version"
	// LabelZoneIndex is the index of the zone, from 0; "0" without zones.
	LabelZoneIndex = "fissile.cloudfoundry.org/az-index"
	// LabelZoneName is the name of the zone; absent without zones.
	LabelZoneName = "fissile.cloudfoundry.org/az-name"
	// LabelPodOrdinal is the ordinal of a pod, like apps.kubernetes.io/pod-index. The webhook sets
	// it.
	LabelPodOrdinal = "fissile.cloudfoundry.org/pod-ordinal"
	// LabelPodActive is PodActive on the pods on which the active/passive probe succeeds.
	LabelPodActive = "fissile.cloudfoundry.org/pod-active"
	// LabelStatefulSet is the name of the StatefulSet without its version: <name> or
	// <name>-z<index>.
	LabelStatefulSet = "fissile.cloudfoundry.org/statefulset-name"
	// PodActive is the value of LabelPodActive.
	PodActive = "active"
)

// Annotations of the operator.
const (
	// AnnotationVersion is the version, on StatefulSets.
	AnnotationVersion = "fissile.cloudfoundry.org/version"
	// AnnotationDigest is the digest of the content of a version, on StatefulSets: of the template
	// without its replicas and the sizes of its claims.
	AnnotationDigest = "fissile.cloudfoundry.org/template-digest"
	// AnnotationApplied is the last write of the operator on a StatefulSet, as a digest and the
	// resulting generation, to detect changes by others.
	AnnotationApplied = "fissile.cloudfoundry.org/applied"
	// AnnotationAttempts is the number of attempts to upgrade to the version of a StatefulSet.
	AnnotationAttempts = "fissile.cloudfoundry.org/attempts"
	// AnnotationConfigHash is a hash in pod templates that changes when the referenced ConfigMaps
	// and Secrets change.
	AnnotationConfigHash = "fissile.cloudfoundry.org/config-hash"
	// AnnotationConfigRecord has the inputs of that hash, on StatefulSets, in JSON. It
	// distinguishes a change of data from one of metadata.
	AnnotationConfigRecord = "fissile.cloudfoundry.org/config-record"
	// AnnotationGuard is "true" on ConfigMaps and Secrets that have, in addition to an owner
	// reference to an ExtendedStatefulSet, a reference to their namespace from the operator.
	// Because of it, the garbage collector never deletes them with the set.
	AnnotationGuard = "fissile.cloudfoundry.org/guarded-by-namespace"
	// AnnotationAdopt is on a claim that was created by another client. Its value is the name of
	// the ExtendedStatefulSet that may adopt it: the consent of the claim's owner.
	AnnotationAdopt = "fissile.cloudfoundry.org/adopt"
	// AnnotationZones is the JSON array of the zones in the order of the spec, on StatefulSets and
	// pods.
	AnnotationZones = "fissile.cloudfoundry.org/zones"
	// AnnotationHostnames is "true" on pods whose host name has the ordinal but not the version:
	// the webhook sets <name>[-z<index>]-<ordinal>.
	AnnotationHostnames = "fissile.cloudfoundry.org/stable-hostname"
	// AnnotationStarted is "true" on a Job that the operator has started. It is started once: if it
	// is suspended after that, another client has suspended it.
	AnnotationStarted = "fissile.cloudfoundry.org/started"
	// AnnotationStopped is when the operator last suspended a Job that is no longer needed, in RFC
	// 3339.
	AnnotationStopped = "fissile.cloudfoundry.org/stopped-at"
	// AnnotationStale is "true" on the StatefulSets of a version that failed.
	AnnotationStale = "fissile.cloudfoundry.org/stale"
	// AnnotationStaleReason is the reason for AnnotationStale.
	AnnotationStaleReason = "fissile.cloudfoundry.org/stale-reason"
	// AnnotationStaleSince is the time of AnnotationStale, in RFC 3339.
	AnnotationStaleSince = "fissile.cloudfoundry.org/stale-since"
)

// True is the value of annotations that are either set or absent.
const True = "true"

// UnassignedClaim is the suffix of the claim name in the pod template of a version:
// <name>-unassigned. No such claim exists, so that a pod that bypassed the webhook waits instead of
// running on empty storage.
const UnassignedClaim = "-unassigned"

// Environment variables in every container and init container. They replace the user's variables of
// the same name.
const (
	// EnvReplicas is the number of replicas, in each zone.
	EnvReplicas = "REPLICAS"
	// EnvKubeAZ, EnvBoshAZ and EnvOperatorAZ are the name of the zone.
	EnvKubeAZ = "KUBE_AZ"
	// EnvBoshAZ is EnvKubeAZ under another name.
	EnvBoshAZ = "BOSH_AZ"
	// EnvOperatorAZ is EnvKubeAZ under another name.
	EnvOperatorAZ = "CF_OPERATOR_AZ"
	// EnvAZIndex is the index of the zone, from 1.
	EnvAZIndex = "AZ_INDEX"
)

// Condition types of an ExtendedStatefulSet.
const (
	// ConditionAvailable is True when all wanted pods of the serving version are available.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while an operation is in progress: an upgrade, a rollback, a
	// scaling.
	ConditionProgressing = "Progressing"
	// ConditionStale is True while the version of the present template is marked
	// as failed.
	ConditionStale = "Stale"
	// ConditionAborted is True while a failed job keeps the present template from
	// being rolled out.
	ConditionAborted = "Aborted"
	// ConditionConfigMissing is True while a ConfigMap or Secret that the template requires is
	// missing, or cannot be read.
	ConditionConfigMissing = "ConfigMissing"
	// ConditionDegraded is True if there is a problem. It has the reason of the condition with the
	// details.
	ConditionDegraded = "Degraded"
	// ConditionReady is True while the object matches its spec: it serves, and no operation is in
	// progress.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator is bringing the object to its spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the object cannot reach its spec without manual intervention.
	// The message has instructions.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions.
const (
	// ReasonAllAvailable: every wanted pod is available.
	ReasonAllAvailable = "AllPodsAvailable"
	// ReasonPodsUnavailable: fewer pods than wanted are available.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonInvalidSpec: the spec passed admission but is invalid.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonComplete: no operation is in progress.
	ReasonComplete = "Complete"
	// ReasonWaiting: pods are not Ready yet, and no other operation is in progress.
	ReasonWaiting = "WaitingForPods"
	// ReasonCurrentNotReady: an upgrade waits until the serving version is Ready.
	ReasonCurrentNotReady = "CurrentNotReady"
	// ReasonUpgrading: a new version is being rolled out.
	ReasonUpgrading = "Upgrading"
	// ReasonWaitingForApproval: the canaries are good, and the upgrade continues when
	// spec.approvedRevision names its revision.
	ReasonWaitingForApproval = "WaitingForApproval"
	// ReasonReturning: a failed or superseded version is being rolled back.
	ReasonReturning = "Returning"
	// ReasonScaling: pods are being added or removed.
	ReasonScaling = "Scaling"
	// ReasonBudgetTaken: a PodDisruptionBudget with a required name belongs to another owner.
	ReasonBudgetTaken = "BudgetTaken"
	// ReasonServiceTaken: a Service with a required name belongs to another owner, or was orphaned.
	// It is not changed.
	ReasonServiceTaken = "ServiceTaken"
	// ReasonClaimTaken: a claim with a required name belongs to another owner. The claim and its
	// ordinal are not changed.
	ReasonClaimTaken = "ClaimTaken"
	// ReasonWriteRefused: the API server refuses a write. It is retried.
	ReasonWriteRefused = "WriteRefused"
	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonCanaryFailed: the canaries were not Ready within canaryWatchTime.
	ReasonCanaryFailed = "CanaryFailed"
	// ReasonUpdateTimeout: the upgrade was not complete within updateWatchTime.
	ReasonUpdateTimeout = "UpdateTimeout"
	// ReasonPreJobFailed: preUpdateJob failed.
	ReasonPreJobFailed = "PreUpdateJobFailed"
	// ReasonPostJobFailed: postUpdateJob failed.
	ReasonPostJobFailed = "PostUpdateJobFailed"
	// ReasonPodsHindered: pods of the serving version cannot be created or started.
	ReasonPodsHindered = "PodsHindered"
	// ReasonJobResultUnknown: the Job that an upgrade waits for was deleted before the
	// operator saw its result.
	ReasonJobResultUnknown = "JobResultUnknown"
	// ReasonJobSuspended: another client suspended the Job that an upgrade waits for.
	ReasonJobSuspended = "JobSuspended"
	// ReasonConfigFound: all required objects exist.
	ReasonConfigFound = "ConfigFound"
	// ReasonConfigNotFollowed: updateOnEnvChange is false, so required objects are not checked.
	ReasonConfigNotFollowed = "ConfigNotFollowed"
	// ReasonConfigMissing: a required object is missing.
	ReasonConfigMissing = "ConfigMissing"
	// ReasonConfigUnreadable: a required object cannot be read.
	ReasonConfigUnreadable = "ConfigUnreadable"
	// ReasonConfigCached: pods may have old contents of an immutable ConfigMap or Secret that was
	// recreated.
	ReasonConfigCached = "ConfigCached"
	// ReasonConfigChanged: pods will be restarted because an object that they reference has
	// changed.
	ReasonConfigChanged = "ConfigChanged"
	// ReasonConfigTurn: that restart waits for other restarts to finish.
	ReasonConfigTurn = "ConfigRestartWaits"
)

// Reasons of events.
const (
	// EventConfigFollowed: from now on pods are restarted when the objects that they reference
	// change.
	EventConfigFollowed = "ConfigFollowed"
	// EventConfigRestart: pods are restarted because an object that they reference has changed.
	EventConfigRestart = "ConfigRestart"
	// EventConfigKeyChanged: the operator has a new key for its hashes. Nothing was edited, and no
	// pod is restarted.
	EventConfigKeyChanged = "ConfigKeyChanged"
	// EventConfigKeyLost: the operator has a new key for its hashes, and there was an edit: pods
	// are restarted to be safe, possibly without need.
	EventConfigKeyLost = "ConfigKeyLost"
	// EventTracked: an owner reference was added to a ConfigMap or Secret.
	EventTracked = "Tracked"
	// EventUntracked: an owner reference was removed from a ConfigMap or Secret.
	EventUntracked = "Untracked"
	// EventVersionCreated: the StatefulSets of a new version were created.
	EventVersionCreated = "VersionCreated"
	// EventUpgradeBegun: the rollout of a new template has started.
	EventUpgradeBegun = "UpgradeBegun"
	// EventWaitingForApproval: the canaries are good, and the upgrade waits.
	EventWaitingForApproval = "WaitingForApproval"
	// EventApproved: the revision of an upgrade was approved, and the upgrade continues.
	EventApproved = "Approved"
	// EventUpgraded: a version took over, and lower ones are removed.
	EventUpgraded = "Upgraded"
	// EventSuperseded: a new template replaced one that was being rolled out.
	EventSuperseded = "Superseded"
	// EventAttemptFailed: an attempt failed, and will be retried.
	EventAttemptFailed = "AttemptFailed"
	// EventStale: a version was rolled back for good.
	EventStale = "Stale"
	// EventAborted: a failed job stopped an upgrade.
	EventAborted = "Aborted"
	// EventEditUndone: another client's write on a StatefulSet was reverted.
	EventEditUndone = "EditUndone"
	// EventEditKept: another client wrote on a StatefulSet whose template is not the present one of
	// the spec, so that only its replicas can be reverted.
	EventEditKept = "EditKept"
	// EventSurplusDeleted: a pod whose ordinal its StatefulSet no longer has is deleted.
	EventSurplusDeleted = "SurplusDeleted"
	// EventStrayReplaced: a pod without claims, because it bypassed the webhook, is deleted.
	EventStrayReplaced = "StrayReplaced"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy reverted it. It is retried within 10 minutes.
	EventWriteUndone = "WriteUndone"
	// EventForeignPod: the labels of a version were removed from a pod that belongs to no version.
	EventForeignPod = "ForeignPod"
)
