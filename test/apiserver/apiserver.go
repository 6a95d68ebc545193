// Package apiserver is shared by the suites that test the kinds against a real API server. Its
// functions fail the running spec.
package apiserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// TheOperator is the user with the rights of the shipped roles.
const TheOperator = "system:serviceaccount:operator-system:manager"

// First marks specs that take long, and start before the others. Otherwise one of them is the last one, and all
// other processes wait for it.
const First = SpecPriority(1)

// Run runs the specs of a kind. They are skipped without an API server.
func Run(t *testing.T, kind string) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, kind+" against an API server")
}

// Server is an API server with the CRDs and webhook configurations of the project.
type Server struct {
	*envtest.Environment
	// User is a client with all rights.
	User client.WithWatch
	// Writes records the writes of TheOperator.
	Writes *Writes

	version *version.Version
}

// Start starts a server that ends with the suite. It adds Kubernetes' types and those of add to the
// scheme. Paths are relative to the folder of a kind's tests.
func Start(scheme *runtime.Scheme, add func(*runtime.Scheme) error) Server {
	GinkgoHelper()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	format.TruncatedDiff = false
	SetDefaultEventuallyTimeout(time.Minute) // a busy machine is slow
	// Reads by several suites at once cost more time than shorter intervals save.
	SetDefaultEventuallyPollingInterval(40 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(25 * time.Millisecond)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(add(scheme)).To(Succeed())
	s := Server{Environment: &envtest.Environment{
		Scheme: scheme,
		CRDInstallOptions: envtest.CRDInstallOptions{ // large CRDs take long on a busy machine
			Paths: []string{config("crd", "bases")}, ErrorIfPathMissing: true, MaxTime: 2 * time.Minute},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{config("webhook", "manifests.yaml")}},
	}}
	DeferCleanup(func() { Expect(s.Stop()).To(Succeed()) }) // also if a CRD was rejected
	// As on OpenShift: changing owner references requires delete on the object and update on the
	// owner's finalizers.
	s.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	conf, err := s.Start()
	Expect(err).NotTo(HaveOccurred())
	s.version = versionOf(conf)
	if asked := os.Getenv("APISERVER_VERSION"); asked != "" { // the test must run on the requested version
		Expect(s.version.String()).To(HavePrefix(asked + "."))
	}
	s.Writes = &Writes{}
	conf.Wrap(s.Writes.roundTrip)
	conf.QPS = -1 // simulated kubelets have many pods: no client-side limit
	s.User, err = client.NewWithWatch(conf, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return s
}

// config returns a path in the folder of manifests.
func config(path ...string) string {
	return filepath.Join(append([]string{"..", "..", "config"}, path...)...)
}

// GiveRights grants TheOperator exactly the roles with these names.
func (s Server) GiveRights(ctx context.Context, roles ...string) {
	GinkgoHelper()
	s.GiveRightsIn(ctx, "", roles...)
}

// GiveRightsIn grants TheOperator exactly the roles with these names in a namespace.
func (s Server) GiveRightsIn(ctx context.Context, namespace string, roles ...string) {
	GinkgoHelper()
	Expect(rbac.Give(ctx, s.User, config("rbac", "role.yaml"), namespace, TheOperator, roles...)).To(Succeed())
}

// ServeWebhooks serves the admission webhooks for all specs.
func (s Server) ServeWebhooks(setup func(ctrl.Manager) error) {
	GinkgoHelper()
	opts := s.WebhookInstallOptions
	mgr, err := ctrl.NewManager(s.Config, ctrl.Options{
		Scheme: s.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: opts.LocalServingHost, Port: opts.LocalServingPort, CertDir: opts.LocalServingCertDir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(setup(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() { cancel(); Expect(<-done).To(Succeed()) })
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
}

// NewNamespace creates a namespace and returns its name.
func (s Server) NewNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	Expect(s.User.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// As returns a client that impersonates a user.
func (s Server) As(who string) client.Client {
	GinkgoHelper()
	return (&Warned{Who: who}).Client(s)
}

// Warned collects the warnings of the API server.
type Warned struct {
	// Who is the impersonated user. Default: an administrator.
	Who   string
	Texts []string
}

// HandleWarningHeader collects a warning.
func (w *Warned) HandleWarningHeader(_ int, _ string, text string) { w.Texts = append(w.Texts, text) }

// Client returns a client whose warnings are collected.
func (w *Warned) Client(s Server) client.Client {
	GinkgoHelper()
	conf := rest.CopyConfig(s.Config)
	conf.WarningHandler, conf.Impersonate.UserName = w, w.Who
	c, err := client.New(conf, client.Options{Scheme: s.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}
