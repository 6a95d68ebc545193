// Package kubecontrollers tests the interaction with Kubernetes' controllers without kubelets: an API
// server with kube-controller-manager and the operator as installed by config/namespaced.
package kubecontrollers

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

const (
	own  = "stateful-operator-system"
	data = "stateful-data"
)

var config = filepath.Join("..", "..", "config")

// site is an API server with the namespace controller, and config/namespaced.
type site struct {
	*WithT
	server  *envtest.Environment
	admin   client.Client
	objects []unstructured.Unstructured
	// stops has functions that stop the parts of the operator, by account.
	stops map[string]func()
	// kubeconfig is a file for programs.
	kubeconfig string
}

// newSite starts the API server and the controllers of Kubernetes.
func newSite(t *testing.T) *site {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	log.SetLogger(logr.Discard())
	s := (&site{stops: map[string]func(){}, server: &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(config, "crd", "bases")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join(config, "webhook", "manifests.yaml")}},
	}}).of(t)
	t.Cleanup(func() { s.Expect(s.server.Stop()).To(Succeed()) })
	_, err := s.server.Start()
	s.Expect(err).NotTo(HaveOccurred())
	scheme, err := controllers.Scheme()
	s.Expect(err).NotTo(HaveOccurred())
	s.admin, err = client.New(s.server.Config, client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())
	s.objects, err = manifest.Render(filepath.Join(config, "namespaced"))
	s.Expect(err).NotTo(HaveOccurred())
	s.startKubernetes(t)
	return s
}

// of returns the site for a part of the test.
func (s *site) of(t *testing.T) *site {
	t.Helper()
	part := *s
	part.WithT = NewWithT(t)
	part.SetDefaultEventuallyTimeout(3 * time.Minute) // a busy machine is slow
	part.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	return &part
}

// startKubernetes starts the controllers that delete namespaces and create pods.
func (s *site) startKubernetes(t *testing.T) {
	t.Helper()
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(s.kubeconfig, s.server.KubeConfig, 0o600)).To(Succeed())
	stop, err := apiserver.StartControllers(s.kubeconfig, io.Discard, "namespace-controller", "garbage-collector-controller",
		"persistentvolumeclaim-protection-controller", "clusterrole-aggregation-controller", "disruption-controller",
		"deployment-controller", "replicaset-controller", "statefulset-controller")
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(stop)
}

// install applies the namespaces, accounts and rights of config/namespaced.
func (s *site) install(ctx context.Context) {
	for _, kinds := range [][]string{{"Namespace"}, {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}} {
		for _, object := range s.objects {
			if slices.Contains(kinds, object.GetKind()) {
				s.Eventually(func() error { return manifest.Apply(ctx, s.admin, "test", object.DeepCopy()) }).Should(Succeed())
			}
		}
	}
}

// start starts a part of the operator under its own account. It runs until its function in stops is
// called.
func (s *site) start(t *testing.T, account string, args ...string) {
	t.Helper()
	options, err := controllers.ParseOptions(append(args, "--namespace="+own, "--watch-namespaces="+data, "--make-certificates=false",
		"--health-probe-bind-address=0", "--metrics-bind-address=0"), func(string) string { return "" }, io.Discard)
	s.Expect(err).NotTo(HaveOccurred())
	conf := rest.CopyConfig(s.server.Config)
	conf.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + own + ":stateful-operator-" + account,
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	managerOptions, err := options.Manager(conf)
	s.Expect(err).NotTo(HaveOccurred())
	managerOptions.Controller.SkipNameValidation = new(true) // it is started more than once in this process
	mgr, err := ctrl.NewManager(conf, managerOptions)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(controllers.Setup(mgr, options)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = mgr.Start(ctx) // it fails to start without rights
	}()
	s.stops[account] = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(s.stops[account])
}

// startControllers starts the controllers, which remove finalizers.
func (s *site) startControllers(t *testing.T) {
	t.Helper()
	s.start(t, "controller-manager", "--components=controllers")
}

