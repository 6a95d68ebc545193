package configuration

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

func keyOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("set-%03d", i)}
}

func TestTwoHundredThatShareASecretRestartTenAtATime(t *testing.T) {
	const sets, most = 200, 10
	random := rand.New(rand.NewSource(1))
	limiter, now := &Limiter{Most: most}, noon
	restarting, left := map[types.NamespacedName]time.Time{}, map[types.NamespacedName]bool{}
	for i := range sets {
		left[keyOf(i)] = true
	}
	for step := 0; len(left) > 0; step++ {
		if step > 100*sets {
			t.Fatalf("%d never got a slot", len(left))
		}
		now = now.Add(100 * time.Millisecond)
		for _, i := range random.Perm(sets)[:20] {
			if key := keyOf(i); left[key] && limiter.Ask(key, noon, now, restarting).Granted {
				delete(left, key)
				restarting[key] = now
			}
		}
		if len(restarting) > most {
			t.Fatalf("%d concurrent restarts", len(restarting))
		}
		for key := range restarting {
			if random.Intn(20) == 0 {
				delete(restarting, key)
			}
		}
	}
}

// ask calls limiter.Ask with the given objects restarting since noon.
func ask(limiter *Limiter, key types.NamespacedName, since, now time.Time, restarting ...types.NamespacedName) bool {
	began := map[types.NamespacedName]time.Time{}
	for _, k := range restarting {
		began[k] = noon
	}
	return limiter.Ask(key, since, now, began).Granted
}

func TestTurns(t *testing.T) {
	a, b, c := keyOf(1), keyOf(2), keyOf(3)
	t.Run("a restart that was granted holds its slot before the cache shows it", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		if !ask(limiter, a, noon, noon) || ask(limiter, b, noon, noon.Add(time.Second)) {
			t.Error("two restarts are granted")
		}
	})
	t.Run("restarts shown by the cluster count after the operator restarts", func(t *testing.T) {
		if limiter := (&Limiter{Most: 1}); ask(limiter, b, noon, noon, a) {
			t.Error("two restarts in progress")
		}
	})
	t.Run("a hanging restart does not hold its slot forever", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		if ask(limiter, b, noon, noon.Add(SlotLimit-time.Second), a) || !ask(limiter, b, noon, noon.Add(SlotLimit), a) {
			t.Error("the slot is released too early, or never")
		}
	})
	t.Run("a restart in progress does not wait for its own slot", func(t *testing.T) {
		if limiter := (&Limiter{Most: 1}); !ask(limiter, a, noon, noon, a) {
			t.Error("the restart that would repair the object is blocked by its own slot")
		}
	})
	t.Run("the request that waits longest is granted first", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		ask(limiter, c, noon.Add(1), noon, a)
		ask(limiter, b, noon.Add(2), noon, a)
		if ask(limiter, b, noon.Add(2), noon) {
			t.Error("the second request was granted before the first")
		}
		if next := limiter.Next(noon, nil); len(next) != 1 || next[0] != c {
			t.Errorf("the next one is %v", next)
		}
		if !ask(limiter, c, noon.Add(1), noon) {
			t.Error("the first request keeps waiting")
		}
	})
	t.Run("a request that was withdrawn does not block others", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		ask(limiter, c, noon, noon, a)
		if !ask(limiter, b, noon.Add(1), noon.Add(5*SlotRetry)) {
			t.Error("the request waits for one that was withdrawn")
		}
		ask(limiter, c, noon, noon.Add(5*SlotRetry), a)
		limiter.Forget(c)
		if !limiter.None() {
			t.Error("a removed request keeps waiting")
		}
	})
	t.Run("no limit", func(t *testing.T) {
		limiter := &Limiter{}
		if !ask(limiter, a, noon, noon) || !ask(limiter, b, noon, noon) || limiter.Ask(a, noon, noon, nil).String() != "" {
			t.Error("the request has to wait")
		}
	})
}

