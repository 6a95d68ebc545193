package v1alpha1

// Labels of the operator on the pods and claims of a StatefulCluster. They select the objects that
// the operator caches. The controller owner reference of a pod determines membership, never a
// label.
const (
	// LabelCluster is the name of the StatefulCluster.
	LabelCluster = "enge.me/cluster"
	// LabelClusterUID is the UID of the StatefulCluster, so that an object recreated with the same
	// name does not take over the objects of the old one.
	LabelClusterUID = "enge.me/cluster-uid"
	// LabelMember is the ID of the member: 10 characters of lower-case base32.
	LabelMember = "enge.me/member"
	// LabelRetained is the reason why a claim was set aside: Deleted, Scaled or Lost. A claim with
	// it is never attached again.
	LabelRetained = "enge.me/retained"
)

// Annotations of the operator on pods.
const (
	// AnnotationDeleteFirst set to "true" on a pod makes it the first to be deleted by a
	// scale-down.
	AnnotationDeleteFirst = "enge.me/delete-first"
	// AnnotationReplaces is the name of the lost member whose slot this member fills.
	AnnotationReplaces = "enge.me/replaces"
	// AnnotationReplacements counts the successive replacements in this slot. The delay before the
	// next one increases with it, up to an hour.
	AnnotationReplacements = "enge.me/replacements"
	// AnnotationUpdated marks a pod that was recreated with the same name. The value is the reason:
	// Update or Eviction. After an update, the pod is not lost for being unready until it was
	// Ready.
	AnnotationUpdated = "enge.me/updated"
	// AnnotationInPlace has the pending changes during an in-place update.
	AnnotationInPlace = "enge.me/in-place"
	// AnnotationRestarts is the restart count of a pod's containers at the start of an in-place
	// update. Later restarts count against the new template.
	AnnotationRestarts = "enge.me/restarts-before"
)

// AnnotationAdopt is an annotation of a claim that was restored or that belonged to a set of the
// same name. Its value is the name of the StatefulCluster that may adopt the claim. It is set by a
// user who may write the claim, and removed when the claim is adopted.
const AnnotationAdopt = "enge.me/adopt"

// AnnotationRetention is the retention policy at the moment when the claim was set aside: Retain or
// Delete.
const AnnotationRetention = "enge.me/retention"

// AnnotationRevisionReady marks a ControllerRevision that had a Ready member. Only members of such
// a revision are lost for being unready.
const AnnotationRevisionReady = "enge.me/revision-ready"

