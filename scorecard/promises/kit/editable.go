package kit

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Editable is an object with changes that users make.
type Editable struct {
	// Kind and Key are those of the object of one of the operator's kinds.
	Kind string
	Key  types.NamespacedName
	// Create creates the object and what belongs to it, and waits until it is Ready.
	Create func()
	// Settle waits until the last edit has been carried out.
	Settle func()
	// New returns an empty object of the type that edits change: the object itself, or the workload whose pods it
	// selects.
	New func() client.Object
	// Edits are the changes, with their names.
	Edits []Edit
}

// Edit is a change of an object.
type Edit struct {
	Name string
	Do   func(*rand.Rand, client.Object)
	// Settle replaces Settle of the Editable. Optional.
	Settle func()
	// Approved is true if Settle approves the change, which the plan must assume.
	Approved bool
}
