package statefulcluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster"
)

// These tests run against a real API server. The kubelets are played by
// fake_control_plane_test.go; what a kubelet really does is shown on real nodes.

var (
	scheme = runtime.NewScheme()
	server *envtest.Environment
	user   client.WithWatch // a user with kubectl
)

func TestAPI(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "StatefulCluster against an API server")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	SetDefaultEventuallyTimeout(time.Minute) // a busy machine is slow, not wrong
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	server = &envtest.Environment{
		Scheme:                scheme,
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join("..", "..", "config", "webhook", "manifests.yaml")}},
	}
	DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) }) // also of one that took no CRD
	// As on OpenShift: who changes owners must be able to delete, and to finalize theirs.
	server.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	conf, err := server.Start()
	Expect(err).NotTo(HaveOccurred())
	conf.QPS = -1 // the fake control plane binds many pods: no client-side limit
	user, err = client.NewWithWatch(conf, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for i := 1; i <= 4; i++ {
		addNode(ctx, fmt.Sprintf("node-%d", i))
	}
	startWebhooks()
})

// startWebhooks serves admission for all tests.
func startWebhooks() {
	opts := server.WebhookInstallOptions
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: opts.LocalServingHost, Port: opts.LocalServingPort, CertDir: opts.LocalServingCertDir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(statefulcluster.SetupWebhook(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() { cancel(); Expect(<-done).To(Succeed()) })
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
}

// operator is one process of the operator, in this process.
type operator struct {
	cancel context.CancelFunc
	done   chan error
}

// operatorOptions disturb an operator.
type operatorOptions struct {
	namespaces []string
	wrap       func(client.Client) client.Client // sees every write
	rest       func(*rest.Config)
	lease      string // the namespace of the lease to hold; none is needed if ""
}

// startOperator starts an operator for these namespaces and ends it with the
// test.
func startOperator(o operatorOptions) *operator {
	GinkgoHelper()
	conf := rest.CopyConfig(server.Config)
	if o.rest != nil {
		o.rest(conf)
	}
	namespaces := map[string]cache.Config{}
	for _, ns := range o.namespaces {
		namespaces[ns] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(conf, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: namespaces, ByObject: statefulcluster.Cache()},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		NewClient: func(conf *rest.Config, opts client.Options) (client.Client, error) {
			c, err := client.New(conf, opts)
			if err == nil && o.wrap != nil {
				c = o.wrap(c)
			}
			return c, err
		},
		LeaderElection:                o.lease != "",
		LeaderElectionNamespace:       o.lease,
		LeaderElectionID:              "operator",
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   ptr.To(200 * time.Millisecond),
		GracefulShutdownTimeout:       ptr.To(5 * time.Second),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(statefulcluster.Setup(mgr, nil)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	op := &operator{cancel: cancel, done: make(chan error, 1)}
	go func() { op.done <- mgr.Start(ctx); close(op.done) }()
	DeferCleanup(op.stop)
	return op
}

// stop ends the operator as a kill does: what was not written is lost.
func (o *operator) stop() {
	o.cancel()
	if err := <-o.done; err != nil {
		GinkgoLogr.Info("the operator ended", "error", err) // killed, it may end with what it likes
	}
}

// newNamespace makes a namespace with a fake control plane in it.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	Expect(user.Create(ctx, ns)).To(Succeed())
	startFakeControlPlane(ns.Name)
	return ns.Name
}
