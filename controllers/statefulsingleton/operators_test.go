package statefulsingleton_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// pause blocks an operator at the first write that matches, as a machine that hangs does.
type pause struct {
	at      func(path, body string) bool
	once    sync.Once
	reached chan struct{}
	goOn    chan struct{}
	after   chan int // the status code of the API server's response
}

func pauseAt(at func(path, body string) bool) *pause {
	return &pause{at: at, reached: make(chan struct{}), goOn: make(chan struct{}), after: make(chan int, 1)}
}

func (p *pause) into(conf *rest.Config) {
	conf.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) { return p.trip(next, r) })
	})
}

func (p *pause) trip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch || r.Body == nil {
		return next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	first := false
	if p.at(r.URL.Path, string(body)) {
		p.once.Do(func() { first = true })
	}
	if !first {
		return next.RoundTrip(r)
	}
	close(p.reached)
	select {
	case <-p.goOn:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	resp, err := next.RoundTrip(r)
	if err == nil {
		p.after <- resp.StatusCode
	}
	return resp, err
}

var _ = Describe("S24 two operators without a lease", func() {
	var ns string
	var s *v1.StatefulSingleton
	var a, b, c *corev1.Pod
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		first := startOperator(operatorOptions{namespaces: []string{ns}})
		s = declare(ctx, newSingleton(ns))
		a = add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		b = add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		first.stop()
	})
	// standsStill starts an operator that blocks at the selected write when pod a is
	// deleted.
	standsStill := func(ctx SpecContext, p *pause) {
		GinkgoHelper()
		startOperator(operatorOptions{namespaces: []string{ns}, rest: p.into})
		remove(ctx, a)
		Eventually(p.reached).Should(BeClosed())
	}
	// wakes unblocks the operator, and returns the API server's status code.
	wakes := func(p *pause) int {
		GinkgoHelper()
		close(p.goOn)
		var answer int
		Eventually(p.after).Should(Receive(&answer))
		return answer
	}
	naming := func(path, body string) bool {
		return strings.HasSuffix(path, "/db/status") && strings.Contains(body, `"holder"`)
	}
	granting := func(path, body string) bool {
		return strings.HasSuffix(path, "/pods/b") && strings.Contains(body, v1.AnnotationGrant)
	}

	It("a delayed write of the holder conflicts", func(ctx SpecContext) {
		p := pauseAt(naming)
		standsStill(ctx, p)
		startOperator(operatorOptions{namespaces: []string{ns}})
		activates(ctx, s, b)
		c = add(ctx, newPod(ns, "c"))
		activates(ctx, s, b, "c")
		remove(ctx, b)
		activates(ctx, s, c)
		Expect(wakes(p)).To(Equal(http.StatusConflict))
		look(ctx, s)
		activates(ctx, s, c)
	})

	It("a delayed grant conflicts after another operator has granted the pod", func(ctx SpecContext) {
		p := pauseAt(granting)
		standsStill(ctx, p)
		startOperator(operatorOptions{namespaces: []string{ns}})
		activates(ctx, s, b)
		c = add(ctx, newPod(ns, "c"))
		activates(ctx, s, b, "c")
		Expect(wakes(p)).To(Equal(http.StatusConflict))
		remove(ctx, b)
		activates(ctx, s, c)
	})

	It("a delayed grant is refused for a pod that another operator has skipped", func(ctx SpecContext) {
		p := pauseAt(granting)
		standsStill(ctx, p)
		tell(ctx, b, playHang, "yes")
		remove(ctx, b) // it will never be granted, and does not stop at once
		c = add(ctx, newPod(ns, "c"))
		startOperator(operatorOptions{namespaces: []string{ns}})
		activates(ctx, s, c)
		Expect(live(ctx, b).DeletionTimestamp).NotTo(BeNil())
		Expect(wakes(p)).To(BeElementOf(http.StatusConflict, http.StatusUnprocessableEntity))
		look(ctx, s)
		Expect(granted(live(ctx, b))).To(BeFalse())
		activates(ctx, s, c)
	})

	It("never start two pods when they run at the same time", func(ctx SpecContext) {
		for range 2 {
			startOperator(operatorOptions{namespaces: []string{ns}})
		}
		present := b
		remove(ctx, a)
		for i := range 6 {
			next := add(ctx, newPod(ns, fmt.Sprint("next-", i)))
			activates(ctx, s, present, next.Name)
			remove(ctx, present)
			present = next
		}
		activates(ctx, s, present)
	})
})

var _ = Describe("a new object", func() {
	It("starts no pod until every API server knows it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		op := startOperator(operatorOptions{namespaces: []string{ns}, onTime: true})
		op.forward(-time.Hour) // the object does not settle until the test advances the clock
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a"))
		Eventually(func() string { return look(ctx, s).Message }).Should(Equal("the StatefulSingleton is new; pod a starts in a moment"))
		Expect(granted(live(ctx, a))).To(BeFalse())
		op.forward(time.Hour + settled)
		look(ctx, s)
		activates(ctx, s, a)
	})
})
