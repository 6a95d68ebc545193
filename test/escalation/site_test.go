// Package escalation tests that users cannot do through the operator what their own rights do not allow.
// Each attempt specifies the user and the error that blocks it.
package escalation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/manifest"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

const (
	operatorNamespace = "stateful-operator-system"
	tenant            = "tenant"
)

// site is an API server, and the components of the operator in this process. Each component has its own
// account.
type site struct {
	server *envtest.Environment
	admin  client.Client
	// stops holds the functions that stop the components of the operator, by account.
	stops map[string]func()
}

var config = filepath.Join("..", "..", "config")

func newSite(t *testing.T) site {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	g := NewWithT(t)
	s := site{stops: map[string]func(){}, server: &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(config, "crd", "bases")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join(config, "webhook", "manifests.yaml")}},
	}}
	t.Cleanup(func() { g.Expect(s.server.Stop()).To(Succeed()) })
	_, err := s.server.Start()
	g.Expect(err).NotTo(HaveOccurred())
	scheme, err := controllers.Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	s.admin, err = client.New(s.server.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{operatorNamespace, tenant} {
		g.Expect(s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	s.giveRoles(t)
	s.startOperator(t)
	return s
}

// giveRoles creates the roles of the operator and the editor roles, and binds the operator's accounts.
func (s site) giveRoles(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, file := range []string{"role.yaml", "statefulcluster_editor_role.yaml", "replicatedstatefulset_editor_role.yaml",
		"extendedstatefulset_editor_role.yaml", "statefulsingleton_editor_role.yaml"} {
		roles, err := manifest.ReadFile[rbacv1.ClusterRole](filepath.Join(config, "rbac", file))
		g.Expect(err).NotTo(HaveOccurred())
		for _, role := range roles {
			if role.Kind == "Role" {
				g.Expect(s.admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: role.Name}, Rules: role.Rules})).To(Succeed())
				continue
			}
			g.Expect(s.admin.Create(t.Context(), &role)).To(Succeed())
		}
	}
	bindings, err := manifest.ReadFile[rbacv1.ClusterRoleBinding](filepath.Join(config, "rbac", "role_bindings.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			user := accountOf(subject.Name)
			namespace := ""
			if binding.Kind == "RoleBinding" {
				namespace = operatorNamespace
			}
			s.bind(t, namespace, binding.RoleRef.Kind, binding.RoleRef.Name, user)
		}
	}
}

// accountOf returns the user name of a service account of config/rbac.
func accountOf(name string) string {
	return "system:serviceaccount:" + operatorNamespace + ":stateful-operator-" + name
}

// bind binds a role to a user in a namespace, or in all namespaces if namespace is "".
func (s site) bind(t *testing.T, namespace, kind, role, user string) {
	t.Helper()
	NewWithT(t).Expect(rbac.Bind(t.Context(), s.admin, namespace, kind, role, user)).To(Succeed())
}

// startOperator starts each component of the operator under its own account, and waits for the webhooks.
func (s site) startOperator(t *testing.T) {
	t.Helper()
	at := s.server.WebhookInstallOptions
	s.start(t, "installer", "--components=installer")
	webhooks := s.start(t, "webhook", "--components=webhooks", "--webhook-cert-dir="+at.LocalServingCertDir, fmt.Sprint("--webhook-port=", at.LocalServingPort), "--gate-image=gate")
	NewWithT(t).Eventually(func() error { return webhooks.GetWebhookServer().StartedChecker()(nil) }, time.Minute).Should(Succeed())
	s.startControllers(t)
}

// startControllers starts the controllers. It may be called again after they were stopped.
func (s site) startControllers(t *testing.T) {
	t.Helper()
	s.start(t, controllersAccount, "--components=controllers")
}

const controllersAccount = "controller-manager"

// start starts a component of the operator under its own account. It runs until stops[account] is called or
// the test ends.
func (s site) start(t *testing.T, account string, args ...string) ctrl.Manager {
	t.Helper()
	g := NewWithT(t)
	options, err := controllers.ParseOptions(append(args, "--namespace="+operatorNamespace, "--make-certificates=false",
		"--health-probe-bind-address=0", "--metrics-bind-address=0"), func(string) string { return "" }, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	own := rest.CopyConfig(s.server.Config)
	own.Impersonate = rest.ImpersonationConfig{UserName: accountOf(account), Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	managerOptions, err := options.Manager(own)
	g.Expect(err).NotTo(HaveOccurred())
	managerOptions.Controller.SkipNameValidation = new(true) // the controllers are restarted in this process
	mgr, err := ctrl.NewManager(own, managerOptions)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(controllers.Setup(mgr, options)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.stops[account] = sync.OnceFunc(func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
	t.Cleanup(s.stops[account])
	return mgr
}

// as returns a client that impersonates a user.
func (s site) as(t *testing.T, user string) client.Client {
	t.Helper()
	g := NewWithT(t)
	own := rest.CopyConfig(s.server.Config)
	own.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(own, client.Options{Scheme: s.admin.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// awaitPolicies waits until the API server rejects the creation of each object by the actor.
func (s site) awaitPolicies(t *testing.T, actor client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		NewWithT(t).Eventually(func() error {
			err := actor.Create(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
			if err == nil {
				return errors.New("it is not refused")
			}
			return nil
		}, time.Minute, 100*time.Millisecond).Should(Succeed(), "%T", object)
	}
}
