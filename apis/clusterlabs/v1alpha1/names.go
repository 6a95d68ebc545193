package v1alpha1

// Prefix begins the operator's own names on objects, but for those that the
// original had.
const Prefix = "clusterlabs.org/"

// Names of the commands in spec.pod.commands.
const (
	// CommandSequence prints how new this member's data is.
	CommandSequence = "sequence"
	// CommandStatus says whether it runs, and as what.
	CommandStatus = "status"
	// CommandStop stops it; stopping what is stopped succeeds.
	CommandStop = "stop"
	// CommandPrimary starts it as a primary.
	CommandPrimary = "primary"
	// CommandSeed starts it as the first of all. Optional: CommandPrimary.
	CommandSeed = "seed"
	// CommandSecondary starts it as a secondary. Optional: idle.
	CommandSecondary = "secondary"
	// CommandPromote turns a secondary into a primary. Optional: CommandPrimary.
	CommandPromote = "promote"
	// CommandDemote turns a primary into a secondary. Optional: CommandStop, then
	// CommandSecondary.
	CommandDemote = "demote"
	// CommandPreStop is run by the kubelet before it stops the container.
	CommandPreStop = "preStop"
)

// Annotations on a ReplicatedStatefulSet, each the name of one of its pods. The
// operator does what it says once, and then removes it.
const (
	// AnnotationSeedFrom seeds from this member whatever its sequence is and
	// whatever is not known of the others. What only others have is lost.
	AnnotationSeedFrom = Prefix + "seed-from"
	// AnnotationSwitchoverTo makes this member a primary in place of another.
	AnnotationSwitchoverTo = Prefix + "switchover-to"
)

// Annotations on pods.
const (
	// AnnotationTemplate is a hash of all that a pod must be recreated for. A pod
	// with another one than the StatefulSet's template has is out of date.
	AnnotationTemplate = Prefix + "template"
	// AnnotationContainer names the container in which commands run, for as long
	// as the pod lives: where the application was started, it is stopped too.
	AnnotationContainer = Prefix + "container"
	// AnnotationRules is a hash of the ConfigMaps of spec.ruleSelector.
	AnnotationRules = Prefix + "rules"
	// AnnotationConfigHash is a keyed hash of the ConfigMaps and Secrets that the pod
	// uses, since one of them changed that spec.updateOnEnvChange follows.
	AnnotationConfigHash = Prefix + "config-hash"
	// AnnotationInPlace says, while the pod is changed in place, to which revision of the
	// template, and since when. A pod that has it is out of date.
	AnnotationInPlace = Prefix + "in-place"
)

// AnnotationConfigRecord holds, on the StatefulSet, what that hash stands for, in JSON:
// nothing restarts for a change of it.
const AnnotationConfigRecord = Prefix + "config-record"

// AnnotationClosedAt says, on the budget of the members that are no primary, when it was
// closed last since a role was to be handed over: each handover writes the budget.
const AnnotationClosedAt = Prefix + "closed-at"

// Labels.
const (
	// LabelApp holds the name of the ReplicatedStatefulSet, on all its objects.
	LabelApp = "app"
	// LabelManaged is "true" on all objects of the operator.
	LabelManaged = "rss-operator-managed"
	// LabelActive is "true" on pods in which the application runs, as primary or
	// secondary, and "false" on others.
	LabelActive = "rss-active-member"
	// LabelRole is RolePrimary, RoleSecondary or RoleNone on pods.
	LabelRole = Prefix + "role"
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
	// FinalizerMember is on pods. It keeps a pod that may be running the
	// application visible until its containers have been seen stopped, so that
	// no second copy of the member starts beside it.
	FinalizerMember = Prefix + "member"
	// FinalizerStop is on ReplicatedStatefulSets. It keeps a deleted one until its
	// members were stopped in order, or until a deadline.
	FinalizerStop = Prefix + "stop-in-order"
)

// Condition types of a ReplicatedStatefulSet; all are always there.
const (
	// ConditionAvailable is True while as many primaries serve as are wanted: they
	// answer, and their pods are Ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while an operation is in progress; it names what
	// is waited for.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when there is a problem, or members are
	// missing.
	ConditionDegraded = "Degraded"
	// ConditionSeeded is True while the newest copy is in service.
	ConditionSeeded = "Seeded"
	// ConditionDataLossRisk is True while the newest copy ever recorded is out of
	// reach, or it is not known which is the newest; it names the members.
	ConditionDataLossRisk = "DataLossRisk"
	// ConditionPaused is True while the operator runs no command and changes no
	// number of pods.
	ConditionPaused = "Paused"
	// ConditionReady is True while the object is as its spec says: it serves, and
	// nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is True while it comes to be so by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while it does not before a person does something; it
	// says what.
	ConditionStalled = "Stalled"
	// ConditionDraining is True while a primary is on a cordoned Node, or its eviction was
	// asked for lately, and is to hand its role over before it is evicted; or any member is
	// and a primary is missing. It says what is waited for, or why no member can take the
	// role.
	ConditionDraining = "Draining"
	// ConditionMaintenance is True while spec.maintenance names members. It says who is
	// parked, what is waited for before another is, and how to end it.
	ConditionMaintenance = "Maintenance"
)

