package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// Board reports which commands run in a pod and their results. It is implemented by podexec.Board.
type Board interface {
	Of(owner types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result)
	Keep(owner types.NamespacedName, pods ...types.UID)
}

// Reader reads the state of sets, and keeps the memory of this process.
type Reader struct {
	// Cache reads from the watches of this kind, and Nodes from those of Nodes and of the objects
	// themselves. Live reads from the API server.
	Cache, Nodes, Live client.Reader
	Board              Board
	// Now returns the current time.
	Now func() time.Time
	// AgentImage returns the image with the agent of spec.application. If it is nil, such sets get
	// no pods.
	AgentImage func(context.Context) (string, error)
	// ImageVolumes reports whether pods can mount that image.
	ImageVolumes *nodestate.ImageVolumes
	// Lease reports whether this process leads, and in which time it could observe the cluster.
	Lease *leadership.Lease
	// Leases watches the Leases of members. If it is nil, only passes read them.
	Leases *leasewatch.Watch
	// Policy checks the policy on the Leases of members. If it is nil, the policy is not checked.
	Policy *policy.Checker
	// Namespace is the operator's own namespace, for messages.
	Namespace string

	// memory has the memory of each set. See MemoryOf.
	memory memory.Of[Remembered]
	// nodes remembers since when Nodes are missing.
	nodes nodestate.Reader
	// Book is the copy of the eviction book.
	Book EvictionBook
	// hashing is locked while ConfigMaps are hashed. See hashRules.
	hashing sync.Mutex
	// Config reads ConfigMaps and Secrets. If it is nil, they are not followed.
	Config *ConfigReader
}

// MemoryOf returns the memory of a set.
func (r *Reader) MemoryOf(set *v1alpha1.ReplicatedStatefulSet) *Remembered {
	remembered, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		remembered.Pods, remembered.mended = map[types.UID]*Seen{}, map[string]time.Time{}
		createdTotal.Inc()
	}
	return remembered
}

// Remembered is the state of a set that is kept in memory only. After a restart all members are
// queried again.
type Remembered struct {
	// rules is the hash of the ConfigMaps with these versions. excess states why there is no hash.
	rules, versions, excess string
	grants                  []v1alpha1.Grant // as stored when the last pass read the set
	lossAt                  time.Time        // World.LossAt
	lossOf                  types.UID        // World.LossOf
	lossPod                 string           // World.LossPod
	lossProven              bool             // World.LossProven
	provenStop              podexec.Result   // the last stop of a member whose data another member was known to have
	statefulGeneration      int64            // of the StatefulSet
	statefulSince           time.Time        // when this process first saw statefulGeneration
	trial                   facts.RefusedDryRun
	Pods                    map[types.UID]*Seen
	Refused                 memory.Refusal
	mended                  map[string]time.Time // time of the last patch of each child, by ChildKey
	Undone                  undone.Memory
	Decisions               decisions.Buffer
	closedAt                string // AnnotationClosedAt of the budget, if this process closed it last
	requested               string // member that the switchover annotation names
	requestedAt             time.Time
	// configSince is when a configuration change that has not caused a restart yet was first seen.
	// It is zero if there is none. A new process starts the batching window again.
	configSince time.Time
	causes      KnownCauses
	// leases are the versions of the Leases, by name.
	leases map[string]*leasewatch.Sighting
	fenced map[types.UID]fencedContainer // by pod
	rights knownRights
}

// hasNoRules reports whether the ConfigMaps of spec.ruleSelector have not been read yet.
func (k *Remembered) hasNoRules() bool { return k.rules == "" && k.excess == "" }

// Seen is what this process remembers of a pod.
type Seen struct {
	container          string
	ready              bool
	touched            time.Time
	missed             int       // facts.Member.Missed
	askedAt            time.Time // facts.Member.AskedAt
	unansweredOnRecord bool      // facts.Member.UnansweredOnRecord
	Said               map[string]podexec.Result
	Counted            map[string]time.Time // end of the last result that was counted, by command
	Tries              map[string]int
	Resize             facts.RefusedResize // last refused resize of the pod
}

// KnownCauses is what this process remembers about causes.
type KnownCauses struct {
	Trail  causes.Trail
	events causes.Turns[map[string]causes.Cause] // by podKey
	Starts map[string]FailedStarts               // by pod name
}

// FailedStarts counts the failed starts of a member since it last ran. It includes starts in pods
// that were recreated for that reason.
type FailedStarts struct {
	Since, Last time.Time
	Times       int
	Text        string // of the last one
}

// ConfigReader reads the ConfigMaps and Secrets that the pods of sets use.
type ConfigReader struct {
	configuration.Reader
	Turns   configuration.Turns
	Secrets *configuration.Secrets
}

// EvictionBook is the controllers' copy of the eviction book. The zero value is empty.
type EvictionBook struct {
	mu      sync.Mutex
	Entries map[types.UID]facts.Entry
	// queue is set while this process leads.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}
