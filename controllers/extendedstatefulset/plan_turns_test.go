package extendedstatefulset

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func keyOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("set-%03d", i)}
}

func TestTwoHundredThatShareASecretRestartTenAtATime(t *testing.T) {
	const sets, most = 200, 10
	random := rand.New(rand.NewSource(1))
	turns, now := &turns{most: most}, noon
	restarting, left := map[types.NamespacedName]time.Time{}, map[types.NamespacedName]bool{}
	for i := range sets {
		left[keyOf(i)] = true
	}
	for step := 0; len(left) > 0; step++ {
		if step > 100*sets {
			t.Fatalf("%d never had their turn", len(left))
		}
		now = now.Add(100 * time.Millisecond)
		for _, i := range random.Perm(sets)[:20] {
			if key := keyOf(i); left[key] && turns.ask(key, noon, now, restarting).granted {
				delete(left, key)
				restarting[key] = now
			}
		}
		if len(restarting) > most {
			t.Fatalf("%d restart at one time", len(restarting))
		}
		for key := range restarting {
			if random.Intn(20) == 0 {
				delete(restarting, key)
			}
		}
	}
}

// ask is turns.ask while those restart, since noon.
func ask(turns *turns, key types.NamespacedName, since, now time.Time, restarting ...types.NamespacedName) bool {
	began := map[types.NamespacedName]time.Time{}
	for _, k := range restarting {
		began[k] = noon
	}
	return turns.ask(key, since, now, began).granted
}

func TestTurns(t *testing.T) {
	a, b, c := keyOf(1), keyOf(2), keyOf(3)
	t.Run("one that was let holds its place before the cache shows it", func(t *testing.T) {
		turns := &turns{most: 1}
		if !ask(turns, a, noon, noon) || ask(turns, b, noon, noon.Add(time.Second)) {
			t.Error("both go")
		}
	})
	t.Run("after a restart of the operator those count that the cluster shows", func(t *testing.T) {
		if turns := (&turns{most: 1}); ask(turns, b, noon, noon, a) {
			t.Error("two restart")
		}
	})
	t.Run("one that hangs holds no place for ever", func(t *testing.T) {
		turns := &turns{most: 1}
		if ask(turns, b, noon, noon.Add(turnLimit-time.Second), a) || !ask(turns, b, noon, noon.Add(turnLimit), a) {
			t.Error("too early, or never")
		}
	})
	t.Run("one that restarts already need not wait for itself", func(t *testing.T) {
		if turns := (&turns{most: 1}); !ask(turns, a, noon, noon, a) {
			t.Error("the cure waits for the sick")
		}
	})
	t.Run("who waits longest goes first", func(t *testing.T) {
		turns := &turns{most: 1}
		ask(turns, c, noon.Add(1), noon, a)
		ask(turns, b, noon.Add(2), noon, a)
		if ask(turns, b, noon.Add(2), noon) {
			t.Error("the second went before the first")
		}
		if next := turns.next(noon, nil); len(next) != 1 || next[0] != c {
			t.Errorf("%v is next", next)
		}
		if !ask(turns, c, noon.Add(1), noon) {
			t.Error("the first waits on")
		}
	})
	t.Run("one that asks no more holds up nobody", func(t *testing.T) {
		turns := &turns{most: 1}
		ask(turns, c, noon, noon, a)
		if !ask(turns, b, noon.Add(1), noon.Add(5*turnPatience)) {
			t.Error("it waits for a ghost")
		}
		ask(turns, c, noon, noon.Add(5*turnPatience), a)
		turns.forget(c)
		if !turns.none() {
			t.Error("the forgotten wait on")
		}
	})
	t.Run("no bound", func(t *testing.T) {
		turns := &turns{}
		if !ask(turns, a, noon, noon) || !ask(turns, b, noon, noon) || turns.ask(a, noon, noon, nil).String() != "" {
			t.Error("somebody waits")
		}
	})
}

// V10: a place that was given is held until it is known what came of it. On a busy
// machine the cache is late by any time.
func TestV10APlaceIsHeldUntilItsRestartIsSeen(t *testing.T) {
	a, b := keyOf(1), keyOf(2)
	t.Run("V10 the cache is late", func(t *testing.T) {
		turns := &turns{most: 1}
		if !ask(turns, a, noon, noon) || ask(turns, b, noon, noon.Add(turnLimit-1)) {
			t.Error("both go")
		}
		if next := turns.next(noon.Add(turnLimit-1), nil); len(next) != 0 {
			t.Errorf("%v is woken, and has no place", next)
		}
	})
	t.Run("V10 it asks again because it cannot see its own write", func(t *testing.T) {
		turns := &turns{most: 1}
		ask(turns, a, noon.Add(2), noon)
		ask(turns, b, noon.Add(1), noon)
		if !ask(turns, a, noon.Add(2), noon.Add(time.Minute)) || ask(turns, b, noon.Add(1), noon.Add(time.Minute)) {
			t.Error("its place went to another, and its write may have been made")
		}
	})
	t.Run("V10 one whose write is refused for ever holds its place no longer than a restart that hangs", func(t *testing.T) {
		turns := &turns{most: 1}
		if ask(turns, a, noon, noon); !ask(turns, b, noon, noon.Add(turnLimit)) {
			t.Error("the place is lost")
		}
	})
	t.Run("V10 many whose writes were refused for hours do not begin together", func(t *testing.T) {
		turns, now, granted := &turns{most: 1}, noon, 0
		for range 20 {
			for i := range 20 {
				turns.ask(keyOf(i), noon, now, nil)
			}
			now = now.Add(turnLimit)
		}
		for i := range 20 {
			if ask(turns, keyOf(i), noon, now) {
				granted++
			}
		}
		if granted != 1 {
			t.Errorf("%d may restart at one time", granted)
		}
	})
	t.Run("V10 one whose write is refused for ever is not first for ever", func(t *testing.T) {
		turns := &turns{most: 1}
		ask(turns, a, noon, noon)
		ask(turns, b, noon.Add(1), noon.Add(turnLimit-1))
		if ask(turns, a, noon, noon.Add(turnLimit)) || !ask(turns, b, noon.Add(1), noon.Add(turnLimit)) {
			t.Error("it goes before one that waited")
		}
	})
	t.Run("V10 one that was let and has nothing to restart gives its place back", func(t *testing.T) {
		turns := &turns{most: 1}
		if ask(turns, a, noon, noon); ask(turns, b, noon, noon) {
			t.Error("both go")
		}
		turns.forget(a)
		if !ask(turns, b, noon, noon) {
			t.Error("the place is lost")
		}
	})
}
