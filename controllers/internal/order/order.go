// Package order says which orders of a spec are carried out. An order is a field with an id
// that its author chose; the status remembers the ids, and each is carried out once.
package order

import (
	"k8s.io/apimachinery/pkg/util/validation"
)

// Most is how many orders of a name a status remembers.
const Most = 16

// IsNew reports whether an object is as somebody made it, as far as the operator knows: its
// spec was never changed, or the status is not one that an operator wrote about this object.
// What is ordered in it may be of another life of the object: of a backup, of another cluster,
// or of a repository from which all is made again. observed is status.observedGeneration.
func IsNew(generation, observed int64) bool {
	return generation <= 1 || observed <= 0 || observed > generation
}

// IsID reports whether a text may be the id of an order. The schema says so too.
func IsID(id string) bool { return len(validation.IsDNS1123Label(id)) == 0 }
