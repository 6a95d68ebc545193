package statefulcluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// guillotine kills an operator at its n-th write: before the write is sent, or after it took effect
// and before the response arrives. It blocks all later requests.
type guillotine struct {
	next  http.RoundTripper
	n     int
	after bool

	mu     sync.Mutex
	writes int
	fell   chan struct{}
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
	if number == g.n {
		g.what = r.Method + " " + r.URL.Path
		defer close(g.fell)
	}
	g.mu.Unlock()
	switch {
	case number < g.n:
		return g.next.RoundTrip(r)
	case number == g.n && g.after:
		if resp, err := g.next.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	return nil, errDead
}

// story is a scenario that begins with a settled set of two members.
type story struct {
	name string
	set  func(*v1alpha1.StatefulCluster)
	act  func(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod)
	end  func(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod)
}

var stories = []story{
	{name: "create", set: func(s *v1alpha1.StatefulCluster) { *s.Spec.Replicas = 0 },
		act: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			scaleTo(ctx, set, 2)
		},
		end: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			settled(ctx, set, 2)
			Expect(claims(ctx, set)).To(HaveLen(2), "no claims without a member")
		}},
	{name: "scale down",
		act: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			scaleTo(ctx, set, 1)
		},
		end: func(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
			for name := range settled(ctx, set, 1) {
				Expect(before).To(HaveKey(name))
			}
			Expect(reasonsOf(claims(ctx, set))).To(ConsistOf("", "Scaled"))
		}},
	{name: "replace a deleted member",
		act: func(ctx context.Context, _ *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
			Expect(user.Delete(ctx, anyOf(before))).To(Succeed())
		},
		end: endReplaced},
	{name: "replace a lost member",
		set: func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(1)) },
		act: func(ctx context.Context, _ *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
			setReady(ctx, anyOf(before), corev1.ConditionFalse, 0) // not before another became Ready, as in an outage
		},
		end: endReplaced},
	{name: "SC-42 update by recreating",
		act: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
				s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			})
		},
		end: func(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
			for name, p := range settled(ctx, set, 2) {
				Expect(before).To(HaveKey(name))
				Expect(p.UID).NotTo(Equal(before[name].UID))
			}
			Expect(claims(ctx, set)).To(HaveLen(2))
			Expect(set.Status.Updating).To(BeEmpty())
		}},
	{name: "update in place",
		act: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "two" })
		},
		end: func(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
			for name, p := range settled(ctx, set, 2) {
				Expect(p.UID).To(Equal(before[name].UID))
				Expect(p.Spec.Containers[0].Image).To(Equal("two"))
				Expect(p.Annotations).NotTo(HaveKey(v1alpha1.AnnotationInPlace))
			}
		}},
	{name: "update by surge",
		set: func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxSurge: intOrString(1), MaxUnavailable: intOrString(0)}
		},
		act: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "two" })
		},
		end: func(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
			for name, p := range settled(ctx, set, 2) {
				Expect(before).NotTo(HaveKey(name))
				Expect(p.Spec.Containers[0].Image).To(Equal("two"))
			}
			Expect(reasonsOf(claims(ctx, set))).To(ConsistOf("", "", "Scaled", "Scaled"))
		}},
	{name: "delete",
		act: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			Expect(user.Delete(ctx, set)).To(Succeed())
		},
		end: func(ctx context.Context, set *v1alpha1.StatefulCluster, _ map[string]corev1.Pod) {
			Eventually(func() []string { return reasonsOf(claims(ctx, set)) }).Should(ConsistOf("Deleted", "Deleted"))
		}},
}

func endReplaced(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod) {
	GinkgoHelper()
	Eventually(func() []string { return reasonsOf(claims(ctx, set)) }).Should(ConsistOf("", "", "Lost"))
	after := settled(ctx, set, 2)
	kept := 0
	for name := range after {
		if _, old := before[name]; old {
			kept++
		}
	}
	Expect(kept).To(Equal(1), "one member is replaced and the other is kept")
}

func reasonsOf(all map[string]corev1.PersistentVolumeClaim) []string {
	var reasons []string
	for _, c := range all {
		reasons = append(reasons, c.Labels[v1alpha1.LabelRetained])
	}
	return reasons
}

// tell runs a story with an operator that is killed at its n-th write, and then with a new
// operator. It returns false if the story has fewer writes.
func tell(ctx context.Context, s story, n int, after bool) bool {
	GinkgoHelper()
	ns := newNamespace(ctx)
	set := newSet(ns, 2)
	if s.set != nil {
		s.set(set)
	}
	first := startOperator(operatorOptions{namespaces: []string{ns}})
	Expect(user.Create(ctx, set)).To(Succeed())
	before := settled(ctx, set, *set.Spec.Replicas)
	first.stop()

	blade := &guillotine{n: n, after: after, fell: make(chan struct{})}
	cutOff := startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { blade.next = next; return blade })
	}})
	s.act(ctx, set, before)
	killed := blade.fallsOrRests()
	if !killed { // then the first operator must have completed the story
		s.end(ctx, set, before)
	}
	cutOff.stop()
	By(fmt.Sprintf("killed at write %d (after it: %t): %s", n, after, blade.what))
	startOperator(operatorOptions{namespaces: []string{ns}})
	s.end(ctx, set, before)
	if s.name != "delete" {
		whole(ctx, set)
	}
	return killed
}

// fallsOrRests waits until the operator was killed, or made no write for so long that the story has
// ended.
func (g *guillotine) fallsOrRests() bool {
	const rest = 3 * time.Second
	for last := -1; ; {
		select {
		case <-g.fell:
			return true
		case <-time.After(rest):
			g.mu.Lock()
			writes := g.writes
			g.mu.Unlock()
			if writes == last {
				return false
			}
			last = writes
		}
	}
}

var _ = Describe("SC-30 an operator killed between any two writes", apiserver.First, func() {
	for _, s := range stories {
		It("leaves no unwanted objects after: "+s.name, func(ctx SpecContext) {
			// Tests every second write, alternating between before and after it; the seed selects
			// which. With as many random orders as make test-stories uses, it tests each write in both
			// ways.
			n, step := 1+int(GinkgoRandomSeed()%2), 2
			if simtest.EveryWrite() {
				n, step = 1, 1
			}
			for ; tell(ctx, s, n, n/step%2 == 0); n += step {
				Expect(n).To(BeNumerically("<", 60), "number of writes in the story")
				if step == 1 {
					tell(ctx, s, n, n%2 != 0)
				}
			}
			Expect(n).To(BeNumerically(">", 1), "number of writes in the story")
		})
	}
})

var _ = Describe("SC-42 a pod that a user deletes before an update does", func() {
	It("belongs to a lost member, which is replaced", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		first := startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 1)
		Expect(user.Create(ctx, set)).To(Succeed())
		old := anyOf(settled(ctx, set, 1))
		first.stop()
		var once sync.Once
		startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/pods/"+old.Name) {
						once.Do(func() {
							_ = user.Delete(context.Background(), old.DeepCopy(), client.GracePeriodSeconds(0))
						})
					}
					return next.RoundTrip(r)
				})
			})
		}})
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		})
		Eventually(func() []string { return names(pods(ctx, set)) }).Should(And(HaveLen(1), Not(ContainElement(old.Name))))
		settled(ctx, set, 1)
		whole(ctx, set)
		Expect(reasonsOf(claims(ctx, set))).To(ConsistOf("", "Lost"))
	})
})

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func intOrString(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
