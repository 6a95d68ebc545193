package v1alpha1

// Prefix is the prefix of the operator's own names on objects. Names of the original have no
// prefix.
const Prefix = "clusterlabs.org/"

// Names of the commands in spec.pod.commands.
const (
	// CommandSequence prints how new this member's data is.
	CommandSequence = "sequence"
	// CommandStatus reports whether the member runs, and in which role.
	CommandStatus = "status"
	// CommandStop stops the member. It succeeds if the member is already stopped.
	CommandStop = "stop"
	// CommandPrimary starts the member as a primary.
	CommandPrimary = "primary"
	// CommandSeed starts the first member. Optional; default CommandPrimary.
	CommandSeed = "seed"
	// CommandSecondary starts the member as a secondary. Optional; by default the member is idle.
	CommandSecondary = "secondary"
	// CommandPromote changes a secondary to a primary. Optional; default CommandPrimary.
	CommandPromote = "promote"
	// CommandDemote changes a primary to a secondary. Optional; default CommandStop, then
	// CommandSecondary.
	CommandDemote = "demote"
	// CommandLeave makes the application forget the member before it is removed by a scale-down.
	// Optional; by default the member is only stopped.
	CommandLeave = "leave"
	// CommandPreStop is run by the kubelet before it stops the container.
	CommandPreStop = "preStop"
)

// Annotations on a ReplicatedStatefulSet. The value is the name of one of its pods. The operator
// executes each once, and then removes it.
const (
	// AnnotationSeedFrom seeds from this member, independent of its sequence and of unknown
	// sequences of other members. Data that only other members have is lost.
	AnnotationSeedFrom = Prefix + "seed-from"
	// AnnotationSwitchoverTo makes this member a primary in place of another.
	AnnotationSwitchoverTo = Prefix + "switchover-to"
)

// Annotations on pods.
const (
	// AnnotationTemplate is a hash of all fields that require a recreation of the pod. A pod whose
	// hash differs from that of the StatefulSet's template is out of date.
	AnnotationTemplate = Prefix + "template"
	// AnnotationContainer is the name of the container in which commands run during the whole
	// lifetime of the pod: the application is stopped in the container in which it was started.
	AnnotationContainer = Prefix + "container"
	// AnnotationRules is a hash of the ConfigMaps of spec.ruleSelector.
	AnnotationRules = Prefix + "rules"
	// AnnotationConfigHash is a keyed hash of the ConfigMaps and Secrets that the pod uses. It is
	// set after the first change of one of them that spec.updateOnEnvChange follows.
	AnnotationConfigHash = Prefix + "config-hash"
	// AnnotationInPlace has, during an in-place change of the pod, the new revision of the template
	// and the start time. A pod with it is out of date.
	AnnotationInPlace = Prefix + "in-place"
)

// AnnotationConfigRecord is an annotation of the StatefulSet with the inputs of that hash, in JSON.
// A change of it restarts nothing.
const AnnotationConfigRecord = Prefix + "config-record"

// AnnotationClosedAt is an annotation of the budget of the members that are not primary. It has the
// last time at which the budget was closed for a handover: each handover writes the budget.
const AnnotationClosedAt = Prefix + "closed-at"

// Names of the Leases of members, and annotations of them.
const (
	// LeaseSuffix follows the name of the pod in the name of its Lease.
	LeaseSuffix = ".member"
	// AnnotationFenced is the ID of the container that has ended because it did not renew the Lease.
	AnnotationFenced = Prefix + "fenced"
)

// Labels.
const (
	// LabelApp is the name of the ReplicatedStatefulSet, on all its objects.
	LabelApp = "app"
	// LabelManaged is "true" on all objects of the operator.
	LabelManaged = "rss-operator-managed"
	// LabelActive is "true" on pods in which the application runs, as primary or secondary, and
	// "false" on others.
	LabelActive = "rss-active-member"
	// LabelRole is RolePrimary, RoleSecondary or RoleNone on pods.
	LabelRole = Prefix + "role"
	// LabelLease is the name of the ReplicatedStatefulSet, on the Leases of its members and on the
	// rights on them. Only the operator may set it on a Lease.
	LabelLease = Prefix + "lease"
)

// Values of labels.
const (
	True          = "true"
	False         = "false"
	RolePrimary   = "primary"
	RoleSecondary = "secondary"
	RoleNone      = "none"
)

