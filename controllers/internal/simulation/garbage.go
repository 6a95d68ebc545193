package simulation

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Garbage returns the steps of the garbage collector: it deletes objects whose owners were all deleted in this
// cluster. An owner that never was in it may exist.
func Garbage(c *Cluster) (moves []func()) {
	exists := func(owner metav1.OwnerReference) bool { return !c.removed[owner.UID] }
	var garbage []objects.Key
	for key, obj := range c.All {
		owners := obj.GetOwnerReferences()
		if len(owners) > 0 && obj.GetDeletionTimestamp() == nil && !slices.ContainsFunc(owners, exists) {
			garbage = append(garbage, key)
		}
	}
	slices.SortFunc(garbage, compareKeys)
	for _, key := range garbage {
		obj := c.All[key]
		moves = append(moves, func() {
			if now := c.All[key]; now != nil && now.GetUID() == obj.GetUID() {
				c.Say("    %s is garbage", obj.GetName())
				c.Delete(now)
			}
		})
	}
	return moves
}

func compareKeys(a, b objects.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
