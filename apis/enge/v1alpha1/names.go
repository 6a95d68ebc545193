package v1alpha1

// Labels of the operator on the pods and claims of a StatefulCluster. They
// select what the operator caches; membership itself is the controller owner
// reference of the pod, never a label.
const (
	// LabelCluster holds the name of the StatefulCluster.
	LabelCluster = "enge.me/cluster"
	// LabelClusterUID holds the UID of the StatefulCluster, so that an object
	// recreated under the same name does not take over what its namesake left.
	LabelClusterUID = "enge.me/cluster-uid"
	// LabelMember holds the id of the member: 10 characters of lower-case base32.
	LabelMember = "enge.me/member"
	// LabelRetained says on a claim why it was set aside: Deleted, Scaled or
	// Lost. A claim with it is never attached again.
	LabelRetained = "enge.me/retained"
)

// Annotations of the operator on pods.
const (
	// AnnotationDeleteFirst set to "true" on a pod makes it the first to go
	// when the set is scaled down.
	AnnotationDeleteFirst = "enge.me/delete-first"
	// AnnotationReplaces names the lost member whose slot this member fills.
	AnnotationReplaces = "enge.me/replaces"
	// AnnotationReplacements counts the successive replacements in this slot;
	// the next one waits the longer, up to an hour.
	AnnotationReplacements = "enge.me/replacements"
	// AnnotationUpdated marks a pod that was recreated under its name, and says
	// why: Update or Eviction. After an update, unreadiness does not count
	// against it until it was Ready.
	AnnotationUpdated = "enge.me/updated"
	// AnnotationInPlace holds, while an in-place update runs, what it waits for.
	AnnotationInPlace = "enge.me/in-place"
	// AnnotationRestarts holds how often the containers of a pod had been
	// restarted when an in-place update reached it. Later restarts speak against
	// the new template.
	AnnotationRestarts = "enge.me/restarts-before"
)

// AnnotationAdopt holds, on a claim that was restored or that a set of the same name left,
// the name of the StatefulCluster that may have it. Who may write the claim sets it, and it
// goes when the claim is taken.
const AnnotationAdopt = "enge.me/adopt"

// AnnotationRetention holds, on a claim that was set aside, what the retention
// policy said at that moment: Retain or Delete.
const AnnotationRetention = "enge.me/retention"

// AnnotationRevisionReady marks a ControllerRevision of which a member was
// Ready; unreadiness counts only against members of such a revision.
const AnnotationRevisionReady = "enge.me/revision-ready"

// AnnotationRevisionProven marks a ControllerRevision of which a member was Ready for
// 10 minutes: restarts of containers no longer speak against its template.
const AnnotationRevisionProven = "enge.me/revision-proven"

// Values of LabelRetained.
const (
	// RetainedDeleted marks a claim whose StatefulCluster was deleted.
	RetainedDeleted = "Deleted"
	// RetainedScaled marks a claim whose member was retired by a scale-down.
	RetainedScaled = "Scaled"
	// RetainedLost marks a claim whose member was lost.
	RetainedLost = "Lost"
)