// Reasons of the conditions.
const (
	// ReasonOnTarget: as many members and primaries run as are wanted.
	ReasonOnTarget = "OnTarget"
	// ReasonBelowTarget: fewer run than are wanted.
	ReasonBelowTarget = "BelowTarget"
	// ReasonNotServing: a primary runs that serves nobody: its pod is not Ready, or its
	// command status does not answer.
	ReasonNotServing = "NotServing"
	// ReasonStopped: replicas is 0.
	ReasonStopped = "Stopped"

	// ReasonSteady: no operation in progress.
	ReasonSteady = "Steady"
	// ReasonWaitingForPods: pods do not run yet.
	ReasonWaitingForPods = "WaitingForPods"
	// ReasonWaitingForCommand: a command has not ended, or its end was not seen.
	ReasonWaitingForCommand = "WaitingForCommand"
	// ReasonWaitingForStop: a member that may be a primary is not known to have
	// stopped.
	ReasonWaitingForStop = "WaitingForStop"
	// ReasonSeeding: the newest copy is looked for or started.
	ReasonSeeding = "Seeding"
	// ReasonStarting: members are being started.
	ReasonStarting = "Starting"
	// ReasonStopping: members are being stopped.
	ReasonStopping = "Stopping"
	// ReasonHandingOver: one member takes the role of another.
	ReasonHandingOver = "HandingOver"
	// ReasonRecovering: failed members are being stopped or recreated.
	ReasonRecovering = "Recovering"
	// ReasonScaling: pods are being added or removed.
	ReasonScaling = "Scaling"
	// ReasonUpdating: members are being brought to the present template.
	ReasonUpdating = "Updating"
	// ReasonConfigChanged: members are about to be recreated for a change of a ConfigMap
	// or Secret that they use.
	ReasonConfigChanged = "ConfigChanged"
	// ReasonConfigTurn: that waits until others are over.
	ReasonConfigTurn = "ConfigRestartWaits"

	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec: the spec slipped past admission and cannot be served.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonMembersFailed: members failed and do not recover.
	ReasonMembersFailed = "MembersFailed"
	// ReasonMembersDegraded: members run, and do not answer to status any more, or
	// say by exit code 190 or 191 that they are degraded.
	ReasonMembersDegraded = "MembersDegraded"
	// ReasonMembersNotReady: the pods of secondaries have not been Ready for a minute.
	ReasonMembersNotReady = "MembersNotReady"
	// ReasonNodeUnreachable: what is waited for is on a Node that cannot be
	// reached, and only a person can say that its machine is off.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonMembersCannotStart: members cannot be created, scheduled, started or deleted.
	ReasonMembersCannotStart = "MembersCannotStart"
	// ReasonSecretMissing: a Secret of spec.TLS does not exist.
	ReasonSecretMissing = "SecretMissing"
	// ReasonForeignObject: an object of a needed name belongs to somebody else.
	ReasonForeignObject = "ForeignObject"
	// ReasonConfigMissing: a ConfigMap or Secret that the pods require does not exist, or
	// has not the key that they require.
	ReasonConfigMissing = "ConfigMissing"
	// ReasonConfigUnreadable: a ConfigMap or Secret that spec.updateOnEnvChange follows
	// cannot be read.
	ReasonConfigUnreadable = "ConfigUnreadable"
	// ReasonConfigCached: pods may have old contents of an immutable ConfigMap or Secret
	// that was deleted and created again.
	ReasonConfigCached = "ConfigCached"
	// ReasonRulesUnfollowed: spec.ruleSelector selects more than may be read.
	ReasonRulesUnfollowed = "RulesUnfollowed"
	// ReasonForeignPods: a pod has the name of a member, and was not made for the object.
	ReasonForeignPods = "ForeignPods"
	// ReasonWriteRefused: the API server refuses a write.
	ReasonWriteRefused = "WriteRefused"

	// ReasonSeeded: a member was seeded or found running.
	ReasonSeeded = "Seeded"
	// ReasonNotSeeded: no member has been started yet, or none since the last primary
	// stopped.
	ReasonNotSeeded = "NotSeeded"
	// ReasonSeedFailed: no member with the newest copy could be started.
	ReasonSeedFailed = "SeedFailed"
	// ReasonSequenceUnknown: members have not said how new their copies are.
	ReasonSequenceUnknown = "SequenceUnknown"

	// ReasonNewestMissing: the member with the newest copy is not there.
	ReasonNewestMissing = "NewestCopyMissing"
	// ReasonNewestPresent: the newest copy is at hand.
	ReasonNewestPresent = "NewestCopyPresent"
	// ReasonPrimaryNotCompared: a secondary was promoted without reading the sequence of the
	// primary before it, which may have been higher.
	ReasonPrimaryNotCompared = "FormerPrimaryNotCompared"

	// ReasonPausedByUser: spec.paused is true.
	ReasonPausedByUser = "PausedByUser"
	// ReasonReplicasTooLow: a stopped set is to come back with fewer members than
	// it had.
	ReasonReplicasTooLow = "ReplicasTooLow"
	// ReasonNotPaused: the operator acts.
	ReasonNotPaused = "NotPaused"

	// ReasonNotDraining: no primary that another could replace is on a cordoned Node.
	ReasonNotDraining = "NotDraining"
	// ReasonNoSuccessor: no member can take the role of a primary that is to leave its
	// Node, or that is in spec.maintenance.
	ReasonNoSuccessor = "NoSuccessor"
	// ReasonPrimaryMissing: members are to leave their Nodes, and none may be evicted
	// while a primary is missing.
	ReasonPrimaryMissing = "PrimaryMissing"
	// ReasonEvictionAllowed: spec.evictionTimeout is over, and members that are to leave
	// their Nodes may be evicted, a primary too although no other member has its role.
	ReasonEvictionAllowed = "EvictionAllowed"

	// ReasonNoMaintenance: spec.maintenance is empty.
	ReasonNoMaintenance = "NoMaintenance"
	// ReasonParked: all members of spec.maintenance are parked.
	ReasonParked = "Parked"
	// ReasonNoSuchMember: spec.maintenance names none that is a member now.
	ReasonNoSuchMember = "NoSuchMember"
)