// V10: a granted slot is held until the result is known. On a busy machine the cache can be arbitrarily
// late.
func TestV10APlaceIsHeldUntilItsRestartIsSeen(t *testing.T) {
	a, b := keyOf(1), keyOf(2)
	t.Run("V10 the cache is stale", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		if !ask(limiter, a, noon, noon) || ask(limiter, b, noon, noon.Add(SlotLimit-1)) {
			t.Error("two restarts are granted")
		}
		if next := limiter.Next(noon.Add(SlotLimit-1), nil); len(next) != 0 {
			t.Errorf("%v is woken, and has no slot", next)
		}
	})
	t.Run("V10 it asks again because it cannot see its own write", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		ask(limiter, a, noon.Add(2), noon)
		ask(limiter, b, noon.Add(1), noon)
		if !ask(limiter, a, noon.Add(2), noon.Add(time.Minute)) || ask(limiter, b, noon.Add(1), noon.Add(time.Minute)) {
			t.Error("its slot was granted to another object although its write may have been made")
		}
	})
	t.Run("V10 an object whose write is always refused holds its slot no longer than a hanging restart", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		if ask(limiter, a, noon, noon); !ask(limiter, b, noon, noon.Add(SlotLimit)) {
			t.Error("the slot is lost")
		}
	})
	t.Run("V10 many objects whose writes were refused for hours do not restart together", func(t *testing.T) {
		limiter, now, granted := &Limiter{Most: 1}, noon, 0
		for range 20 {
			for i := range 20 {
				limiter.Ask(keyOf(i), noon, now, nil)
			}
			now = now.Add(SlotLimit)
		}
		for i := range 20 {
			if ask(limiter, keyOf(i), noon, now) {
				granted++
			}
		}
		if granted != 1 {
			t.Errorf("%d concurrent restarts are granted", granted)
		}
	})
	t.Run("V10 an object whose write is always refused does not stay first in the queue", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		ask(limiter, a, noon, noon)
		ask(limiter, b, noon.Add(1), noon.Add(SlotLimit-1))
		if ask(limiter, a, noon, noon.Add(SlotLimit)) || !ask(limiter, b, noon.Add(1), noon.Add(SlotLimit)) {
			t.Error("the object is granted a slot before one that waited")
		}
	})
	t.Run("V10 an object that was granted a slot and has nothing to restart releases it", func(t *testing.T) {
		limiter := &Limiter{Most: 1}
		if ask(limiter, a, noon, noon); ask(limiter, b, noon, noon) {
			t.Error("two restarts are granted")
		}
		limiter.Forget(a)
		if !ask(limiter, b, noon, noon) {
			t.Error("the slot is lost")
		}
	})
}

func inNamespace(namespace string, i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("set-%03d", i)}
}

// let requests slots for all sets of a namespace, and counts the granted ones.
func let(limiter *Limiter, namespace string, sets int, now time.Time) (granted int) {
	for i := range sets {
		if limiter.Ask(inNamespace(namespace, i), noon, now, nil).Granted {
			granted++
		}
	}
	return granted
}

// No namespace holds all slots: it gets another one only while the number of free slots exceeds its
// own.
func TestTurnsAmongNamespaces(t *testing.T) {
	t.Run("a namespace with restarts that never complete leaves slots to others", func(t *testing.T) {
		limiter := &Limiter{Most: 10}
		if n := let(limiter, "broken", 100, noon); n != 5 {
			t.Errorf("the namespace has %d of 10 slots", n)
		}
		if n := let(limiter, "other", 100, noon.Add(time.Second)); n != 3 {
			t.Errorf("a second namespace has %d slots", n)
		}
		if n := let(limiter, "third", 1, noon.Add(2*time.Second)); n != 1 {
			t.Errorf("a third namespace has %d slots", n)
		}
	})
	t.Run("a namespace whose restarts are shown by the cluster leaves slots to others", func(t *testing.T) {
		limiter, began := &Limiter{Most: 4}, map[types.NamespacedName]time.Time{}
		for i := range 2 {
			began[inNamespace("broken", i)] = noon
		}
		if limiter.Ask(inNamespace("broken", 2), noon, noon, began).Granted || !limiter.Ask(inNamespace("other", 0), noon, noon, began).Granted {
			t.Error("the failing namespace gets another slot, or the other one waits")
		}
	})
	t.Run("the message shows the share of the namespace", func(t *testing.T) {
		limiter := &Limiter{Most: 10}
		let(limiter, "broken", 7, noon)
		got := limiter.Ask(inNamespace("broken", 6), noon, noon, nil).String()
		if want := ": 5 of at most 10 restarts are in progress, 5 of them in this namespace, which has reached its current share, and 1 are ahead of it"; got != want {
			t.Errorf("message %s", got)
		}
		let(limiter, "other", 10, noon)
		if next := limiter.Next(noon, nil); len(next) != 0 {
			t.Errorf("%v are woken without a free slot", next)
		}
	})
	t.Run("a single slot is available to all namespaces", func(t *testing.T) {
		if limiter := (&Limiter{Most: 1}); let(limiter, "only", 3, noon) != 1 {
			t.Error("no namespace has the slot, or two have it")
		}
	})
}