// Condition types of a StatefulCluster.
const (
	// ConditionAvailable is True when all wanted members are available.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while members are created, replaced,
	// updated or retired.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when there is a problem, or something is held back.
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
	// ReasonAllAvailable: every wanted member is available.
	ReasonAllAvailable = "AllMembersAvailable"
	// ReasonMembersUnavailable: fewer members than wanted are available.
	ReasonMembersUnavailable = "MembersUnavailable"

	// ReasonComplete: nothing is left to do.
	ReasonComplete = "Complete"
	// ReasonScaling: members are being created or retired.
	ReasonScaling = "Scaling"
	// ReasonReplacing: lost members are being replaced.
	ReasonReplacing = "Replacing"
	// ReasonUpdating: members are being brought to the update revision.
	ReasonUpdating = "Updating"
	// ReasonDraining: members are on cordoned Nodes, and go when new ones are available.
	ReasonDraining = "Draining"
	// ReasonWaiting: members are not Ready yet, and nothing else is to be done.
	ReasonWaiting = "WaitingForMembers"

	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec: the spec slipped past admission and cannot be served.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonCreateFailing: the API server refuses a pod or a claim.
	ReasonCreateFailing = "WriteRefused"
	// ReasonReplacementHeld: more members are lost than may be replaced at once.
	ReasonReplacementHeld = "ReplacementHeld"
	// ReasonRevisionFailing: members of a revision do not become Ready; they
	// are not replaced, because new ones would fail the same way.
	ReasonRevisionFailing = "RevisionFailing"
	// ReasonDrainBlocked: members stay on cordoned Nodes, because no new one can be there
	// before them.
	ReasonDrainBlocked = "DrainBlocked"
	// ReasonMembersNotReady: no member is Ready though some were, or members are
	// not Ready for long and the spec sets no deadline for that.
	ReasonMembersNotReady = "MembersNotReady"
	// ReasonMembersCannotStart: members cannot be created, scheduled, started or deleted.
	ReasonMembersCannotStart = "MembersCannotStart"
	// ReasonNoMemberReady: members are lost and kept, because no member is Ready.
	ReasonNoMemberReady = "NoMemberReady"
	// ReasonForeignPods: pods that are not members carry the selector's labels.
	ReasonForeignPods = "ForeignPods"
	// ReasonOrphanedPods: pods with claims of members have no owner, and it is unknown
	// whether they were members.
	ReasonOrphanedPods = "OrphanedPods"
	// ReasonRestoredClaims: the set was restored with claims, and waits until a person says
	// whether they are its own.
	ReasonRestoredClaims = "RestoredClaims"
	// ReasonUnrecordedClaims: claims that look like the set's are kept, whatever the
	// retention policy says, since they are not in status.claims.
	ReasonUnrecordedClaims = "UnrecordedClaims"
	// ReasonClaimResize: a claim cannot be expanded.
	ReasonClaimResize = "ClaimResizeRefused"
)

// Reasons of events, and of the entries of status.lost.
const (
	// EventMemberCreated: members were created.
	EventMemberCreated = "MemberCreated"
	// EventMemberLost: members were lost; the note says why.
	EventMemberLost = "MemberLost"
	// EventMemberRetired: members were retired by a scale-down, a surge update, or because
	// their Node is cordoned.
	EventMemberRetired = "MemberRetired"
	// EventMemberUpdated: members were brought to a new revision.
	EventMemberUpdated = "MemberUpdated"
	// EventReplacementHeld: replacements wait for replacement.maxConcurrent.
	EventReplacementHeld = "ReplacementHeld"
	// EventWriteRefused: the API server refused a write; it is tried again.
	EventWriteRefused = "WriteRefused"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy changed it back; it is tried again within 10 minutes.
	EventWriteUndone = "WriteUndone"
)

// LossReason says why a member counts as lost.
type LossReason string

// The reasons why a member counts as lost.
const (
	// LossDeleted: somebody else deleted the pod.
	LossDeleted LossReason = "PodDeleted"
	// LossEvicted: the pod was evicted through the API, as a drain does.
	LossEvicted LossReason = "PodEvicted"
	// LossFailed: the pod ended.
	LossFailed LossReason = "PodFailed"
	// LossNodeGone: the Node object of the pod is gone.
	LossNodeGone LossReason = "NodeGone"
	// LossNodeOutOfService: the Node is tainted node.kubernetes.io/out-of-service.
	LossNodeOutOfService LossReason = "NodeOutOfService"
	// LossNodeNotReady: the Node was not Ready for replacement.nodeLostSeconds.
	LossNodeNotReady LossReason = "NodeNotReady"
	// LossUnready: the pod was Ready once and is not for replacement.unreadySeconds.
	LossUnready LossReason = "Unready"
	// LossStartup: the pod was not Ready within replacement.startupSeconds.
	LossStartup LossReason = "StartupDeadline"
	// LossPending: the pod was unschedulable for replacement.pendingSeconds.
	LossPending LossReason = "Unschedulable"
	// LossClaimGone: a claim of a member that has run is gone.
	LossClaimGone LossReason = "ClaimGone"
)
