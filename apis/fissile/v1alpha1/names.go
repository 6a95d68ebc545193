package v1alpha1

// Kind is the kind of the objects of this package.
const Kind = "ExtendedStatefulSet"

// Finalizer holds an ExtendedStatefulSet with configTracking OwnerReference
// until its owner references are off the ConfigMaps and Secrets of others.
const Finalizer = "fissile.cloudfoundry.org/finalizer"

// Labels of the operator on StatefulSets, pods, claims, Services and Jobs. They
// select what the operator caches; whose an object is, its controller owner
// reference says.
const (
	// LabelSet holds the name of the ExtendedStatefulSet. Pods with it get their
	// claims from the webhook.
	LabelSet = "fissile.cloudfoundry.org/extendedstatefulset"
	// LabelVersion holds the version, on pods and StatefulSets. It is part of the
	// selector of each StatefulSet, so that the versions share no pod.
	LabelVersion = "fissile.cloudfoundry.org/version"
	// LabelZoneIndex holds the index of the zone, from 0; "0" without zones.
	LabelZoneIndex = "fissile.cloudfoundry.org/az-index"
	// LabelZoneName holds the name of the zone; absent without zones.
	LabelZoneName = "fissile.cloudfoundry.org/az-name"
	// LabelPodOrdinal holds the ordinal of a pod, as apps.kubernetes.io/pod-index
	// does; the webhook sets it.
	LabelPodOrdinal = "fissile.cloudfoundry.org/pod-ordinal"
	// LabelPodActive is PodActive on the pods on which the active/passive probe
	// succeeds.
	LabelPodActive = "fissile.cloudfoundry.org/pod-active"
	// LabelStatefulSet holds the name of the StatefulSet without its version:
	// <name> or <name>-z<index>.
	LabelStatefulSet = "fissile.cloudfoundry.org/statefulset-name"
	// PodActive is the value of LabelPodActive.
	PodActive = "active"
)

// Annotations of the operator.
const (
	// AnnotationVersion holds the version, on StatefulSets.
	AnnotationVersion = "fissile.cloudfoundry.org/version"
	// AnnotationDigest holds the digest of the content of a version, on
	// StatefulSets: of the template without its replicas and the sizes of its
	// claims.
	AnnotationDigest = "fissile.cloudfoundry.org/template-digest"
	// AnnotationApplied holds what the operator wrote last on a StatefulSet, a
	// digest and the generation that the write made, so that it sees what others
	// change.
	AnnotationApplied = "fissile.cloudfoundry.org/applied"
	// AnnotationAttempts holds, on StatefulSets, how many attempts were made to
	// upgrade to their version.
	AnnotationAttempts = "fissile.cloudfoundry.org/attempts"
	// AnnotationConfigHash holds, on pod templates, what reports whether the
	// referenced ConfigMaps and Secrets changed.
	AnnotationConfigHash = "fissile.cloudfoundry.org/config-hash"
	// AnnotationConfigRecord holds, on StatefulSets, what that hash stands for, in
	// JSON: it tells a change of contents from one of metadata.
	AnnotationConfigRecord = "fissile.cloudfoundry.org/config-record"
	// AnnotationGuard is "true" on ConfigMaps and Secrets that have, beside an owner
	// reference to an ExtendedStatefulSet, one to their namespace from the operator:
	// so the garbage collector never takes them along.
	AnnotationGuard = "fissile.cloudfoundry.org/guarded-by-namespace"
	// AnnotationAdopt is on a claim that somebody else made, and holds the name of the
	// ExtendedStatefulSet that may take it: the consent of who owns the claim.
	AnnotationAdopt = "fissile.cloudfoundry.org/adopt"
	// AnnotationZones holds, on StatefulSets and pods, the JSON array of the
	// zones in the order of the spec.
	AnnotationZones = "fissile.cloudfoundry.org/zones"
	// AnnotationHostnames is "true" on pods whose host name says the ordinal and
	// not the version: the webhook sets <name>[-z<index>]-<ordinal>.
	AnnotationHostnames = "fissile.cloudfoundry.org/stable-hostname"
	// AnnotationStarted is "true" on a Job that the operator has started. It is
	// started once: a Job that is suspended after that was suspended by others.
	AnnotationStarted = "fissile.cloudfoundry.org/started"
	// AnnotationStopped holds when the operator last suspended a Job that is no
	// longer needed, in RFC 3339.
	AnnotationStopped = "fissile.cloudfoundry.org/stopped-at"
	// AnnotationStale is "true" on the StatefulSets of a version that failed.
	AnnotationStale = "fissile.cloudfoundry.org/stale"
	// AnnotationStaleReason says why, beside AnnotationStale.
	AnnotationStaleReason = "fissile.cloudfoundry.org/stale-reason"
	// AnnotationStaleSince says since when, in RFC 3339, beside AnnotationStale.
	AnnotationStaleSince = "fissile.cloudfoundry.org/stale-since"
)

