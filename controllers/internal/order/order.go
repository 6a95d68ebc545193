// Package order decides which orders in a spec are carried out. An order is a field with an ID chosen
// by the user. The status records the IDs, so that each order is carried out only once.
package order

import (
	"k8s.io/apimachinery/pkg/util/validation"
)

// Most is the max number of orders of one type that a status records.
const Most = 16

// IsNew reports whether an object seems to be newly created: its spec was never changed, or its status
// was not written by an operator for this object. Its orders may then come from an earlier object: from
// a backup, from another cluster, or from a repository that recreates all objects. observed is
// status.observedGeneration.
func IsNew(generation, observed int64) bool {
	return generation <= 1 || observed <= 0 || observed > generation
}

// IsID reports whether the text is a valid ID of an order. The schema has the same rule.
func IsID(id string) bool { return len(validation.IsDNS1123Label(id)) == 0 }