// Finalizers.
const (
	// FinalizerMember is on pods. It keeps a pod in which the application may run until its
	// containers have been observed to be stopped, so that no second copy of the member starts at
	// the same time.
	FinalizerMember = Prefix + "member"
	// FinalizerStop is on ReplicatedStatefulSets. It keeps a deleted one until its members were
	// stopped in order, or until a deadline.
	FinalizerStop = Prefix + "stop-in-order"
)

// Condition types of a ReplicatedStatefulSet. All of them are always present.
const (
	// ConditionAvailable is True while the wanted number of primaries serve: they respond, and
	// their pods are Ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while an operation is in progress. The message explains pending
	// steps.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True if there is a problem, or members are missing.
	ConditionDegraded = "Degraded"
	// ConditionSeeded is True while the newest copy is in service.
	ConditionSeeded = "Seeded"
	// ConditionDataLossRisk is True while the newest copy ever recorded is unreachable, or the
	// newest copy is unknown. The message names the members.
	ConditionDataLossRisk = "DataLossRisk"
	// ConditionPaused is True while the operator runs no commands and does not change the number of
	// pods.
	ConditionPaused = "Paused"
	// ConditionReady is True while the object matches its spec: it serves, and no operation is in
	// progress.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator is bringing the object to its spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the object cannot reach its spec without manual intervention.
	// The message has instructions.
	ConditionStalled = "Stalled"
	// ConditionDraining is True while a primary is on a cordoned Node or its eviction was recently
	// requested, so that it must hand its role over before the eviction. It is also True while this
	// applies to any member and a primary is missing. The message explains the wait, or why no
	// member can take the role.
	ConditionDraining = "Draining"
	// ConditionMaintenance is True while spec.maintenance names members. The message has the parked
	// members, what others wait for, and how to end the maintenance.
	ConditionMaintenance = "Maintenance"
)