// guarded are the kinds whose objects protect the rights of the operator from deletion.
var guarded = []string{"statefulcluster", "replicatedstatefulset", "extendedstatefulset", "statefulsingleton"}

// startInstaller starts the installer, and waits for the policies that protect the rights.
func (s *site) startInstaller(t *testing.T) {
	t.Helper()
	s.start(t, "installer", "--components=installer")
	s.Eventually(func(g Gomega) {
		var bindings admissionv1.ValidatingAdmissionPolicyBindingList
		g.Expect(s.admin.List(t.Context(), &bindings)).To(Succeed())
		for _, kind := range guarded {
			g.Expect(bindings.Items).To(ContainElement(HaveField("Name", kind+"-rights-"+own)))
		}
	}).Should(Succeed())
}

// fill creates a sample of each kind, and waits until the finalizers are added.
func (s *site) fill(ctx context.Context) {
	finalized := 0
	var all []unstructured.Unstructured
	for _, file := range []string{"statefulcluster/plain.yaml", "replicatedstatefulset/plain.yaml", "extendedstatefulset/plain.yaml", "statefulsingleton/deployment.yaml"} {
		objects, err := manifest.ReadFile[unstructured.Unstructured](filepath.Join(config, "samples", file))
		s.Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			object.SetNamespace(data)
			s.Eventually(func() error { return manifest.Apply(ctx, s.admin, "test", object.DeepCopy()) }).Should(Succeed(), file)
			all = append(all, object)
		}
	}
	s.Eventually(func(g Gomega) {
		finalized = 0
		for _, object := range all {
			g.Expect(s.admin.Get(ctx, client.ObjectKeyFromObject(&object), &object)).To(Succeed())
			finalized += len(object.GetFinalizers())
		}
		var pods corev1.PodList
		g.Expect(s.admin.List(ctx, &pods, client.InNamespace(data))).To(Succeed())
		g.Expect(finalized).To(BeNumerically(">=", 2), "objects with finalizers")
		g.Expect(len(pods.Items)).To(BeNumerically(">=", 6), "pods")
	}).Should(Succeed())
}

// gone waits until the namespace does not exist.
func (s *site) gone(ctx context.Context) {
	s.Eventually(func() error {
		var namespace corev1.Namespace
		err := s.admin.Get(ctx, client.ObjectKey{Name: data}, &namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace exists: %w, %v", err, namespace.Status.Conditions)
	}).Should(Succeed())
}

// podKind is the kind that the namespace controller deletes first. ownerKinds are the operator's kinds
// whose objects have finalizers.
var (
	podKind    = []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}}
	ownerKinds = []schema.GroupVersionKind{
		{Group: "clusterlabs.org", Version: "v1alpha1", Kind: "ReplicatedStatefulSet"},
		{Group: "fissile.cloudfoundry.org", Version: "v1alpha1", Kind: "ExtendedStatefulSet"},
		{Group: "apps.openshift.statefulsingleton.com", Version: "v1", Kind: "StatefulSingleton"},
	}
	allKinds = slices.Concat(podKind, ownerKinds)
)

// finalized returns the objects of these kinds in the namespace that have finalizers.
func (s *site) finalized(ctx context.Context, g Gomega, kinds []schema.GroupVersionKind) (found []unstructured.Unstructured) {
	for _, kind := range kinds {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind)
		g.Expect(s.admin.List(ctx, &list, client.InNamespace(data))).To(Succeed())
		for _, object := range list.Items {
			if len(object.GetFinalizers()) > 0 {
				found = append(found, object)
			}
		}
	}
	return found
}

// release removes the finalizers, as the last command of docs/guide/uninstall.md does.
func (s *site) release(ctx context.Context, kinds []schema.GroupVersionKind) {
	s.Eventually(func(g Gomega) {
		for _, object := range s.finalized(ctx, g, kinds) {
			g.Expect(client.IgnoreNotFound(s.admin.Patch(ctx, &object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		}
		g.Expect(s.finalized(ctx, g, kinds)).To(BeEmpty())
	}).Should(Succeed())
}

// delete deletes the namespace without waiting.
func (s *site) delete(ctx context.Context) {
	s.Expect(s.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: data}})).To(Succeed())
}