// Namespaces get slots in turn.
func TestNamespacesTakeTurns(t *testing.T) {
	t.Run("a namespace with an old change does not get all slots", func(t *testing.T) {
		limiter, now := &Limiter{Most: 1}, noon
		var order []string
		for range 6 {
			for i := range 100 {
				if limiter.Ask(inNamespace("old", i), noon, now, nil).Granted {
					order = append(order, "old")
				}
			}
			for i := range 3 {
				if limiter.Ask(inNamespace("new", i), noon.Add(time.Hour), now, nil).Granted {
					order = append(order, "new")
				}
			}
			for key := range limiter.granted { // the restart is completed
				limiter.Forget(key)
			}
			now = now.Add(time.Second)
		}
		if got := strings.Join(order, " "); got != "old new old new old new" {
			t.Errorf("the order is %s", got)
		}
	})
	t.Run("a namespace that always has one more restart does not get all slots", func(t *testing.T) {
		limiter, now, many := &Limiter{Most: 1}, noon, 0
		for range 10 {
			limiter.Ask(inNamespace("one", 0), now, now, nil)
			let(limiter, "many", 10, now)
			for key := range limiter.granted {
				if key.Namespace == "many" {
					many++
				}
				limiter.Forget(key)
			}
			now = now.Add(time.Second)
		}
		if many < 4 {
			t.Errorf("the namespace with many restarts had %d of 10 slots", many)
		}
	})
	t.Run("the request that waits longest in a namespace is granted first", func(t *testing.T) {
		limiter := &Limiter{Most: 3}
		let(limiter, "a", 2, noon)
		limiter.Ask(inNamespace("a", 8), noon.Add(2), noon, nil)
		limiter.Ask(inNamespace("a", 7), noon.Add(1), noon, nil)
		for key := range limiter.granted {
			limiter.Forget(key)
		}
		if next := limiter.Next(noon, nil); len(next) != 2 || next[0] != inNamespace("a", 7) {
			t.Errorf("the next ones are %v", next)
		}
	})
	t.Run("a namespace expires", func(t *testing.T) {
		limiter := &Limiter{Most: 10}
		for i := range 1000 {
			limiter.Ask(inNamespace(fmt.Sprintf("ns-%d", i), 0), noon, noon.Add(time.Duration(i)*time.Minute), nil)
			limiter.Forget(inNamespace(fmt.Sprintf("ns-%d", i), 0))
		}
		if n := len(limiter.served); n > 100 {
			t.Errorf("%d namespaces are stored", n)
		}
	})
}

// A user who can create StatefulSets in a namespace can make them look as if they were restarting.
func TestOneNamespaceTakesHalfOfThePlacesAtMost(t *testing.T) {
	limiter := &Limiter{Most: 10}
	var forged []types.NamespacedName
	for i := range 30 {
		forged = append(forged, types.NamespacedName{Namespace: "hostile", Name: fmt.Sprint("no-such-object-", i)})
	}
	if !ask(limiter, types.NamespacedName{Namespace: "other", Name: "db"}, noon, noon, forged...) {
		t.Error("another namespace may not restart anything")
	}
}

// V5: time during which the operator could not observe the cluster does not count for a slot.
func TestV5APlaceIsHeldThroughTimeInWhichTheOperatorWasAway(t *testing.T) {
	for name, mayAnother := range map[string]func(now time.Time, watch leadership.Watch) bool{
		"the slot of a hanging restart": func(now time.Time, watch leadership.Watch) bool {
			limiter := Limiter{Most: 1, Watch: func() leadership.Watch { return watch }}
			return limiter.Ask(keyOf(2), noon, now, map[types.NamespacedName]time.Time{keyOf(1): noon}).Granted
		},
		"the slot of a restart that the cache does not show": func(now time.Time, watch leadership.Watch) bool {
			limiter := Limiter{Most: 1, Watch: func() leadership.Watch { return watch }}
			limiter.Ask(keyOf(1), noon, noon, nil)
			return limiter.Ask(keyOf(2), noon, now, nil).Granted
		},
	} {
		t.Run(name, func(t *testing.T) {
			over := noon.Add(SlotLimit)
			away := leadership.Watch{Gaps: []leadership.Gap{{From: noon.Add(time.Second), To: over.Add(-time.Second)}}}
			if !mayAnother(over, leadership.Watch{}) || mayAnother(over.Add(-2*time.Nanosecond), leadership.Watch{}) {
				t.Error("the slot is held for less or more than its time")
			}
			for _, watch := range []leadership.Watch{away, {Since: over.Add(-time.Second)}} {
				if mayAnother(over, watch) {
					t.Error("the slot is lost before the object was reconciled")
				}
				if !mayAnother(watch.Deadline(noon, SlotLimit), watch) {
					t.Error("the slot is never released")
				}
			}
		})
	}
}
