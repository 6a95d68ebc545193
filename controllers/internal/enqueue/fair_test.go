package enqueue

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace string, i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}}
}

// working starts workers that take keys until the queue shuts down. It returns the queue, and a channel
// of the taken keys.
func working(t *testing.T, workers int) (*fair, <-chan reconcile.Request) {
	t.Helper()
	f, took := Workers(workers).NewQueue("test", Workers(workers).RateLimiter).(*fair), make(chan reconcile.Request)
	t.Cleanup(f.ShutDown)
	for range workers {
		go func() {
			for {
				key, shutdown := f.Get()
				if shutdown {
					return
				}
				took <- key
			}
		}()
	}
	return f, took
}

func TestANamespaceKeepsNoOtherWaiting(t *testing.T) {
	g := NewWithT(t)
	f, took := working(t, 8)
	busy := map[reconcile.Request]bool{}
	for i := range 100 {
		f.Add(request("many", i))
	}
	for range 4 { // half of the workers
		var key reconcile.Request
		g.Eventually(took).Should(Receive(&key))
		busy[key] = true
	}
	g.Consistently(took).ShouldNot(Receive(), "the other workers serve other objects")
	f.AddWithOpts(priorityqueue.AddOpts{Priority: new(-1)}, request("few", 0))
	g.Eventually(took).Should(Receive(Equal(request("few", 0))), "an object that needs only bookkeeping waits for a worker of its own namespace")
}

func TestAllKeysOfANamespaceHaveTheirTurn(t *testing.T) {
	g := NewWithT(t)
	f, took := working(t, 8)
	for i := range 100 {
		f.Add(request("many", i))
		f.Add(request("many", i)) // the key may have been taken in between
	}
	seen := map[reconcile.Request]bool{}
	for len(seen) < 100 {
		var key reconcile.Request
		g.Eventually(took).Should(Receive(&key))
		seen[key] = true
		go f.Done(key)
	}
	g.Eventually(func() int {
		select {
		case key := <-took:
			f.Done(key)
		default:
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.taken + len(f.of) + len(f.waiting) + len(f.places)
	}).Should(BeZero())
}