// Reasons of events.
const (
	// EventHandingOver: a primary hands its role over; the note says why, and who can take
	// it.
	EventHandingOver = "HandingOver"
	// EventNoSuccessor: a primary is to leave its Node or is in spec.maintenance, and no
	// member can take its role; the note says why.
	EventNoSuccessor = "NoSuccessor"
	// EventMemberParked: no command but status and sequence is run in a member any more,
	// as spec.maintenance says.
	EventMemberParked = "MemberParked"
	// EventMemberUnparked: a member is in spec.maintenance no more, or became primary by
	// another's hand.
	EventMemberUnparked = "MemberUnparked"
	// EventForeignPod: a pod that is no member had the labels of one, and lost them.
	EventForeignPod = "ForeignPod"
	// EventMemberAdded: a member came with a scale-up.
	EventMemberAdded = "MemberAdded"
	// EventMemberRemoved: a member went with a scale-down.
	EventMemberRemoved = "MemberRemoved"
	// EventMemberReplaced: a pod was deleted to be recreated; the note says why.
	EventMemberReplaced = "MemberReplaced"
	// EventMemberUpdated: a pod was recreated with the present template, or brought to it in
	// place.
	EventMemberUpdated = "MemberUpdated"
	// EventConfigFollowed: from now on members are recreated when what they use changes.
	EventConfigFollowed = "ConfigFollowed"
	// EventConfigRestart: members are recreated, since what they use changed.
	EventConfigRestart = "ConfigRestart"
	// EventConfigKeyChanged: the operator has another key for its hashes; nothing else
	// changed.
	EventConfigKeyChanged = "ConfigKeyChanged"
	// EventConfigKeyLost: the operator has another key for its hashes, and there were
	// edits meanwhile, so that members are recreated.
	EventConfigKeyLost = "ConfigKeyLost"
	// EventNotInPlace: the resources of a pod could not be changed in place, and its member
	// is recreated; the note says why.
	EventNotInPlace = "NotInPlace"
	// EventMemberFailed: a member failed; the note says what it answered.
	EventMemberFailed = "MemberFailed"
	// EventMemberStarted: a member was started.
	EventMemberStarted = "MemberStarted"
	// EventMemberStopped: a member was stopped.
	EventMemberStopped = "MemberStopped"
	// EventSeeded: a member was seeded.
	EventSeeded = "Seeded"
	// EventPromoted: a member became primary.
	EventPromoted = "Promoted"
	// EventPrimaryNotCompared: a secondary was promoted without reading the sequence of the
	// primary before it, which may have been higher.
	EventPrimaryNotCompared = "FormerPrimaryNotCompared"
	// EventNotPromoted: a member that was told to become primary, and may have, is none.
	EventNotPromoted = "NotPromoted"
	// EventCommandNotSent: a command was not sent; the note says why.
	EventCommandNotSent = "CommandNotSent"
	// EventCommandEnded: a command ended with its container, and nobody knows what it
	// did.
	EventCommandEnded = "CommandEnded"
	// EventDemoted: a member is no longer primary.
	EventDemoted = "Demoted"
	// EventRoleChanged: a member changed its role by itself.
	EventRoleChanged = "RoleChanged"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy changed it back; it is tried again within 10 minutes.
	EventWriteUndone = "WriteUndone"
	// EventOverrideUsed: an order was obeyed: an annotation, which was removed, or
	// spec.switchoverTo or spec.seedFrom.
	EventOverrideUsed = "OverrideUsed"
	// EventOverrideRefused: an order was not obeyed: an annotation, which was removed, or
	// spec.switchoverTo or spec.seedFrom. The note says why, and what was done for it before.
	EventOverrideRefused = "OverrideRefused"
)