// True is the value of annotations that are there or not.
const True = "true"

// UnassignedClaim ends the name of the claim in the pod template of a version:
// <name>-unassigned. No such claim exists, so that a pod that no webhook saw
// waits instead of running on empty storage.
const UnassignedClaim = "-unassigned"

// Environment variables in every container and init container. They take the
// place of the user's of the same name.
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
	// ConditionAvailable is True when all wanted pods of what serves are
	// available.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator brings something about:
	// an upgrade, a way back, a scaling.
	ConditionProgressing = "Progressing"
	// ConditionStale is True while the version of the present template is marked
	// as failed.
	ConditionStale = "Stale"
	// ConditionAborted is True while a failed job keeps the present template from
	// being rolled out.
	ConditionAborted = "Aborted"
	// ConditionConfigMissing is True while a ConfigMap or Secret that the template
	// requires is not there, or cannot be read.
	ConditionConfigMissing = "ConfigMissing"
	// ConditionDegraded is True when there is a problem, and has the reason of the
	// condition that says more of it.
	ConditionDegraded = "Degraded"
	// ConditionReady is True while the object is as its spec says: it serves, and
	// nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is True while it comes to be so by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while it does not before a person does something; it
	// says what.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions.
const (
	// ReasonAllAvailable: every wanted pod is available.
	ReasonAllAvailable = "AllPodsAvailable"
	// ReasonPodsUnavailable: fewer pods than wanted are available.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonInvalidSpec: the spec slipped past admission and cannot be served.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonComplete: nothing is left to do.
	ReasonComplete = "Complete"
	// ReasonWaiting: pods are not Ready yet, and nothing else is to be done.
	ReasonWaiting = "WaitingForPods"
	// ReasonCurrentNotReady: an upgrade waits until the version that serves is
	// Ready.
	ReasonCurrentNotReady = "CurrentNotReady"
	// ReasonUpgrading: a new version is on its way.
	ReasonUpgrading = "Upgrading"
	// ReasonWaitingForApproval: the canaries are good, and the upgrade goes on when
	// spec.approvedRevision names its revision.
	ReasonWaitingForApproval = "WaitingForApproval"
	// ReasonReturning: what a failed or superseded version took is given back.
	ReasonReturning = "Returning"
	// ReasonScaling: pods are being added or taken away.
	ReasonScaling = "Scaling"
	// ReasonBudgetTaken: a PodDisruptionBudget has the name of one of ours and is somebody
	// else's.
	ReasonBudgetTaken = "BudgetTaken"
	// ReasonServiceTaken: a Service has the name of one of ours and is somebody
	// else's, or was orphaned. It is left alone.
	ReasonServiceTaken = "ServiceTaken"
	// ReasonClaimTaken: a claim has the name of one of ours and is somebody else's. It
	// is left alone, and so is its ordinal.
	ReasonClaimTaken = "ClaimTaken"
	// ReasonWriteRefused: the API server refuses a write; it is tried again.
	ReasonWriteRefused = "WriteRefused"
	// ReasonHealthy: nothing of the kind.
	ReasonHealthy = "Healthy"
	// ReasonCanaryFailed: the canaries were not Ready within canaryWatchTime.
	ReasonCanaryFailed = "CanaryFailed"
	// ReasonUpdateTimeout: the upgrade was not complete within updateWatchTime.
	ReasonUpdateTimeout = "UpdateTimeout"
	// ReasonPreJobFailed: preUpdateJob failed.
	ReasonPreJobFailed = "PreUpdateJobFailed"
	// ReasonPostJobFailed: postUpdateJob failed.
	ReasonPostJobFailed = "PostUpdateJobFailed"
	// ReasonPodsHindered: pods of the version that serves cannot be created or started.
	ReasonPodsHindered = "PodsHindered"
	// ReasonJobResultUnknown: the Job that an upgrade waits for was deleted before the
	// operator saw its result.
	ReasonJobResultUnknown = "JobResultUnknown"
	// ReasonJobSuspended: another client suspended the Job that an upgrade waits for.
	ReasonJobSuspended = "JobSuspended"
	// ReasonConfigFound: all that is required is there.
	ReasonConfigFound = "ConfigFound"
	// ReasonConfigNotFollowed: updateOnEnvChange is false, so nobody looks.
	ReasonConfigNotFollowed = "ConfigNotFollowed"
	// ReasonConfigMissing: something that is required is not.
	ReasonConfigMissing = "ConfigMissing"
	// ReasonConfigUnreadable: something that is required cannot be read.
	ReasonConfigUnreadable = "ConfigUnreadable"
	// ReasonConfigCached: pods may have old contents of an immutable ConfigMap or Secret
	// that was deleted and created again.
	ReasonConfigCached = "ConfigCached"
	// ReasonConfigChanged: pods are about to be restarted for a change of what they
	// reference.
	ReasonConfigChanged = "ConfigChanged"
	// ReasonConfigTurn: that restart waits until others are over.
	ReasonConfigTurn = "ConfigRestartWaits"
)

