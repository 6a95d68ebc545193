package simulation

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Collector is the garbage collector: it deletes objects whose owners are all gone. An owner is gone if it was deleted
// in the cluster. An owner that never was in the cluster may exist.
type Collector struct {
	// IsRead reports whether an owner would be in the cluster if it existed and its kind could be listed. If it is nil,
	// this is not known of any.
	IsRead func(owner metav1.OwnerReference) bool
	// Collects reports whether an object is deleted. If it is nil, all objects are.
	Collects func(obj client.Object) bool
	// Text follows the name of a deleted object in the story. The default is "is garbage".
	Text string
}

// Garbage returns the steps of the default garbage collector.
func Garbage(c *Cluster) []func() { return Steps(Collector{}.Moves(c)) }

// Moves returns the next steps of the garbage collector.
func (g Collector) Moves(c *Cluster) (moves []Move) {
	exists, garbage := g.existing(c), []objects.Key{}
	for key, obj := range c.All {
		owners := obj.GetOwnerReferences()
		isOwned := len(owners) > 0 && obj.GetDeletionTimestamp() == nil
		if isOwned && !slices.ContainsFunc(owners, exists) && (g.Collects == nil || g.Collects(obj)) {
			garbage = append(garbage, key)
		}
	}
	slices.SortFunc(garbage, compareKeys)
	for _, key := range garbage {
		uid := c.All[key].GetUID()
		moves = append(moves, Move{Key: "garbage" + string(uid), Do: func() { g.collect(c, key, uid) }})
	}
	return moves
}

// existing returns a function that reports whether an owner may exist.
func (g Collector) existing(c *Cluster) func(metav1.OwnerReference) bool {
	present := map[types.UID]bool{}
	for _, obj := range c.All {
		present[obj.GetUID()] = true
	}
	return func(owner metav1.OwnerReference) bool {
		isMissing := g.IsRead != nil && !c.Unlisted[owner.Kind] && g.IsRead(owner)
		return present[owner.UID] || (!isMissing && !c.removed[owner.UID])
	}
}

// collect deletes an object, unless it was deleted or replaced. Stories do not contain ControllerRevisions.
func (g Collector) collect(c *Cluster, key objects.Key, uid types.UID) {
	now := c.All[key]
	if now == nil || now.GetUID() != uid || now.GetDeletionTimestamp() != nil {
		return
	}
	if key.Kind != "ControllerRevision" {
		c.Say("    %s %s", key.Name, cmp.Or(g.Text, "is garbage"))
	}
	c.Delete(now)
}

func compareKeys(a, b objects.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
