package facts

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Facts is the input of all rules: a world and everything derived from it. Derive creates it once
// per pass. Rules do not change it.
type Facts struct {
	*World
	// Members are those of the world, with the derived facts of each.
	Members
	// Observed is the part of the world by which the record was updated.
	Observed *record.Observed
	// Record is the record in the status, updated from the world.
	Record record.Record
	// WantedAgent is the agent that the pods should have. It is nil if the set needs none, or the
	// operator does not maintain its children.
	WantedAgent *v1alpha1.AgentStatus
}

// World is a snapshot of the cluster and the complete input of a decision.
type World struct {
	Clock
	// Live is true if the world was read past the cache. A plan for a cached world may only send
	// queries.
	Live bool
	Set  *v1alpha1.ReplicatedStatefulSet
	// Invalid states why the spec cannot be served. It is "" if it can.
	Invalid string
	// NamespaceTerminating is true while the namespace is being deleted.
	NamespaceTerminating bool

	Stateful *appsv1.StatefulSet        // nil if there is none
	Services map[string]*corev1.Service // by name
	// Budget covers all members, or those that are not primary. PrimaryBudget covers the primaries.
	Budget, PrimaryBudget *policyv1.PodDisruptionBudget

	Members []*Member // pods of the set, by ordinal
	// MislabeledPods are pods with our labels that are not members. observe limits their number.
	MislabeledPods []*corev1.Pod
	// Claims are the claims of the members, by name. They are read only while they may have to
	// grow.
	Claims map[string]*corev1.PersistentVolumeClaim
	// LeftClaims are the claims with our labels. They are read only when the object and its claims
	// are being deleted and all pods are gone.
	LeftClaims []*corev1.PersistentVolumeClaim
	// MembersWithClaims is the number of members that have claims. It is read only for a stopped
	// set whose former number of members is unknown.
	MembersWithClaims int32
	// Rules is a hash of the ConfigMaps of spec.ruleSelector.
	Rules string
	// WhyRulesIgnored states why the ConfigMaps of spec.ruleSelector are not followed. It is "" if
	// they are.
	WhyRulesIgnored string
	// Config is the configuration stamp that the StatefulSet must have for the ConfigMaps and
	// Secrets that the pods use.
	Config configFacts
	// Revisions are the templates of members to be resized in place, and the template to resize
	// them to, by revision name. Only a live world has them.
	Revisions map[string]*corev1.PodTemplateSpec
	// Agent is the agent of the operator, for a set with spec.application. Its image is "" if it is
	// unknown, and WhyNoAgent states why. The pods have that of status.agent.
	Agent      v1alpha1.AgentStatus
	WhyNoAgent string
	// Fencing has the Leases of the members.
	Fencing fencingFacts
	// MissingSecrets are the Secrets of spec.TLS and spec.application that do not exist.
	MissingSecrets []string
	// LossAt is when this process last saw a grant disappear, or first saw the set. Sequences of
	// secondaries that were read before are outdated.
	LossAt time.Time
	// LossOf is the UID of the pod that had this grant. It is "" if this process has seen no grant
	// disappear, or several at once.
	LossOf types.UID
	// LossPod is the name of that pod. The name may belong to a replacement pod now.
	LossPod string
	// LossProven is true if the member in that pod was stopped when another member was known to have all
	// of its data. It stays true after the pod was recreated.
	LossProven bool
	// StatefulSince is when this process first saw the current generation of the StatefulSet.
	StatefulSince time.Time
	// RefusedDryRun is the last dry run of a create that the API server refused.
	RefusedDryRun RefusedDryRun
	// RequestedAt is when this process first saw the current switchover annotation.
	RequestedAt time.Time
	// Refused is the error message of the last write that the API server refused.
	Refused string
	// Mended is when each child was last patched, by ChildKey.
	Mended map[string]time.Time
	// Undone are the writes that an admission webhook or policy reverted.
	Undone undone.Held
	// ClosedAt is the value of the budget's annotation when this process last closed the budget for
	// a handover.
	ClosedAt string
	// Causes are the reasons why members do not start. They are reported to users.
	Causes causes.Hindrances
}

// Clock contains the times that a decision uses.
type Clock struct {
	Now time.Time
	// Took is how long it took to read the world.
	Took time.Duration
	// Watch returns the time in which this process could observe the cluster. Deadlines after which
	// a member counts as failed or is given up count only this time.
	Watch leadership.Watch
}

// configFacts are the consequences of the configuration for the StatefulSet.
type configFacts struct {
	// Target is the stamp that the StatefulSet must have.
	Target configuration.Target
	// Fresh is the stamp for members that are recreated for another reason. It is zero if it would
	// not differ.
	Fresh configuration.Stamp
	// Cached names the pods that may have old contents of an immutable ConfigMap or Secret. It is
	// "" if there are none.
	Cached string
}