// Reasons of the conditions.
const (
	// ReasonOnTarget: the wanted number of members and primaries run.
	ReasonOnTarget = "OnTarget"
	// ReasonBelowTarget: fewer run than are wanted.
	ReasonBelowTarget = "BelowTarget"
	// ReasonNotServing: a primary runs but does not serve: its pod is not Ready, or its status
	// command does not respond.
	ReasonNotServing = "NotServing"
	// ReasonStopped: replicas is 0.
	ReasonStopped = "Stopped"

	// ReasonSteady: no operation in progress.
	ReasonSteady = "Steady"
	// ReasonWaitingForPods: pods do not run yet.
	ReasonWaitingForPods = "WaitingForPods"
	// ReasonWaitingForCommand: a command has not ended, or its end was not observed.
	ReasonWaitingForCommand = "WaitingForCommand"
	// ReasonWaitingForStop: a member that may be primary may not have stopped yet.
	ReasonWaitingForStop = "WaitingForStop"
	// ReasonSeeding: the newest copy is being determined or started.
	ReasonSeeding = "Seeding"
	// ReasonStarting: members are being started.
	ReasonStarting = "Starting"
	// ReasonStopping: members are being stopped.
	ReasonStopping = "Stopping"
	// ReasonHandingOver: one member takes over the role of another.
	ReasonHandingOver = "HandingOver"
	// ReasonRecovering: failed members are being stopped or recreated.
	ReasonRecovering = "Recovering"
	// ReasonScaling: pods are being added or removed.
	ReasonScaling = "Scaling"
	// ReasonUpdating: members are being updated to the present template.
	ReasonUpdating = "Updating"
	// ReasonWaitingForAvailability: an update waits until an updated member has been Ready for
	// spec.minReadySeconds.
	ReasonWaitingForAvailability = "WaitingForAvailability"
	// ReasonConfigChanged: members will be recreated because a ConfigMap or Secret that they use
	// has changed.
	ReasonConfigChanged = "ConfigChanged"
	// ReasonConfigTurn: that recreation waits for other restarts to finish.
	ReasonConfigTurn = "ConfigRestartWaits"

	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec: the spec passed admission but is invalid.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonMembersFailed: members failed and do not recover.
	ReasonMembersFailed = "MembersFailed"
	// ReasonMembersDegraded: members run but do not respond to status any more, or report by exit
	// code 190 or 191 that they are degraded.
	ReasonMembersDegraded = "MembersDegraded"
	// ReasonMembersNotReady: the pods of secondaries have not been Ready for a minute.
	ReasonMembersNotReady = "MembersNotReady"
	// ReasonNodeUnreachable: the operation waits for a member on an unreachable Node, and only an
	// administrator can confirm that its machine is off.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonMembersCannotStart: members cannot be created, scheduled, started or deleted.
	ReasonMembersCannotStart = "MembersCannotStart"
	// ReasonAgentUnknown: the operator does not know the image of its agent, which spec.application
	// needs.
	ReasonAgentUnknown = "AgentUnknown"
	// ReasonFencingNotPermitted: the operator may not read or write Leases, Roles or RoleBindings. The
	// message has the command that permits it.
	ReasonFencingNotPermitted = "FencingNotPermitted"
	// ReasonPolicyNotInstalled: the API server does not have the policy on the Leases of members, or it
	// does not apply in the namespace. No Lease is written until it does.
	ReasonPolicyNotInstalled = "PolicyNotInstalled"
	// ReasonSecretMissing: a Secret of spec.TLS or spec.application does not exist.
	ReasonSecretMissing = "SecretMissing"
	// ReasonForeignObject: an object with a required name belongs to another owner.
	ReasonForeignObject = "ForeignObject"
	// ReasonConfigMissing: a ConfigMap or Secret that the pods require does not exist, or lacks a
	// required key.
	ReasonConfigMissing = "ConfigMissing"
	// ReasonConfigUnreadable: a ConfigMap or Secret that spec.updateOnEnvChange follows
	// cannot be read.
	ReasonConfigUnreadable = "ConfigUnreadable"
	// ReasonConfigCached: pods may have old contents of an immutable ConfigMap or Secret that was
	// recreated.
	ReasonConfigCached = "ConfigCached"
	// ReasonRulesUnfollowed: spec.ruleSelector selects more ConfigMaps than allowed.
	ReasonRulesUnfollowed = "RulesUnfollowed"
	// ReasonForeignPods: a pod has the name of a member, but was not created for the object.
	ReasonForeignPods = "ForeignPods"
	// ReasonWriteRefused: the API server refuses a write.
	ReasonWriteRefused = "WriteRefused"

	// ReasonSeeded: a member was seeded or found running.
	ReasonSeeded = "Seeded"
	// ReasonNotSeeded: no member has been started yet, or none since the last primary stopped.
	ReasonNotSeeded = "NotSeeded"
	// ReasonSeedFailed: no member with the newest copy could be started.
	ReasonSeedFailed = "SeedFailed"
	// ReasonSequenceUnknown: members have not reported their sequences.
	ReasonSequenceUnknown = "SequenceUnknown"

	// ReasonNewestMissing: the member with the newest copy is missing.
	ReasonNewestMissing = "NewestCopyMissing"
	// ReasonNewestPresent: the newest copy is available.
	ReasonNewestPresent = "NewestCopyPresent"
	// ReasonPrimaryNotCompared: a secondary was promoted without reading the sequence of the former
	// primary, which may have been higher.
	ReasonPrimaryNotCompared = "FormerPrimaryNotCompared"

	// ReasonPausedByUser: spec.paused is true.
	ReasonPausedByUser = "PausedByUser"
	// ReasonReplicasTooLow: a stopped set has fewer replicas than it had before the stop.
	ReasonReplicasTooLow = "ReplicasTooLow"
	// ReasonNotPaused: the operator is not paused.
	ReasonNotPaused = "NotPaused"

	// ReasonNotDraining: no primary that another could replace is on a cordoned Node.
	ReasonNotDraining = "NotDraining"
	// ReasonNoSuccessor: a primary must leave its Node or is in spec.maintenance, and no member can
	// take its role.
	ReasonNoSuccessor = "NoSuccessor"
	// ReasonPrimaryMissing: members must leave their Nodes, but none may be evicted while a primary
	// is missing.
	ReasonPrimaryMissing = "PrimaryMissing"
	// ReasonEvictionAllowed: spec.evictionTimeout has expired, and members that must leave their
	// Nodes may be evicted, including a primary whose role no other member has.
	ReasonEvictionAllowed = "EvictionAllowed"

	// ReasonNoMaintenance: spec.maintenance is empty.
	ReasonNoMaintenance = "NoMaintenance"
	// ReasonParked: all members of spec.maintenance are parked.
	ReasonParked = "Parked"
	// ReasonNoSuchMember: spec.maintenance names no present member.
	ReasonNoSuchMember = "NoSuchMember"
)