// Reasons of events.
const (
	// EventConfigFollowed: from now on pods are restarted when what they reference
	// changes.
	EventConfigFollowed = "ConfigFollowed"
	// EventConfigRestart: pods are restarted, since what they reference changed.
	EventConfigRestart = "ConfigRestart"
	// EventConfigKeyChanged: the operator has another key for its hashes; nothing
	// was edited, and no pod is restarted.
	EventConfigKeyChanged = "ConfigKeyChanged"
	// EventConfigKeyLost: the operator has another key for its hashes, and there
	// was an edit: pods are restarted to be safe, maybe for nothing.
	EventConfigKeyLost = "ConfigKeyLost"
	// EventTracked: an owner reference was put on a ConfigMap or Secret.
	EventTracked = "Tracked"
	// EventUntracked: an owner reference was taken off a ConfigMap or Secret.
	EventUntracked = "Untracked"
	// EventVersionCreated: the StatefulSets of a new version are made.
	EventVersionCreated = "VersionCreated"
	// EventUpgradeBegun: a new template is on its way.
	EventUpgradeBegun = "UpgradeBegun"
	// EventWaitingForApproval: the canaries are good, and the upgrade waits.
	EventWaitingForApproval = "WaitingForApproval"
	// EventApproved: the revision of an upgrade was approved, and it goes on.
	EventApproved = "Approved"
	// EventUpgraded: a version took over, and lower ones go.
	EventUpgraded = "Upgraded"
	// EventSuperseded: a new template took the place of one on its way.
	EventSuperseded = "Superseded"
	// EventAttemptFailed: an attempt failed, and there will be another.
	EventAttemptFailed = "AttemptFailed"
	// EventStale: a version was given up.
	EventStale = "Stale"
	// EventAborted: a failed job stopped an upgrade.
	EventAborted = "Aborted"
	// EventEditUndone: what somebody else wrote on a StatefulSet was put back.
	EventEditUndone = "EditUndone"
	// EventEditKept: somebody else wrote on a StatefulSet whose template is not the
	// spec's at the moment, so that only its replicas can be put back.
	EventEditKept = "EditKept"
	// EventSurplusDeleted: a pod of an ordinal that its StatefulSet no longer has is deleted.
	EventSurplusDeleted = "SurplusDeleted"
	// EventStrayReplaced: a pod that no webhook saw, and that so had no claim, is deleted.
	EventStrayReplaced = "StrayReplaced"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy changed it back; it is tried again within 10 minutes.
	EventWriteUndone = "WriteUndone"
	// EventForeignPod: a pod that belongs to no version had the labels of one, and lost them.
	EventForeignPod = "ForeignPod"
)
