package plan

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Change is a change in a simulated cluster.
type Change struct {
	// Do makes the change.
	Do func(*simulation.Cluster)
	// Others returns further steps that are possible after the change, for example those of a drain. It can
	// be nil.
	Others func(*simulation.Cluster) []func()
	// Blocked returns a sentence for each member that the change could not evict. It can be nil.
	Blocked func(members []*corev1.Pod, c *simulation.Cluster) []string
	// Drains is the name of the Node that the change drains; "" for other changes.
	Drains string
	// Deletes is true if the change deletes the object of the plan.
	Deletes bool
	// Objects are the changed objects.
	Objects []client.Object
}

// moves returns a function that returns the steps of the garbage collector and of others.
func (ch Change) moves(c *simulation.Cluster) func() []func() {
	return func() []func() {
		moves := simulation.Garbage(c)
		if ch.Others != nil {
			moves = append(moves, ch.Others(c)...)
		}
		return moves
	}
}

// diff sets the changed fields of a plan. old is the object before the change, or nil.
func (ch Change) diff(p *Plan, old client.Object) error {
	for _, object := range ch.Objects {
		isPlanned := objects.KeyOf(object) == objects.Key{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
		if !isPlanned || old == nil {
			continue
		}
		fields, err := Diff(old, object)
		if err != nil {
			return err
		}
		p.Changes = fields
	}
	return nil
}

// Put returns the change that stores objects as a dry run of the API server returned them. Their statuses and
// finalizers stay those of the simulated cluster.
func Put(changed ...client.Object) Change {
	return Change{Objects: changed, Do: func(c *simulation.Cluster) {
		for _, object := range changed {
			object = objects.Clone(object)
			if have := c.All[objects.KeyOf(object)]; have != nil {
				object.SetFinalizers(have.GetFinalizers())
				copyStatus(object, have)
			}
			c.Put(object)
		}
	}}
}

// copyStatus copies field Status, if the type has one.
func copyStatus(into, from client.Object) {
	target, source := reflect.ValueOf(into).Elem().FieldByName("Status"), reflect.ValueOf(objects.Clone(from)).Elem().FieldByName("Status")
	if target.IsValid() && source.IsValid() {
		target.Set(source)
	}
}

// Delete returns the change that deletes an object.
func Delete(object client.Object) Change {
	return Change{Deletes: true, Do: func(c *simulation.Cluster) {
		if c.All[objects.KeyOf(object)] != nil {
			c.Delete(object)
		}
	}}
}