// AnnotationRevisionProven marks a ControllerRevision that had a Ready member for 10 minutes:
// restarts of containers no longer count against its template.
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
	// ConditionDegraded is True if there is a problem, or an operation is blocked.
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
	// ReasonAllAvailable: every wanted member is available.
	ReasonAllAvailable = "AllMembersAvailable"
	// ReasonMembersUnavailable: fewer members than wanted are available.
	ReasonMembersUnavailable = "MembersUnavailable"

	// ReasonComplete: no operation is in progress.
	ReasonComplete = "Complete"
	// ReasonScaling: members are being created or retired.
	ReasonScaling = "Scaling"
	// ReasonReplacing: lost members are being replaced.
	ReasonReplacing = "Replacing"
	// ReasonUpdating: members are being updated to the update revision.
	ReasonUpdating = "Updating"
	// ReasonDraining: members are on cordoned Nodes, and are retired when new ones are available.
	ReasonDraining = "Draining"
	// ReasonWaiting: members are not Ready yet, and no other operation is in progress.
	ReasonWaiting = "WaitingForMembers"

	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec: the spec passed admission but is invalid.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonWriteRefused: the API server refuses a pod or a claim.
	ReasonWriteRefused = "WriteRefused"
	// ReasonReplacementHeld: more members are lost than may be replaced at the same time.
	ReasonReplacementHeld = "ReplacementHeld"
	// ReasonRevisionFailing: members of a revision do not become Ready. They are not replaced,
	// because new ones would fail in the same way.
	ReasonRevisionFailing = "RevisionFailing"
	// ReasonDrainBlocked: members stay on cordoned Nodes, because no new one can be created before.
	ReasonDrainBlocked = "DrainBlocked"
	// ReasonMembersNotReady: no member is Ready although some were, or members have not been Ready
	// for a long time and the spec sets no deadline for that.
	ReasonMembersNotReady = "MembersNotReady"
	// ReasonMembersCannotStart: members cannot be created, scheduled, started or deleted.
	ReasonMembersCannotStart = "MembersCannotStart"
	// ReasonNoMemberReady: members are lost and kept, because no member is Ready.
	ReasonNoMemberReady = "NoMemberReady"
	// ReasonForeignPods: pods that are not members have the selector's labels.
	ReasonForeignPods = "ForeignPods"
	// ReasonOrphanedPods: pods with claims of members have no owner, and it is unknown
	// whether they were members.
	ReasonOrphanedPods = "OrphanedPods"
	// ReasonRestoredClaims: the set was restored with claims, and waits until a user confirms
	// whether the claims belong to it.
	ReasonRestoredClaims = "RestoredClaims"
	// ReasonUnrecordedClaims: claims that may belong to the set are kept, independent of the
	// retention policy, because they are not in status.claims.
	ReasonUnrecordedClaims = "UnrecordedClaims"
	// ReasonClaimResizeRefused: a claim cannot be expanded.
	ReasonClaimResizeRefused = "ClaimResizeRefused"
)

// Reasons of events, and of the entries of status.lost.
const (
	// EventMemberCreated: members were created.
	EventMemberCreated = "MemberCreated"
	// EventMemberLost: members were lost. The note has the reason.
	EventMemberLost = "MemberLost"
	// EventMemberRetired: members were retired by a scale-down, by an update with a surge, or
	// because their Node is cordoned.
	EventMemberRetired = "MemberRetired"
	// EventMemberUpdated: members were updated to a new revision.
	EventMemberUpdated = "MemberUpdated"
	// EventForeignPod: pods that are no members had the labels of one, and lost them.
	EventForeignPod = "ForeignPod"
	// EventReplacementHeld: replacements wait for replacement.maxConcurrent.
	EventReplacementHeld = "ReplacementHeld"
	// EventWriteRefused: the API server refused a write. It is retried.
	EventWriteRefused = "WriteRefused"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy reverted it. It is retried within 10 minutes.
	EventWriteUndone = "WriteUndone"
)

// LossReason is why a member is lost.
type LossReason string

// The reasons why a member is lost.
const (
	// LossDeleted: another client deleted the pod.
	LossDeleted LossReason = "PodDeleted"
	// LossEvicted: the pod was evicted through the API, for example by a drain.
	LossEvicted LossReason = "PodEvicted"
	// LossFailed: the pod ended.
	LossFailed LossReason = "PodFailed"
	// LossNodeGone: the Node object of the pod is missing.
	LossNodeGone LossReason = "NodeGone"
	// LossNodeOutOfService: the Node is tainted node.kubernetes.io/out-of-service.
	LossNodeOutOfService LossReason = "NodeOutOfService"
	// LossNodeNotReady: the Node was not Ready for replacement.nodeLostSeconds.
	LossNodeNotReady LossReason = "NodeNotReady"
	// LossUnready: the pod was once Ready, and has not been Ready for replacement.unreadySeconds.
	LossUnready LossReason = "Unready"
	// LossStartup: the pod was not Ready within replacement.startupSeconds.
	LossStartup LossReason = "StartupDeadline"
	// LossPending: the pod was unschedulable for replacement.pendingSeconds.
	LossPending LossReason = "Unschedulable"
	// LossClaimGone: a claim of a member that has run is missing.
	LossClaimGone LossReason = "ClaimGone"
)
