package facts

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// World is the observed state of a set. Decisions use nothing else.
type World struct {
	spec.Settings
	Now time.Time
	// Watch is the time in which this process was able to observe the cluster. Only that time
	// counts towards the deadlines after which a member is lost.
	Watch leadership.Watch
	// Live is true if the objects were read from the API server, and false if they come from the
	// cache. Then only the timeless rules may act (see "Cached and live reads" in package
	// statefulcluster).
	Live bool
	// Invalid is the reason why the spec cannot be served; "" if it is valid.
	Invalid string

	// Members are the pods that the set controls, with their claims, sorted by name.
	Members []*Member
	// Loose are the claims of members without a pod, sorted by name.
	Loose []*corev1.PersistentVolumeClaim
	// Misnamed are claims with the operator's labels whose name is not the name of a claim of the
	// set.
	Misnamed []*corev1.PersistentVolumeClaim
	// Abandoned are claims of a deleted set of the same name that lack the retained label. They are
	// searched for in live reads until none is left.
	Abandoned []*corev1.PersistentVolumeClaim
	// Budget is the object with the name of the set's PodDisruptionBudget; nil if there is none. It
	// may belong to another owner.
	Budget *policyv1.PodDisruptionBudget
	// Revisions are the revisions that the set controls, oldest first.
	Revisions []*appsv1.ControllerRevision
	// Orphans are pods with the set's labels and no owner that this process never saw as members.
	// OrphanIDs holds the ids of the orphans that have claims of a member. These claims are in none
	// of the lists above.
	Orphans   []*corev1.Pod
	OrphanIDs map[string]bool
	// Labelled are pods with the set's labels and another controller, at most MaxLabelled.
	Labelled []*corev1.Pod
	// Foreign are pods that the selector matches and that are not members. It is set only if live.
	Foreign []string
	// Offers are claims of earlier sets with this name that the set may adopt. They are searched
	// for in a live read if members are missing.
	Offers Offers
	// Fresh are unused ids for new members: first those in status.creating, then those of claims given
	// to the set, then random ones.
	Fresh []string
	// Refused are the writes that the API server refused, with the times before which they are not
	// retried.
	Refused map[string]Refusal // the key is the reason of the action
	// Undone are the writes that an admission webhook or policy reverted.
	Undone undone.Held
	// Crashed are pods that this process saw crash and that were not Ready since.
	Crashed map[types.UID]bool
	// Retired are pods that this process deleted to scale down.
	Retired map[types.UID]bool
	// Deleted holds the names of pods whose deletion by others this process observed.
	Deleted map[string]bool
	// Ending are the names of members whose pod is gone from the API server but still in the cache.
	// Its delete event will show how it ended.
	Ending []string
	// Causes are the reasons why members do not run, for messages only.
	Causes causes.Hindrances
	// Aside holds the time at which this process first saw that a claim was set aside and had no pod,
	// by the UID of the claim.
	Aside map[types.UID]time.Time
}

// Member is a pod and its claims.
type Member struct {
	ID     string
	Pod    *corev1.Pod
	Node   Node
	Claims map[string]*corev1.PersistentVolumeClaim // by name
}

// Offers are claims of earlier sets with this name, and claims given back to the set.
type Offers struct {
	// Given are the claims that were given to the set, by member id. All claims of the member must
	// have been given.
	Given map[string][]*corev1.PersistentVolumeClaim
	// blocked are the ids that no new member may use: those of claims that were not given, and those
	// of given claims whose member's name a pod has that is not a member.
	blocked map[string]bool
	// Restored are the names of claims that come from the same backup as the set and were not given
	// to it. Namesakes are the UIDs of the sets that owned them.
	Restored  []string
	Namesakes []types.UID
	// InTheWay are pods that have the names of members whose claims were given.
	InTheWay []string
}

// Refusal is the error of a refused write.
type Refusal struct {
	Message string
	// Until is when to retry the write.
	Until time.Time
	// Times is how often it was refused in succession.
	Times int
}

// Served reports whether the set is not being deleted and its spec is valid.
func (w *World) Served() bool { return w.Invalid == "" && w.Set.DeletionTimestamp == nil }

// Reached reports whether a time is not in the future.
func (w *World) Reached(at time.Time) bool { return !at.After(w.Now) }
