package hostile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
)

// target is a webhook server that is attacked from many addresses.
type target struct {
	// at is host:port. prefix precedes the webhooks' paths in the API server's requests.
	at, prefix string
}

// withToken starts the webhooks as config/default does: with the certificate of a Secret, so that the
// paths have a token.
func (s *site) withToken(t *testing.T) target {
	t.Helper()
	g, folder := NewWithT(t), t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "stateful-operator-webhook-certs"},
		Data:       map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}})).To(Succeed())
	token := sha256.Sum256(append([]byte("caller "), key...))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	to := target{at: listener.Addr().String(), prefix: "/" + hex.EncodeToString(token[:])}
	_, port, err := net.SplitHostPort(to.at)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())
	out, err := os.Create(filepath.Join(folder, "log"))
	g.Expect(err).NotTo(HaveOccurred())
	webhooks := exec.Command(s.operator.Path, "--components=webhooks", "--namespace=operators", "--gate-image=gate", "--webhook-cert-dir="+folder,
		"--webhook-port="+port, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	webhooks.Env, webhooks.Stdout, webhooks.Stderr = s.operator.Env, out, out
	g.Expect(webhooks.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = webhooks.Process.Signal(syscall.SIGTERM)
		_ = webhooks.Wait()
		out.Close()
	})
	g.Eventually(func() error { return to.asked(t.Context()) }, time.Minute).Should(Succeed())
	return to
}

// asked sends a request to the pod webhook with the timeout of the webhook configuration. A status
// other than 200 is an error: the API server would reject the pod.
func (to target) asked(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	return to.answers(ctx)
}

// answers sends a review of a small pod to the pod webhook.
func (to target) answers(ctx context.Context) error {
	status, err := send(ctx, trusting, "https://"+to.at+to.prefix+"/mutate--v1-pod", fmt.Sprintf(review, `{"name":"a","image":"a"}`))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

func send(ctx context.Context, by *http.Client, url, body string) (int, error) {
	return sendAs(ctx, by, "application/json", url, body)
}

func sendAs(ctx context.Context, by *http.Client, contentType, url, body string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", contentType)
	answer, err := by.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// forged is a review of an object for which the webhook would do a dry run, in the name of an
// administrator.
const forged = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"hostile",` +
	`"userInfo":{"username":"admin","groups":["system:masters"]},"kind":{"group":"enge.me","version":"v1alpha1","kind":"StatefulCluster"},` +
	`"resource":{"group":"enge.me","version":"v1alpha1","resource":"statefulclusters"},"object":{"apiVersion":"enge.me/v1alpha1","kind":"StatefulCluster",` +
	`"metadata":{"name":"a","namespace":"hostile"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},` +
	`"spec":{"containers":[{"name":"a","image":"a"}]}}}}}}`

// strangers are attacks that each of many addresses repeats until ctx ends.
var strangers = []struct {
	name string
	do   func(ctx context.Context, by *http.Client, at string)
}{
	{"forged reviews of objects", func(ctx context.Context, by *http.Client, at string) {
		_, _ = send(ctx, by, "https://"+at+"/validate-enge-me-v1alpha1-statefulcluster", forged)
	}},
	{"reviews of pods", func(ctx context.Context, by *http.Client, at string) {
		_, _ = send(ctx, by, "https://"+at+"/mutate--v1-pod", fmt.Sprintf(review, `{"name":"a","image":"a"}`))
	}},
	{"large bodies", func(ctx context.Context, by *http.Client, at string) {
		_, _ = send(ctx, by, "https://"+at+"/mutate--v1-pod", largeBody())
	}},
	{"slow bodies", func(ctx context.Context, by *http.Client, at string) {
		slow, end := io.Pipe()
		go func() {
			for ctx.Err() == nil {
				if _, err := end.Write([]byte("{")); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond) // the rate at which the body is sent
			}
			end.Close()
		}()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+at+"/mutate--v1-pod", slow)
		if err != nil {
			return
		}
		if answer, err := by.Do(request); err == nil {
			answer.Body.Close()
		}
		slow.Close()
	}},
	{"handshakes", func(ctx context.Context, by *http.Client, at string) {
		within, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		plain, err := by.Transport.(*http.Transport).DialContext(within, "tcp", at)
		if err != nil {
			return
		}
		defer plain.Close()
		_ = tls.Client(plain, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(within)
	}},
}

var largeBody = sync.OnceValue(func() string { return filled(2900<<10, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`) })

