package statefulcluster_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// lagging delays all data of every watch.
type lagging struct {
	next http.RoundTripper
	lag  time.Duration
}

func (l lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err == nil && strings.Contains(r.URL.RawQuery, "watch=true") {
		resp.Body = delay(resp.Body, l.lag)
	}
	return resp, err
}

// delay forwards the data of body, delayed by lag.
func delay(body io.ReadCloser, lag time.Duration) io.ReadCloser {
	type piece struct {
		bytes []byte
		due   time.Time
		err   error
	}
	pieces := make(chan piece, 10000)
	go func() {
		for {
			buffer := make([]byte, 32<<10)
			n, err := body.Read(buffer)
			pieces <- piece{buffer[:n], time.Now().Add(lag), err}
			if err != nil {
				return
			}
		}
	}()
	read, write := io.Pipe()
	go func() {
		for p := range pieces {
			time.Sleep(time.Until(p.due)) // this is the lag itself, not a wait for something
			if _, err := io.Copy(write, bytes.NewReader(p.bytes)); err != nil || p.err != nil {
				_ = write.CloseWithError(p.err)
				return
			}
		}
	}()
	return struct {
		io.Reader
		io.Closer
	}{read, body}
}

var _ = Describe("with a cache that is ten seconds old", apiserver.First, func() {
	It("SC-31 creates and deletes no more pods than required", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return lagging{next, 10 * time.Second} })
		}})
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		atMost := func(n int) {
			GinkgoHelper()
			Eventually(func() int { return len(pods(ctx, set)) }).WithTimeout(time.Minute).Should(Equal(n))
			Consistently(func() int { return len(pods(ctx, set)) }, 12*time.Second, 50*time.Millisecond).Should(Equal(n))
		}
		atMost(3)
		Expect(claims(ctx, set)).To(HaveLen(3))
		scaleTo(ctx, set, 1)
		atMost(1)
		Expect(claims(ctx, set)).To(HaveLen(3), "no claims are created for retired members")
	})
})

// heldBack blocks creates of pods until let is closed, as in a process that is frozen after its
// decision.
type heldBack struct {
	next http.RoundTripper
	let  chan struct{}

	held    atomic.Int32
	mu      sync.Mutex
	answers []int
}

func (h *heldBack) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") {
		return h.next.RoundTrip(r)
	}
	h.held.Add(1)
	<-h.let
	resp, err := h.next.RoundTrip(r)
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers = append(h.answers, resp.StatusCode)
	}
	return resp, err
}

func (h *heldBack) answered() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.answers)
}

var _ = Describe("several operator processes", func() {
	It("V2 create each member once if one process was frozen before the create", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		frozen := &heldBack{let: make(chan struct{})}
		startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { frozen.next = next; return frozen })
		}})
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(frozen.held.Load).Should(BeEquivalentTo(3))
		startOperator(operatorOptions{namespaces: []string{ns}})
		made := names(settled(ctx, set, 3))
		Expect(set.Status.Creating).To(BeEmpty(), "all members are created")
		close(frozen.let) // the frozen process continues
		Eventually(frozen.answered).Should(Equal([]int{http.StatusConflict, http.StatusConflict, http.StatusConflict}))
		Expect(names(settled(ctx, set, 3))).To(ConsistOf(made))
		Expect(claims(ctx, set)).To(HaveLen(3))
		whole(ctx, set)
	})

	It("SC-32 act on their namespaces only", func(ctx SpecContext) {
		mine, other := newNamespace(ctx), newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{mine}})
		theirs := newSet(other, 1)
		Expect(user.Create(ctx, theirs)).To(Succeed())
		ours := newSet(mine, 1)
		Expect(user.Create(ctx, ours)).To(Succeed())
		settled(ctx, ours, 1)
		Expect(pods(ctx, theirs)).To(BeEmpty())
		startOperator(operatorOptions{namespaces: []string{mine, other}})
		settled(ctx, theirs, 1)
	})

	It("SC-33 write only while they hold the lease", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		var wrote [2]atomic.Int32
		var ops [2]*operator
		for i := range ops {
			ops[i] = startOperator(operatorOptions{namespaces: []string{ns}, lease: ns, rest: func(c *rest.Config) {
				c.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return tripper(func(r *http.Request) (*http.Response, error) {
						if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/events") {
							wrote[i].Add(1)
						}
						return next.RoundTrip(r)
					})
				})
			}})
		}
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 2)
		holder := 0
		if wrote[1].Load() > 0 {
			holder = 1
		}
		Expect(wrote[1-holder].Load()).To(BeZero())
		ops[holder].stop()
		scaleTo(ctx, set, 3)
		settled(ctx, set, 3)
		Expect(wrote[1-holder].Load()).NotTo(BeZero())
	})
})
