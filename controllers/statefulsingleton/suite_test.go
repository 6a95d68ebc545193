package statefulsingleton_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// These tests run against a real API server. fakecontrolplane_test.go simulates the
// kubelets, and invariant_test.go watches them. Tests on real nodes check the behavior of
// real kubelets.

var (
	scheme = runtime.NewScheme()
	server apiserver.Server
	user   client.WithWatch // a user with kubectl and all rights
)

// The operator has the rights of config/rbac and no others. A user has the rights of the
// edit role on pods.
const (
	operatorNamespace = "operator-system"
	theOperator       = apiserver.TheOperator
	anotherUser       = "a-user"
)

func TestAPI(t *testing.T) { apiserver.Run(t, "StatefulSingleton") }

var _ = BeforeSuite(func(ctx SpecContext) {
	server = apiserver.Start(scheme, v1.AddToScheme)
	user = server.User
	giveRights(ctx)
	for _, name := range []string{"node-1", "node-2"} {
		addNode(ctx, name)
	}
	startFakeControlPlane()
	server.ServeWebhooks(func(mgr ctrl.Manager) error {
		return webhooks.SetupWebhook(mgr, "image", &nodestate.ImageVolumes{Nodes: mgr.GetCache(), Now: time.Now}, operatorNamespace)
	})
	installGuard(ctx)
})

// giveRights binds the operator to the shipped roles, and a user to the usual rights of a
// developer in a namespace.
func giveRights(ctx context.Context) {
	server.GiveRights(ctx, "statefulsingleton-role", "cluster-scoped-role", "installer-role")
	edit := &rbacv1.ClusterRole{ObjectMeta: named("edits-pods"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"}}}}
	Expect(user.Create(ctx, edit)).To(Succeed())
	Expect(rbac.Bind(ctx, user, "", "ClusterRole", edit.Name, anotherUser)).To(Succeed())
}

// as returns a client of that user.
func as(who string) client.Client { return server.As(who) }

// installGuard lets an operator install the guard policy, and waits until the API server
// has it.
func installGuard(ctx context.Context) {
	Expect(user.Create(ctx, &corev1.Namespace{ObjectMeta: named(probes)})).To(Succeed())
	Expect(user.Create(ctx, newSingleton(probes))).To(Succeed())
	op := startOperator(operatorOptions{namespaces: []string{probes}})
	defer op.stop()
	outage(ctx, func() {
		Eventually(func() string { return refusal(ctx, newPod(probes, "probe")) }).Should(ContainSubstring("denied request"))
	})
}

// clock is the clock of an operator. It is ahead of the API server's, so that objects have
// already settled when they are created.
type clock struct{ ahead atomic.Int64 }

const settled = 3 * time.Second

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) forward(by time.Duration) { c.ahead.Add(int64(by)) }

// operator is one process of the operator, in this process.
type operator struct {
	clock
	cancel context.CancelFunc
	done   chan error
}

// operatorOptions configure an operator and its faults.
type operatorOptions struct {
	namespaces []string
	name       string // the operator's own namespace; default operatorNamespace
	rest       func(*rest.Config)
	onTime     bool // its clock is not ahead
}

// startOperator starts an operator for these namespaces, and stops it when the test ends.
func startOperator(o operatorOptions) *operator {
	GinkgoHelper()
	conf := rest.CopyConfig(server.Config)
	conf.Impersonate.UserName = theOperator
	if o.rest != nil {
		o.rest(conf)
	}
	namespaces := map[string]cache.Config{}
	for _, ns := range o.namespaces {
		namespaces[ns] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(conf, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: namespaces, ByObject: statefulsingleton.Cache()},
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(5 * time.Second),
	})
	Expect(err).NotTo(HaveOccurred())
	op := &operator{done: make(chan error, 1)}
	if !o.onTime {
		op.forward(settled)
	}
	own := operatorNamespace
	if o.name != "" {
		own = o.name
	}
	Expect(statefulsingleton.SetupWithClock(mgr, statefulsingleton.Options{Namespace: own}, op.now)).To(Succeed())
	keeper := policy.Keeper{Live: mgr.GetAPIReader(), Runner: &action.Runner{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}}
	Expect(mgr.Add(observe.NewGuardKeeper(keeper, own, nil))).To(Succeed())
	var ctx context.Context
	ctx, op.cancel = context.WithCancel(context.Background())
	go func() { op.done <- mgr.Start(ctx); close(op.done) }()
	DeferCleanup(op.stop)
	return op
}

// stop stops the operator as a kill does: pending writes are lost.
func (o *operator) stop() {
	o.cancel()
	if err := <-o.done; err != nil {
		GinkgoLogr.Info("the operator exited", "error", err) // when killed, it may end with any error
	}
}

// newNamespace creates a namespace that the invariant checks.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := server.NewNamespace(ctx)
	DeferCleanup(func(ctx SpecContext) {
		theInvariant.judge(ctx, ns)
		sweep(ctx, ns)
	})
	return ns
}

// sweep deletes the pods of a namespace.
func sweep(ctx context.Context, namespace string) {
	GinkgoHelper()
	in := client.InNamespace(namespace)
	var left corev1.PodList
	Expect(user.List(ctx, &left, in)).To(Succeed())
	for i := range left.Items {
		Expect(client.IgnoreNotFound(user.Patch(ctx, &left.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
	}
	Expect(user.DeleteAllOf(ctx, &corev1.Pod{}, in, client.GracePeriodSeconds(0))).To(Succeed())
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
