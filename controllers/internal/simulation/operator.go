package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind simulates objects of one kind. The room simulate of each kind implements it.
type Kind interface {
	// New returns an empty object.
	New() client.Object
	// Reads returns what the operator, the simulated controllers and kubelets read for the object of that key.
	Reads(key types.NamespacedName) []Listing
	// Start starts an operator for the object of that key. The cluster contains the object, what Reads lists,
	// and at least one Ready Node. Containers that the statuses of pods show as running run.
	Start(c *Cluster, key types.NamespacedName) Operator
	// Owns reports whether a pod is a member of the object.
	Owns(object client.Object, pod *corev1.Pod) bool
	// Role returns the role of a member as users name it, or "".
	Role(object client.Object, pod *corev1.Pod) string
}

// Approver is a Kind whose objects can wait for an approval.
type Approver interface {
	// Approve changes the spec of an object to approve what it waits for. It returns the name of what it approves, or
	// "" if the object waits for no approval.
	Approve(object client.Object) string
}

// Listing is an empty list of a type, with the options that select its objects.
type Listing struct {
	List    client.ObjectList
	Options []client.ListOption
}

// Operator is a process of the operator that reconciles one object in a simulated cluster, together with
// all others that act on its pods.
type Operator interface {
	// Look updates the cache of the operator to the present state of the cluster.
	Look()
	// Pass runs one pass on that cache.
	Pass() Passed
	// Moves returns the steps that controllers of Kubernetes, the scheduler, kubelets and the application
	// could take now. Each is a step of its own: others may act before it, and it then has no effect if it
	// is outdated.
	Moves() []func()
}

// Passed is the result of a pass.
type Passed struct {
	// Acted is true if the operator wrote something or sent a command.
	Acted bool
	// Wait is the requeue delay; 0 means no requeue.
	Wait time.Duration
	// Polls is true if the operator only repeated a query that changes nothing, and waits for no deadline after
	// MaxPolling.
	Polls bool
	// Err is an error of a read or write. The key is then retried.
	Err error
}

const (
	// maxRounds is the max number of rounds of Run.
	maxRounds = 20_000
	// MaxPolling is the max time without a change in an operator that polls, and has no longer deadline.
	MaxPolling = 5 * time.Minute
	// round is how long a round takes.
	round = time.Second
)

// Run lets the operator and all others act in turn. It ends when nothing has changed, and nothing will
// change within patience. It returns false if the last pass failed, or if there is no end.
func Run(c *Cluster, o Operator, patience time.Duration) (settled bool) {
	idle := time.Duration(0)
	for range maxRounds {
		o.Look()
		passed := o.Pass()
		moves := o.Moves()
		for _, move := range moves {
			move()
		}
		wait, limit := passed.Wait, patience
		if passed.Err != nil {
			wait = round
		}
		if passed.Polls {
			limit = min(patience, MaxPolling)
		}
		switch {
		case passed.Acted, len(moves) > 0:
			c.Now, idle = c.Now.Add(round), 0
		case wait == 0, idle+wait > limit:
			return passed.Err == nil
		default:
			c.Now, idle = c.Now.Add(wait), idle+wait
		}
	}
	return false
}