// attackVariable configures the process of the attackers: the index of the attack, the number of
// addresses, and the server.
const attackVariable = "HOSTILE_ADDRESSES"

// TestStrangers is the process of the attackers, which ends when its input is closed. It has the lowest
// priority: real attackers are on other machines and use the operator's CPUs only through their
// requests.
func TestStrangers(t *testing.T) {
	var which, addresses int
	var at string
	if _, err := fmt.Sscanf(os.Getenv(attackVariable), "%d %d %s", &which, &addresses, &at); err != nil {
		t.Skip("TestAPIHostileAddresses starts this as a process") // not a test when run directly
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var tries atomic.Int64
	for i := range addresses {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i))}}
		by := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dialer.DialContext,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 8}}
		for range 8 {
			all.Go(func() {
				for ctx.Err() == nil {
					strangers[which].do(ctx, by, at)
					tries.Add(1)
				}
			})
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	fmt.Println("attempts of unauthenticated clients:", tries.Load())
	os.Exit(0) // does not wait for slow requests
}

// attackFrom starts the attackers, and returns a function that stops them.
func attackFrom(t *testing.T, which, addresses int, at string) (end func()) {
	g := NewWithT(t)
	program, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	process := exec.Command("nice", "-n", "19", program, "-test.run=^TestStrangers$")
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", attackVariable, which, addresses, at))
	var out bytes.Buffer
	process.Stdout = &out
	input, err := process.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(process.Start()).To(Succeed())
	return sync.OnceFunc(func() {
		input.Close()
		g.Expect(process.Wait()).To(Succeed())
		t.Log(strings.TrimSpace(out.String()))
	})
}

// waits sends the given number of requests, ten in parallel. It returns their durations and errors.
func (to target) waits(t *testing.T, times int) (took []time.Duration, failed []error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 10 {
		all.Go(func() {
			for range times / 10 {
				time.Sleep(50 * time.Millisecond) // leaves CPU time to the attackers
				began := time.Now()
				err := to.asked(t.Context())
				mu.Lock()
				took = append(took, time.Since(began))
				if err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took, failed
}

// TestAPIHostileAddresses verifies N9: a hundred addresses without credentials do not prevent the
// creation of pods.
func TestAPIHostileAddresses(t *testing.T) {
	if !*long {
		t.Skip("it measures times, and requires -long: make test-hostile")
	}
	s := newSite(t)
	const addresses, times = 100, 1000
	for _, mode := range []struct {
		name string
		to   target
	}{
		{"with a token in the paths", s.withToken(t)},
		{"with a mounted certificate", target{at: s.webhooks}},
	} {
		quiet, failed := mode.to.waits(t, times)
		NewWithT(t).Expect(failed).To(BeEmpty())
		all := []figures{{mode.name + ", quiet", quiet, 0}}
		for which, a := range strangers {
			t.Run(mode.name+", "+a.name, func(t *testing.T) {
				end := attackFrom(t, which, addresses, mode.to.at)
				defer end()
				time.Sleep(2 * time.Second) // until the attack has started
				took, failed := mode.to.waits(t, times)
				all = append(all, figures{fmt.Sprintf("%d addresses, %s", addresses, a.name), took, 0})
				NewWithT(t).Expect(failed).To(BeEmpty())
			})
		}
		t.Logf("\n%s", table(all))
	}
}
