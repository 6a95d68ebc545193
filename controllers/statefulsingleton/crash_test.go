package statefulsingleton_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// guillotine kills an operator at its n-th write: before the write is sent, or after it
// took effect and before its response arrives. Nothing passes after that.
type guillotine struct {
	next  http.RoundTripper
	n     int
	after bool

	mu     sync.Mutex
	writes int
	fell   bool
	what   string
}

var errDead = errors.New("this operator was killed")

func (g *guillotine) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") {
		return g.next.RoundTrip(r)
	}
	g.mu.Lock()
	g.writes++
	number := g.writes
	g.mu.Unlock()
	if number < g.n {
		return g.next.RoundTrip(r)
	}
	if number == g.n {
		if g.after {
			if resp, err := g.next.RoundTrip(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		g.mu.Lock()
		g.fell, g.what = true, r.Method+" "+r.URL.Path
		g.mu.Unlock()
	}
	return nil, errDead
}

func (g *guillotine) hasFallen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fell
}

// cast are the objects of a story.
type cast struct {
	ns   string
	s    *v1.StatefulSingleton
	a, b *corev1.Pod
}

// story is a sequence of events in the life of an object. A live operator helps to prepare
// it, and is stopped before it begins. end returns an error about any missing part of its
// final state.
type story struct {
	name    string
	prepare func(context.Context, *cast)
	act     func(context.Context, *cast)
	end     func(context.Context, *cast) error
}

func activeA(ctx context.Context, c *cast) error { return isActive(ctx, c.s, c.a) }
func activeB(ctx context.Context, c *cast) error { return isActive(ctx, c.s, c.b) }

// aRunsAndBWaits prepares the usual initial state.
func aRunsAndBWaits(ctx context.Context, c *cast) {
	GinkgoHelper()
	c.s = declare(ctx, newSingleton(c.ns))
	c.a = add(ctx, newPod(c.ns, "a"))
	activates(ctx, c.s, c.a)
	c.b = add(ctx, newPod(c.ns, "b"))
	activates(ctx, c.s, c.a, "b")
}

var stories = []story{
	{name: "the first grant",
		prepare: func(context.Context, *cast) {},
		act: func(ctx context.Context, c *cast) {
			c.s = declare(ctx, newSingleton(c.ns))
			c.a = add(ctx, newPod(c.ns, "a"))
		},
		end: func(ctx context.Context, c *cast) error {
			var script corev1.ConfigMap
			return errors.Join(activeA(ctx, c), user.Get(ctx, client.ObjectKey{Namespace: c.ns, Name: v1.ConfigMapWrapper}, &script))
		}},
	{name: "a handover",
		prepare: aRunsAndBWaits,
		act:     func(ctx context.Context, c *cast) { remove(ctx, c.a) },
		end:     activeB},
	{name: "a pod that is older than the object",
		prepare: func(ctx context.Context, c *cast) {
			c.a = add(ctx, newPod(c.ns, "a"))
			c.s = declare(ctx, newSingleton(c.ns))
			c.b = add(ctx, newPod(c.ns, "b"))
			says(ctx, c.s, v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)
		},
		act: func(ctx context.Context, c *cast) { remove(ctx, c.a) },
		end: activeB},
	{name: "a rollout with surge",
		prepare: func(ctx context.Context, c *cast) {
			c.s = declare(ctx, newSingleton(c.ns))
			d := newDeployment(c.ns, 1)
			Expect(user.Create(ctx, d)).To(Succeed())
			c.a = add(ctx, newPod(c.ns, "a", madeBy(revision(ctx, d, "1"))))
			activates(ctx, c.s, c.a)
			c.b = newPod(c.ns, "b", madeBy(revision(ctx, d, "2")))
		},
		act: func(ctx context.Context, c *cast) { add(ctx, c.b) },
		end: activeB},
	{name: "a recreated object",
		prepare: func(ctx context.Context, c *cast) {
			c.s = declare(ctx, newSingleton(c.ns))
			c.a = add(ctx, newPod(c.ns, "a"))
			activates(ctx, c.s, c.a)
			Expect(user.Delete(ctx, c.s.DeepCopy())).To(Succeed())
			Eventually(func() bool { return isGone(ctx, c.s) }).Should(BeTrue())
		},
		act: func(ctx context.Context, c *cast) { c.s = declare(ctx, newSingleton(c.ns)) },
		end: activeA},
	{name: "an object deleted while a pod waits",
		prepare: aRunsAndBWaits,
		act: func(ctx context.Context, c *cast) {
			Expect(user.Delete(ctx, c.s.DeepCopy())).To(Succeed())
			remove(ctx, c.a)
		},
		end: func(ctx context.Context, c *cast) error {
			b := live(ctx, c.b)
			if !isGone(ctx, c.s) || !granted(b) || len(b.Finalizers) > 0 || readiness(b) != corev1.ConditionTrue {
				return fmt.Errorf("pod b is not released: %v, %v", b.ObjectMeta, b.Status.Conditions)
			}
			return nil
		}},
}

// told runs a story with an operator that is killed at its n-th write, and a new one that
// continues. It returns false if the story has fewer writes.
func told(ctx context.Context, story story, n int, after bool) bool {
	GinkgoHelper()
	c := &cast{ns: newNamespace(ctx)}
	first := startOperator(operatorOptions{namespaces: []string{c.ns}})
	story.prepare(ctx, c)
	first.stop()
	blade := &guillotine{n: n, after: after}
	killed := startOperator(operatorOptions{namespaces: []string{c.ns}, rest: func(conf *rest.Config) {
		conf.Wrap(func(next http.RoundTripper) http.RoundTripper { blade.next = next; return blade })
	}})
	story.act(ctx, c)
	Eventually(func() bool { return blade.hasFallen() || story.end(ctx, c) == nil }).Should(BeTrue())
	killed.stop()
	By(fmt.Sprintf("killed at write %d (after it: %t): %s", n, after, blade.what))
	startOperator(operatorOptions{namespaces: []string{c.ns}})
	Eventually(func() error { return story.end(ctx, c) }).Should(Succeed())
	return blade.hasFallen()
}

var _ = Describe("S24 an operator killed between any two writes", apiserver.First, func() {
	for _, s := range stories {
		It("leaves no unfinished work: "+s.name, func(ctx SpecContext) {
			// Test every second write, alternately before and after it; the seed determines
			// which ones. With as many seeds as make test-stories has, test each write in
			// both ways.
			n, step := 1+int(GinkgoRandomSeed()%2), 2
			if simtest.EveryWrite() {
				n, step = 1, 1
			}
			for ; told(ctx, s, n, n/step%2 == 0); n += step {
				Expect(n).To(BeNumerically("<", 40), "the story does not complete")
				if step == 1 {
					told(ctx, s, n, n%2 != 0)
				}
			}
			Expect(n).To(BeNumerically(">", 1), "the story has no writes")
		})
	}
})
