package replicatedstatefulset_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// These tests run against a real API server.

var (
	scheme = runtime.NewScheme()
	server *envtest.Environment
	user   client.WithWatch // a person with kubectl
)

func TestAPI(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "ReplicatedStatefulSet against an API server")
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
	conf.QPS = -1 // the fake control plane plays many parts
	user, err = client.NewWithWatch(conf, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(rbac.Give(ctx, user, filepath.Join("..", "..", "config", "rbac", "role.yaml"), theOperator)).To(Succeed())
	addNode(ctx, "node-1")
	startWebhooks()
})

// theOperator has the rights of the roles that are shipped, and no others.
const theOperator = "system:serviceaccount:operator-system:manager"

func addNode(ctx context.Context, name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(user.Create(ctx, n)).To(Succeed())
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	Expect(user.Status().Update(ctx, n)).To(Succeed())
}

// startWebhooks serves admission for all tests.
func startWebhooks() {
	opts := server.WebhookInstallOptions
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: opts.LocalServingHost, Port: opts.LocalServingPort, CertDir: opts.LocalServingCertDir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(replicatedstatefulset.SetupWebhook(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() { cancel(); Expect(<-done).To(Succeed()) })
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	Expect(user.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// newSet reads the seed's manifest; change is applied to it.
func newSet(namespace string, change ...func(*v1alpha1.ReplicatedStatefulSet)) *v1alpha1.ReplicatedStatefulSet {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", "seed.yaml"))
	Expect(err).NotTo(HaveOccurred())
	set := &v1alpha1.ReplicatedStatefulSet{}
	Expect(yaml.UnmarshalStrict(text, set)).To(Succeed())
	set.Namespace = namespace
	for _, c := range change {
		c(set)
	}
	return set
}

// warned collects what the API server warns of, whoever asks it.
type warned struct {
	who   string // an administrator if ""
	texts []string
}

func (w *warned) HandleWarningHeader(_ int, _ string, text string) { w.texts = append(w.texts, text) }

func (w *warned) client() client.Client {
	GinkgoHelper()
	conf := rest.CopyConfig(server.Config)
	conf.WarningHandler, conf.Impersonate.UserName = w, w.who
	c, err := client.New(conf, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// clean is an error's text without the prefix that names the webhook.
func clean(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), `admission webhook "replicatedstatefulsets.clusterlabs.org" denied the request: `)
}

// events are the reasons of those in a namespace.
func events(ctx context.Context, namespace string) (reasons []string) {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(user.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		reasons = append(reasons, list.Items[i].Reason)
	}
	return reasons
}
