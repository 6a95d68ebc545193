package extendedstatefulset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// remembered is the state that this process keeps for one object between passes. It may be lost,
// because it can be determined again.
type remembered struct {
	refusal    memory.Refusal
	undone     undone.Memory
	whyMissing whyMissing
	causes     causes.Known
	// jobsMissing maps the UID of each missing recorded Job to the time when it was first missing.
	jobsMissing map[types.UID]time.Time
}

// whyMissing has the reasons why pods of a StatefulSet are missing, by pod name.
type whyMissing = causes.Turns[map[string]string]
