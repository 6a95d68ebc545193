// Package hostile attacks the operator as it is deployed: a process with the memory limit of
// its manifest. It must live through everything, and serve the other tenants.
package hostile

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// limit is that of config/manager.
const limit = 512 << 20

// site is an API server, and the operator as a process.
type site struct {
	admin    client.Client
	operator *exec.Cmd
	log      *bytes.Buffer
	webhooks string // address
	n        int    // neighbours so far
}

func newSite(t *testing.T) *site {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	g, root := NewWithT(t), filepath.Join("..", "..")
	server := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join(root, "config", "webhook", "manifests.yaml")}},
	}
	t.Cleanup(func() { g.Expect(server.Stop()).To(Succeed()) })
	_, err := server.Start()
	g.Expect(err).NotTo(HaveOccurred())
	scheme, err := controllers.Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	admin, err := client.New(server.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "operators"}})).To(Succeed())

	folder, at := t.TempDir(), server.WebhookInstallOptions
	program, kubeconfig := filepath.Join(folder, "operator"), filepath.Join(folder, "kubeconfig")
	g.Expect(cluster.Host(t.Context(), os.Stderr, ".", program)).To(Succeed())
	g.Expect(os.WriteFile(kubeconfig, server.KubeConfig, 0o600)).To(Succeed())
	s := &site{admin: admin, log: &bytes.Buffer{}, webhooks: net.JoinHostPort(at.LocalServingHost, fmt.Sprint(at.LocalServingPort))}
	s.operator = exec.Command(program, "--namespace=operators", "--leader-elect=false", "--gate-image=gate", "--webhook-cert-dir="+at.LocalServingCertDir,
		fmt.Sprint("--webhook-port=", at.LocalServingPort), "--metrics-bind-address=0", "--health-probe-bind-address=0")
	s.operator.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "WATCH_NAMESPACE=", fmt.Sprint("MEMORY_LIMIT=", limit))
	s.operator.Stdout, s.operator.Stderr = s.log, s.log
	g.Expect(s.operator.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = s.operator.Process.Signal(syscall.SIGTERM)
		_ = s.operator.Wait()
	})
	g.Eventually(func() error { return s.answers() }, time.Minute).Should(Succeed())
	return s
}

var peakLine = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak is the most memory that the operator had, in bytes.
func (s *site) peak() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.operator.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := peakLine.FindSubmatch(status)
	if found == nil {
		return 0, errors.New("the operator has ended")
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10, err
}

var trusting = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 100}} // as any stranger

// post sends a body to a webhook. What comes back is the attacker's.
func (s *site) post(path string, body io.Reader) (status int, err error) {
	answer, err := trusting.Post("https://"+s.webhooks+path, "application/json", body)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"default",` +
	`"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"},"spec":{"containers":[%s]}}}}`

// answers asks the webhook of pods for a small one.
func (s *site) answers() error {
	status, err := s.post("/mutate--v1-pod", strings.NewReader(fmt.Sprintf(review, `{"name":"a","image":"a"}`)))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

// serves has the operator make what a neighbour asks for.
func (s *site) serves(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	s.n++
	name := fmt.Sprintf("neighbour-%d", s.n)
	g.Expect(s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	g.Eventually(func() error { return s.admin.Create(t.Context(), wanted(name)) }, time.Minute).Should(Succeed())
	g.Eventually(func() ([]corev1.Pod, error) {
		var pods corev1.PodList
		err := s.admin.List(t.Context(), &pods, client.InNamespace(name))
		return pods.Items, err
	}, time.Minute).Should(HaveLen(1), "the operator does nothing for %s", name)
}

// paths are those of all webhooks.
var paths = []string{
	"/mutate--v1-pod", "/mutate-fissile-cloudfoundry-org-v1alpha1-pod", "/mutate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset",
	"/validate-enge-me-v1alpha1-statefulcluster", "/validate-clusterlabs-org-v1alpha1-replicatedstatefulset",
	"/validate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset", "/validate-apps-openshift-statefulsingleton-com-v1-statefulsingleton",
}

// atOnce sends the body to each webhook, so many times at one time.
func (s *site) atOnce(times int, body string) {
	var all sync.WaitGroup
	for _, path := range paths {
		for range times {
			all.Go(func() { _, _ = s.post(path, strings.NewReader(body)) })
		}
	}
	all.Wait()
}

// filled is a review whose list of containers has about that many bytes of one element.
func filled(size int, element string) string {
	return fmt.Sprintf(review, strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ","))
}

// connections holds more than the operator takes, some with a request that never ends.
func (s *site) connections() {
	var open []net.Conn
	for i := range 2000 {
		connection, err := tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", s.webhooks, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			continue
		}
		open = append(open, connection)
		if i%10 == 0 {
			_, _ = io.WriteString(connection, "POST /mutate--v1-pod HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n{")
		}
	}
	for _, connection := range open {
		connection.Close()
	}
}

func TestAPIHostile(t *testing.T) {
	s := newSite(t)
	s.serves(t)
	for _, attack := range []struct {
		name string
		make func()
	}{
		{"bodies of 6 MiB of empty containers", func() { s.atOnce(4, filled(6<<20, `{"name":""}`)) }},
		{"bodies below the bound of empty containers", func() { s.atOnce(8, filled(2900<<10, `{"name":""}`)) }},
		{"bodies of elements that are nothing", func() { s.atOnce(8, filled(2900<<10, `null`)) }},
		{"bodies with as many parts as may be", func() { s.atOnce(16, filled(300<<10, `{"name":""}`)) }},
		{"bodies of long strings", func() { s.atOnce(8, filled(2900<<10, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)) }},
		{"deep bodies", func() { s.atOnce(8, strings.Repeat("[", 50000)) }},
		{"no JSON", func() { s.atOnce(8, strings.Repeat("x", 2900<<10)) }},
		{"connections that are held", s.connections},
	} {
		t.Run(attack.name, func(t *testing.T) {
			g := NewWithT(t)
			attack.make()
			peak, err := s.peak()
			g.Expect(err).NotTo(HaveOccurred(), "%s", s.log)
			t.Logf("the operator had at most %d MiB", peak>>20)
			g.Expect(peak).To(BeNumerically("<", limit), "the kernel would have ended it") // some 50 MiB of it is the program's file
			g.Eventually(s.answers, time.Minute).Should(Succeed())
			s.serves(t)
		})
	}
}
