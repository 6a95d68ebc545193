// Package hostile attacks the operator in its deployed form: a process with the memory limit of its
// manifest. One of eight tenants is hostile. The operator must survive everything that it does, and
// serve the seven others.
package hostile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// limit is the memory limit in config/manager.
const limit = 512 << 20

// site is an API server, the operator as a process, and the tenants.
type site struct {
	ctx        context.Context // ends before the API server
	server     *envtest.Environment
	admin      client.Client
	operator   *exec.Cmd
	ended      chan struct{} // closed when the operator has ended
	logFile    string        // of the operator's log
	webhooks   string        // address
	neighbours []*tenant
	hostile    *tenant
	rounds     int // number of the neighbors' rounds so far
}

// tenant is a user with a namespace of the same name.
type tenant struct {
	client.Client
	name   string
	seen   client.Reader // reads from a watch cache of the namespace
	system client.Client // client of the cluster's own controllers
}

var config = filepath.Join("..", "..", "config")

func newSite(t *testing.T) *site {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	log.SetLogger(logr.Discard())
	g := NewWithT(t)
	s := &site{ended: make(chan struct{}), server: &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(config, "crd", "bases")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join(config, "webhook", "manifests.yaml")}},
	}}
	// Deleted objects stay in etcd for minutes.
	s.server.ControlPlane.Etcd = &envtest.Etcd{}
	s.server.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", "8589934592")
	t.Cleanup(func() { g.Expect(s.server.Stop()).To(Succeed()) })
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	s.ctx = ctx
	_, err := s.server.Start()
	g.Expect(err).NotTo(HaveOccurred())
	s.server.Config.QPS = -1
	scheme, err := controllers.Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	s.admin, err = client.New(s.server.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	s.makeNamespace(t, "operators")
	s.startOperator(t)
	s.makeTenants(t)
	s.makeNodes(t)
	return s
}

func (s *site) startOperator(t *testing.T) {
	t.Helper()
	g, folder, at := NewWithT(t), t.TempDir(), s.server.WebhookInstallOptions
	program, kubeconfig := filepath.Join(folder, "operator"), filepath.Join(folder, "kubeconfig")
	g.Expect(cluster.Host(t.Context(), os.Stderr, ".", program)).To(Succeed())
	g.Expect(os.WriteFile(kubeconfig, s.server.KubeConfig, 0o600)).To(Succeed())
	s.logFile, s.webhooks = filepath.Join(folder, "log"), net.JoinHostPort(at.LocalServingHost, fmt.Sprint(at.LocalServingPort))
	out, err := os.Create(s.logFile)
	g.Expect(err).NotTo(HaveOccurred())
	s.operator = exec.Command(program, "--namespace=operators", "--leader-elect=false", "--gate-image=gate", "--webhook-cert-dir="+at.LocalServingCertDir,
		fmt.Sprint("--webhook-port=", at.LocalServingPort), "--metrics-bind-address=0", "--health-probe-bind-address=0")
	s.operator.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "WATCH_NAMESPACE=", fmt.Sprint("MEMORY_LIMIT=", limit), "GOGC=100") // overrides `make`'s GOGC
	s.operator.Stdout, s.operator.Stderr = out, out
	g.Expect(s.operator.Start()).To(Succeed())
	go func() {
		_ = s.operator.Wait()
		out.Close()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.operator.Process.Signal(syscall.SIGTERM)
		<-s.ended
		if t.Failed() {
			t.Logf("end of the operator's log:\n%s", s.lastWords())
		}
	})
	g.Eventually(s.answers, time.Minute).Should(Succeed())
}

// lastWords returns the end of the operator's log.
func (s *site) lastWords() string {
	text, err := os.ReadFile(s.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

var peakLine = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak returns the operator's max memory since forgetPeak, in bytes. It returns an error if the
// operator has ended, because it is not restarted.
func (s *site) peak() (int64, error) {
	select {
	case <-s.ended:
		return 0, fmt.Errorf("the operator has exited: %s", s.operator.ProcessState)
	default:
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.operator.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := peakLine.FindSubmatch(status)
	if found == nil {
		return 0, errors.New("the operator exits")
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10, err
}

func (s *site) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.operator.Process.Pid), []byte("5"), 0)
}

func (s *site) makeNamespace(t *testing.T, name string) {
	t.Helper()
	NewWithT(t).Expect(s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

// makeTenants creates the tenants with the rights of a namespace's editor.
func (s *site) makeTenants(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	roles := []string{"system:aggregate-to-edit", "system:aggregate-to-view"} // aggregated into edit
	for _, kind := range []string{"statefulcluster", "replicatedstatefulset", "extendedstatefulset", "statefulsingleton"} {
		read, err := manifest.ReadFile[rbacv1.ClusterRole](filepath.Join(config, "rbac", kind+"_editor_role.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.admin.Create(t.Context(), &read[0])).To(Succeed())
		roles = append(roles, read[0].Name)
	}
	namespaces := cache.Options{Scheme: s.admin.Scheme(), Mapper: s.admin.RESTMapper(), DefaultNamespaces: map[string]cache.Config{}}
	neighbours := 3
	if *long {
		neighbours = 7
	}
	for i := range neighbours + 1 {
		n := &tenant{name: fmt.Sprint("neighbour-", i)}
		if s.neighbours = append(s.neighbours, n); i == neighbours {
			n.name, s.hostile, s.neighbours = "hostile", n, s.neighbours[:neighbours]
		} else {
			namespaces.DefaultNamespaces[n.name] = cache.Config{}
		}
		s.makeNamespace(t, n.name)
		for _, role := range roles {
			g.Expect(s.admin.Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: strings.ReplaceAll(role, ":", "-")},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: n.name}},
			})).To(Succeed())
		}
		own := rest.CopyConfig(s.server.Config)
		own.Impersonate = rest.ImpersonationConfig{UserName: n.name, Groups: []string{"system:authenticated"}}
		var err error
		n.Client, err = client.New(own, client.Options{Scheme: s.admin.Scheme(), Mapper: s.admin.RESTMapper()})
		g.Expect(err).NotTo(HaveOccurred())
	}
	seen, err := cache.New(s.server.Config, namespaces)
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = seen.Start(s.ctx) }()
	for _, n := range append(s.neighbours, s.hostile) {
		n.seen, n.system = seen, s.admin
	}
}
