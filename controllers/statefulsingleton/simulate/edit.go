package simulate

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Edit changes an existing object as a client other than the operator.
func Edit[T client.Object](c *simulation.Cluster, obj T, change func(T)) {
	if have, exists := c.All[objects.KeyOf(obj)].(T); exists {
		next := objects.Clone(have)
		change(next)
		c.Put(next)
	}
}

// Every returns all objects of a kind, by name.
func Every[T any, P interface {
	*T
	client.Object
}](c *simulation.Cluster) (found []P) {
	for _, obj := range c.All {
		if o, ok := obj.(P); ok {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b P) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found
}