// Member is a pod with its observed and derived facts.
type Member struct {
	Pod     *corev1.Pod
	Ordinal int
	Node    nodestate.Facts
	// EvictionAt is when its eviction was last requested, according to the eviction book.
	EvictionAt time.Time
	// Owned is true if the pod belongs to this object by its owner references and was created for
	// it (see World.WhyForeign). Commands run only in owned pods.
	Owned bool
	// CommandsIn is the name of the container in which commands run.
	CommandsIn string
	// Busy is the command that this process runs in the pod now.
	Busy *podexec.Command
	// Results are the latest result of each command that this process ran in the pod, by name. Said
	// are the latest results with a known outcome. An attempt without a response changes only
	// Results.
	Results, Said map[string]podexec.Result
	// UnknownResults are the new results with an unknown outcome.
	UnknownResults []podexec.Result
	// Tries is the number of consecutive unknown outcomes of each command.
	Tries map[string]int
	// Missed is the number of consecutive status commands in the running container whose end was
	// not seen although the API server answered.
	Missed int
	// AskedAt is when the first of the unanswered status commands was sent to the running
	// container. It is zero if the last one was answered. UnansweredOnRecord is true if
	// status.unanswered of the object has the time, written by this process or a previous one.
	AskedAt            time.Time
	UnansweredOnRecord bool
	// ResizeRefused is the last resize of the pod that the API server refused.
	ResizeRefused RefusedResize
	// FencedSince is when this process first saw that the container counts as ended with its Lease although
	// the kubelet reports that it runs. It is zero otherwise.
	FencedSince time.Time
	// Touched is when this process last saw a change of the pod's container or readiness.
	Touched time.Time

	derived // set by Derive
}

// Name returns the name of the pod.
func (m *Member) Name() string { return m.Pod.Name }

// Members are the pods of a set, sorted by ordinal.
type Members []*Member

// derived are the facts of one member that Derive computes from the world and the record.
type derived struct {
	// State is the state of the application. Shown is the state that is reported to users: the
	// same, or while State is unknown, the last reported one.
	State, Shown record.State
	// Command is the command on record in the pod, and Failure the recent failure. Both are nil if
	// there is none.
	Command *v1alpha1.RunningCommand
	Failure *v1alpha1.Failure
	// Granted is true if any container of the pod has a grant. GrantedHere is true if the running
	// container has one.
	Granted, GrantedHere bool
	// PoweredOff is true if an administrator declared the machine off. Fenced is true if the pod
	// also cannot start after the machine is on again, because the pod is terminating or has ended.
	PoweredOff, Fenced bool
	// ShouldLeaveNode is true if the member should leave its Node: the Node is cordoned, or an
	// eviction was requested recently.
	ShouldLeaveNode bool
	// UpToDate is true if the pod was created from the current template or updated to it in place.
	UpToDate bool
	// OnRecord is true if a grant or a command of the pod is on record: in the stored status, or a
	// grant in the updated record. Such a pod is a member regardless of its owner.
	OnRecord bool
	// WhyForeign states why the pod was not created for this set. It is "" if no reason is found.
	WhyForeign string
	// Version is the version of the member's copy.
	Version version
	// ScaledDown is true if the member is above the wanted number and will be removed. Retained is
	// true if it is above the wanted number, but stays until another member has its data.
	Retained, ScaledDown bool
	// Membership is the membership of the member in the application.
	Membership v1alpha1.Membership
	// MustLeave is true if command leave must succeed before the member is removed. MustRejoin is
	// true if the member stays, and leave was sent to it since its last start.
	MustLeave, MustRejoin bool
	// Listed is true if the member is in spec.maintenance. Parked is true if the operator sends it
	// no mutating command, so that a user can work on it.
	Listed, Parked bool
	// CannotRunHere is true if the member may not be started in this pod, because the exit code of
	// a command reported that it cannot work there.
	CannotRunHere bool
	// RetryAt is when the member may be started again after failed starts or stops.
	RetryAt time.Time
	// NotAnswering is true if the member runs, and status has not answered for AnswersWithin.
	NotAnswering bool
	// ReadyChangedAt is when the pod became Ready or not Ready in its role: not before the start of its
	// container, its last command and its grant.
	ReadyChangedAt time.Time
	// WhyNotStartable is the message of the first of startChecks that fails. It is "" if the member
	// may be started or take a role.
	WhyNotStartable string
}

// version describes how new a member's copy is, as reported by its command sequence after the loss
// of the last primary.
type version struct {
	Sequence uint64
	// Answered is true if no response has to be waited for: there is a current one, or sequence was
	// sent UnresponsiveAfter times without a response. Known is true if a current response is a
	// number.
	Answered, Known bool
	// Current is false if sequence must be sent, or sent again.
	Current bool
}

// RefusedResize is a resize that the API server refused: its revision, and the error message.
type RefusedResize struct{ Revision, Text string }

// RefusedDryRun is a dry run that the API server refused: the error message, and the time.
type RefusedDryRun struct {
	Text string
	At   time.Time
}

// IsRecent reports whether the refusal is recent enough that no new dry run is made.
func (t RefusedDryRun) IsRecent(now time.Time) bool {
	return t.Text != "" && now.Before(t.At.Add(spec.TrialPause))
}

// Notice is the reason and message of a condition. It is empty if there is none.
type Notice = engine.Notice