// TestAPINamespace deletes the only namespace in which the operator has rights.
func TestAPINamespace(t *testing.T) {
	s := newSite(t)
	at := s.server.WebhookInstallOptions
	s.install(t.Context())
	s.startInstaller(t)
	s.start(t, "webhook", "--components=webhooks", "--webhook-cert-dir="+at.LocalServingCertDir, fmt.Sprint("--webhook-port=", at.LocalServingPort), "--gate-image=gate")
	s.startControllers(t)
	t.Run("W22 an autoscaler that checks budgets does not start, and one that taints gets an empty node", func(t *testing.T) { s.of(t).autoscalers(t) })
	for round := range 5 {
		t.Run(fmt.Sprintf("W21 deletion %d of the namespace completes", round+1), func(t *testing.T) {
			s := s.of(t)
			s.install(t.Context())
			s.fill(t.Context())
			s.delete(t.Context())
			s.gone(t.Context())
		})
	}
	t.Run("W21 deletion of the namespace completes after the operator was restarted", func(t *testing.T) { s.of(t).back(t) })
	t.Run("W21 without the policies the permissions are deleted before the finalizers", func(t *testing.T) { s.of(t).unkept(t) })
	t.Run("W21 an uninstallation completes while the operator is down", func(t *testing.T) { s.of(t).uninstall(t) })
}

// back deletes the namespace while the operator is down. When the pods are deleted, the namespace
// controller deletes everything except the rights of the operator.
func (s *site) back(t *testing.T) {
	s.install(t.Context())
	s.fill(t.Context())
	s.stops["controller-manager"]()
	s.delete(t.Context())
	s.release(t.Context(), podKind)
	s.Eventually(func(g Gomega) {
		var namespace corev1.Namespace
		g.Expect(s.admin.Get(t.Context(), client.ObjectKey{Name: data}, &namespace)).To(Succeed())
		g.Expect(namespace.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("the operator needs this permission to remove the finalizers"))))
		g.Expect(s.finalized(t.Context(), g, ownerKinds)).NotTo(BeEmpty())
	}).Should(Succeed())
	s.startControllers(t)
	s.gone(t.Context())
}

// unkept does the same without the policies: the rights are deleted, and the finalizers stay.
func (s *site) unkept(t *testing.T) {
	s.startControllers(t) // the controllers of the previous part have ended
	s.stops["installer"]()
	for _, kind := range guarded {
		s.Expect(s.admin.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: kind + "-rights-" + own}})).To(Succeed())
	}
	s.install(t.Context())
	s.fill(t.Context())
	s.stops["controller-manager"]()
	s.delete(t.Context())
	s.release(t.Context(), podKind)
	s.Eventually(func(g Gomega) {
		var bindings rbacv1.RoleBindingList
		g.Expect(s.admin.List(t.Context(), &bindings, client.InNamespace(data))).To(Succeed())
		g.Expect(bindings.Items).To(BeEmpty())
		g.Expect(s.finalized(t.Context(), g, ownerKinds)).NotTo(BeEmpty())
	}).Should(Succeed())
	s.release(t.Context(), ownerKinds)
	s.gone(t.Context())
}

// uninstall follows docs/guide/uninstall.md, for an operator that does not run.
func (s *site) uninstall(t *testing.T) {
	s.install(t.Context())
	s.startInstaller(t)
	s.startControllers(t)
	s.fill(t.Context())
	s.stops["controller-manager"]()
	s.stops["installer"]()
	for _, object := range s.finalized(t.Context(), s, allKinds) {
		s.Expect(client.IgnoreNotFound(s.admin.Delete(t.Context(), &object))).To(Succeed())
	}
	s.release(t.Context(), allKinds)
	out, err := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "--kubeconfig="+s.kubeconfig,
		"delete", "--ignore-not-found", "--timeout=3m", "-k", filepath.Join(config, "namespaced")).CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	s.gone(t.Context())
}
