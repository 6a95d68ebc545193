package replicatedstatefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// world is all that a decision may know.
type world struct {
	now  time.Time
	live bool // read past the cache; otherwise a plan may only ask
	set  *v1alpha1.ReplicatedStatefulSet
	// invalid says why the spec cannot be served; "" if it can.
	invalid string
	// namespaceGoes is true while the namespace is being deleted.
	namespaceGoes bool

	stateful *appsv1.StatefulSet        // nil: there is none
	services map[string]*corev1.Service // by name
	budget   *policyv1.PodDisruptionBudget
	members  []*member // pods of the set, by ordinal
	// rules is a hash of the ConfigMaps of spec.ruleSelector.
	rules string
	// missing are the Secrets of spec.TLS that are not there.
	missing []string
	// lossAt is when this process last saw a grant go, or the set for the first
	// time: what secondaries said of their copies before is old.
	lossAt time.Time
	// refused is the last write that the API server refused, in its words.
	refused string

	books books // see learn
}

// member is a pod and what is known of it.
type member struct {
	pod     *corev1.Pod
	ordinal int
	node    node
	// commandsIn is the name of the container in which commands run.
	commandsIn string
	// busy is the command that runs in the pod now, sent by this process.
	busy *podexec.Command
	// results are the newest of each command that this process ran in the pod,
	// said the newest of each whose outcome is known.
	results, said map[string]podexec.Result
	// tries is how often in a row the outcome of a command was unknown.
	tries map[string]int
	// touched is when this process last saw the pod change: its container, or
	// whether it is Ready.
	touched time.Time
}

var _ = types.UID("")
