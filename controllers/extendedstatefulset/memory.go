package extendedstatefulset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// remembered is what this process remembers of one object from pass to pass. It may be
// lost: it is found out again.
type remembered struct {
	refusal    memory.Refusal
	undone     undone.Memory
	whyMissing whyMissing
	causes     causes.Known
	// jobsMissing is since when Jobs on record are missing, by UID.
	jobsMissing map[types.UID]time.Time
}

// whyMissing says why pods are not there that a StatefulSet should have, by their names.
type whyMissing = causes.Turns[map[string]string]
