package observe_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

// TestTheBookOfEvictionsIsRead tests that the controllers know the entries of the book, and that
// each new entry wakes a set once.
func TestTheBookOfEvictionsIsRead(t *testing.T) {
	g := NewWithT(t)
	var known observe.EvictionBook
	learn := func(data map[string]string) []types.UID {
		news, _ := known.Learn(data)
		return slices.Sorted(maps.Keys(news))
	}
	g.Expect(known.RequestedAt("u0")).To(BeZero())
	g.Expect(learn(map[string]string{"u0": `{"at":"2026-03-01T12:00:00Z"}`, "u1": "{", "u2": `"at"`})).To(ConsistOf(types.UID("u0")))
	g.Expect(known.RequestedAt("u0")).To(BeTemporally("==", fixture.Noon))
	g.Expect(known.RequestedAt("u1")).To(BeZero())
	g.Expect(learn(map[string]string{"u0": `{"at":"2026-03-01T12:00:00Z"}`, "u1": `{"at":"2026-03-01T12:00:00Z"}`})).To(ConsistOf(types.UID("u1")))
	g.Expect(learn(map[string]string{"u0": `{"at":"2026-03-01T12:00:01Z"}`})).To(ConsistOf(types.UID("u0")))
	g.Expect(learn(nil)).To(BeEmpty())
	g.Expect(known.RequestedAt("u0")).To(BeZero())
}