// Reasons of events.
const (
	// EventHandingOver: a primary hands its role over. The note has the reason and the possible
	// successors.
	EventHandingOver = "HandingOver"
	// EventNoSuccessor: a primary must leave its Node or is in spec.maintenance, and no member can
	// take its role. The note has the reason.
	EventNoSuccessor = "NoSuccessor"
	// EventMemberParked: from now on only the commands status and sequence run in a member, because
	// of spec.maintenance.
	EventMemberParked = "MemberParked"
	// EventMemberUnparked: a member was removed from spec.maintenance, or was made primary by
	// another client.
	EventMemberUnparked = "MemberUnparked"
	// EventForeignPod: the labels of a member were removed from a pod that is not a member.
	EventForeignPod = "ForeignPod"
	// EventMemberAdded: a member was added by a scale-up.
	EventMemberAdded = "MemberAdded"
	// EventMemberRemoved: a member was removed by a scale-down.
	EventMemberRemoved = "MemberRemoved"
	// EventMemberReplaced: a pod was deleted to be recreated. The note has the reason.
	EventMemberReplaced = "MemberReplaced"
	// EventMemberUpdated: a pod was recreated with the present template, or updated in place.
	EventMemberUpdated = "MemberUpdated"
	// EventConfigFollowed: from now on members are recreated when the ConfigMaps and Secrets that
	// they use change.
	EventConfigFollowed = "ConfigFollowed"
	// EventConfigRestart: members are recreated because a ConfigMap or Secret that they use has
	// changed.
	EventConfigRestart = "ConfigRestart"
	// EventConfigKeyChanged: the operator has a new key for its hashes. Nothing else changed.
	EventConfigKeyChanged = "ConfigKeyChanged"
	// EventConfigKeyLost: the operator has a new key for its hashes, and objects were edited
	// meanwhile, so that members are recreated.
	EventConfigKeyLost = "ConfigKeyLost"
	// EventNotInPlace: the resources of a pod could not be changed in place, and its member is
	// recreated. The note has the reason.
	EventNotInPlace = "NotInPlace"
	// EventMemberFailed: a member failed. The note has the result of its command.
	EventMemberFailed = "MemberFailed"
	// EventMemberStarted: a member was started.
	EventMemberStarted = "MemberStarted"
	// EventMemberStopped: a member was stopped.
	EventMemberStopped = "MemberStopped"
	// EventMemberLeft: the command leave succeeded in a member that is being scaled down.
	EventMemberLeft = "MemberLeft"
	// EventSeeded: a member was seeded.
	EventSeeded = "Seeded"
	// EventPromoted: a member became primary.
	EventPromoted = "Promoted"
	// EventPrimaryNotCompared: a secondary was promoted without reading the sequence of the former
	// primary, which may have been higher.
	EventPrimaryNotCompared = "FormerPrimaryNotCompared"
	// EventNotPromoted: a member got a command to become primary, which may have succeeded, but it
	// is not primary.
	EventNotPromoted = "NotPromoted"
	// EventCommandNotSent: a command was not sent. The note has the reason.
	EventCommandNotSent = "CommandNotSent"
	// EventCommandEnded: a command ended with its container, and its result is unknown.
	EventCommandEnded = "CommandEnded"
	// EventDemoted: a member is no longer primary.
	EventDemoted = "Demoted"
	// EventRoleChanged: a member changed its role without a command of the operator.
	EventRoleChanged = "RoleChanged"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy reverted it. It is retried within 10 minutes.
	EventWriteUndone = "WriteUndone"
	// EventFenced: the Lease of a member was not renewed in time, so that it is not primary any more.
	EventFenced = "Fenced"
	// EventOverrideUsed: an order was executed: an annotation, which was removed, or
	// spec.switchoverTo or spec.seedFrom.
	EventOverrideUsed = "OverrideUsed"
	// EventOverrideRefused: an order was refused: an annotation, which was removed, or
	// spec.switchoverTo or spec.seedFrom. The note has the reason, and the steps that were already
	// executed.
	EventOverrideRefused = "OverrideRefused"
)
