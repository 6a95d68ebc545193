package facts

import (
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Facts is the input of rules and conditions: the world that a pass has read, and
// everything that Derive computes from it, once per pass. Afterwards it is read-only.
type Facts struct {
	*World
	// Blockers are the pods that may be running a program, oldest first.
	Blockers []*Member
	// Waiting are the pods that wait for a grant, next one first.
	Waiting []*Member
	// Active is the pod that may run its program: the holder, or else the oldest blocker;
	// nil if there are no blockers.
	Active *Member
	// Started are the blockers whose program has started, or may have started on an
	// unreachable Node.
	Started []*Member
	// Leaving is the active pod if its Node is cordoned and it has to hand over to a pod on
	// another Node; nil otherwise.
	Leaving *Member
	// Handover is true while a handover is in progress.
	Handover bool
	// Late is true if the handover has exceeded spec.maxTransitionTime.
	Late bool
}

// verdict is the part of a member that Derive computes.
type verdict struct {
	// Standing is the state of the pod.
	Standing standing
	// Holder is true for the pod named in status.holder.
	Holder bool
	// HoldsLease is true for the pod that the Lease names.
	HoldsLease bool
	// Fenced is true if that pod has not renewed the Lease in time.
	Fenced bool
	// CrashLoops is true if that pod's program ends again and again, and another pod takes over.
	CrashLoops bool
	// Tried is true if its program was in a crash loop, and crash loops are handed over: no other pod
	// is stopped for this one.
	Tried bool
	// PoweredOff is true for a pod whose machine is off.
	PoweredOff bool
	// Replaced is true if no other pod may be deleted for this one, because onTimeout has
	// already deleted a pod of the same owner and revision (see wasReplaced).
	Replaced bool
	// GateSteady is true if the gate has been running for GateSteadyAfter, so that the kubelet
	// would show it a grant at once.
	GateSteady bool
}

// standing is the state of a pod, see doc.go.
type standing uint8

const (
	// Out is a pod that has stopped, that will never run its program, or that the guarantee
	// does not cover.
	Out standing = iota
	// waits is a pod that can be granted.
	waits
	// mayRun is a pod that may be running its program, or may start it at any time.
	mayRun
)

// World is the input of decisions. It is read from the API server, except for Nodes without
// problems and for other objects of this kind, which are read from the cache. Otherwise
// caches only trigger a pass.
type World struct {
	Now time.Time
	// Watch records when this process could observe the cluster.
	Watch leadership.Watch
	// FirstSeen is when this process first saw the object.
	FirstSeen time.Time
	// MirrorGone is when the last known static pod went missing; zero if none is missing.
	MirrorGone time.Time
	// Object is the StatefulSingleton; nil if it is gone.
	Object *v1.StatefulSingleton
	// Invalid is the reason why the spec cannot be served; "" if it can.
	Invalid string
	// BeyondLimit is true if the namespace has too many older objects.
	BeyondLimit bool
	// Rivals are the objects of the namespace whose selectors overlap.
	Rivals []*v1.StatefulSingleton
	// Pods are the pods that match the selector, that carry the object's name, or that
	// status.holder names, oldest first. They include ended pods.
	Pods []*Member
	// NamespaceGoes is true while the namespace is terminating.
	NamespaceGoes bool
	// Wrapper is the ConfigMap with the script of gate mode Script; nil if there is none.
	Wrapper *corev1.ConfigMap
	// Budget is the object with the name of our PodDisruptionBudget; nil if there is none.
	Budget *policyv1.PodDisruptionBudget
	// Lease is the Lease of the object; nil if there is none, or if it is not used. LeaseSince is when
	// this process first saw its version, or that it is missing. LeaseProblem is why it cannot be used.
	Lease        *coordinationv1.Lease
	LeaseSince   time.Time
	LeaseProblem engine.Notice
	// Role and RoleBinding allow the pods to renew the Lease; nil if they are missing or not used.
	Role        *rbacv1.Role
	RoleBinding *rbacv1.RoleBinding
	// Unguarded is the reason why the API server does not reject pods without the gate;
	// empty if it does.
	Unguarded engine.Notice
	// RefusedOwners are owners whose pods the API server refused. OwnersDue is when to
	// search for such owners again.
	RefusedOwners []Object
	OwnersDue     time.Time
	// Refused is the API server's message about the last write that it refused.
	Refused string
	// Undone are the writes that an admission webhook or policy reverted.
	Undone undone.Held
	// Delay is the reason why the pod whose turn it is does not run.
	Delay Delay
}

// Member is a pod and the facts known about it.
type Member struct {
	Pod *corev1.Pod
	// Gated is true if the program cannot start without a grant.
	Gated bool
	// Leased is true if an agent runs the program while the Lease names the pod.
	Leased bool
	// Program are the names of the containers of the program.
	Program []string
	// Lacks are the names in spec.containers that the pod does not have.
	Lacks []string
	// Node is the state of the pod's Node.
	Node nodestate.Facts
	// Family describes the owner of the pod.
	Family Family
	// AtGateSince is when this process first saw the gate running; zero if it is not running.
	AtGateSince time.Time
	// Claims are the claims that the pod shares with other pods. The value is the access
	// mode if it is restrictive, ReadWriteOnce or ReadWriteOncePod, else "".
	Claims map[string]corev1.PersistentVolumeAccessMode

	verdict // set by Derive
}

// Delay is the reason why the pod whose turn it is does not run.
type Delay struct {
	causes.Found
	// What describes the pod in messages.
	What string
	// Pod is the name of the pod; "" if it was not created.
	Pod string
	// Unread is true while the events that may contain the reason have not been read.
	Unread bool
	// Again is the delay until the reasons are read again; zero if they are not.
	Again time.Duration
}

// LackingOwner is an owner whose pod the API server refused, and the schedule for reading
// its events.
type LackingOwner struct {
	Owner   Object
	Refusal causes.Turns[string]
}

// Unread reports whether a part of the object cannot be decoded. In this case nothing else
// was read.
func (w *World) Unread() bool { return w.Object != nil && spec.UnreadParts(w.Object).Any() }

// LacksPods reports whether an owner has fewer pods than it wants, and this object selects
// its pods.
func (w *World) LacksPods(template *corev1.PodTemplateSpec, have int32, want *int32) bool {
	return have < ptr.Deref(want, 1) && spec.Selects(w.Object, spec.LabelsOf(template))
}

// MendedWrapper returns the corrected ConfigMap; nil if it is correct. Additions by others
// are kept. A ConfigMap of another client is not changed, because no pod depends on it.
func (w *World) MendedWrapper(want *corev1.ConfigMap) *corev1.ConfigMap {
	if w.Wrapper.DeletionTimestamp != nil || w.isForeignWrapper() {
		return nil
	}
	mended := w.Wrapper.DeepCopy()
	mended.Labels = children.Merged(mended.Labels, want.Labels)
	mended.Data = children.Merged(mended.Data, want.Data)
	if !slices.ContainsFunc(mended.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.Object.UID }) {
		mended.OwnerReferences = append(mended.OwnerReferences, want.OwnerReferences...)
	}
	owned := len(mended.OwnerReferences) == len(w.Wrapper.OwnerReferences)
	if owned && maps.Equal(mended.Labels, w.Wrapper.Labels) && maps.Equal(mended.Data, w.Wrapper.Data) {
		return nil
	}
	return mended
}

// isForeignWrapper reports whether another client created the ConfigMap.
func (w *World) isForeignWrapper() bool {
	if w.Wrapper.Labels[v1.LabelManagedBy] == v1.ManagedBy {
		return false
	}
	return !slices.ContainsFunc(w.Wrapper.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSingleton" })
}

// Family describes the owner of a pod. The zero value is used if the owner is gone or was
// not read, and for pods of a DaemonSet or Job.
type Family struct {
	Owner    types.UID // UID of the owner; for pods of a Deployment that of the Deployment
	Name     string    // kind and name, for messages
	Outdated bool      // the owner wants a newer revision
	Rolls    bool      // a Deployment with a rolling update
	// Wanted is the min number of Ready pods with which a rollout continues.
	Wanted int32
	// Deployment and ReplicaSet are names, for pods of a Deployment. ReplicaSet is empty if
	// the ReplicaSet is gone.
	Deployment, ReplicaSet string
	Unwanted               bool // the Deployment is scaled to 0
	Surges                 bool // the Deployment may have more pods than replicas
	Pinned                 bool // the template of the ReplicaSet names the Node
	Adopts                 bool // the ReplicaSet adopts matching pods that have no controller

	// Unknown is the kind of an owner that the operator does not know, for messages; "" if
	// it knows the owner.
	Unknown string
	// Revision is equal for all pods that such an owner created from one template.
	Revision string
	// Since is when the ReplicaSet of such a pod was created; zero if it has none.
	Since time.Time
}

// Object is any object that can be patched.
type Object interface {
	metav1.Object
	runtime.Object
}
