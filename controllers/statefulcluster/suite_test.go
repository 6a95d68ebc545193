package statefulcluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/webhooks"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// These tests run against a real API server. fake_control_plane_test.go simulates the kubelets; the
// specs in scorecard/promises use real nodes.

var (
	scheme = runtime.NewScheme()
	server apiserver.Server
	user   client.WithWatch // a user with kubectl
)

func TestAPI(t *testing.T) { apiserver.Run(t, "StatefulCluster") }

var _ = BeforeSuite(func(ctx SpecContext) {
	server = apiserver.Start(scheme, v1alpha1.AddToScheme)
	user = server.User
	server.GiveRights(ctx, "statefulcluster-role", "cluster-scoped-role")
	for i := 1; i <= 4; i++ {
		addNode(ctx, fmt.Sprintf("node-%d", i))
	}
	server.ServeWebhooks(webhooks.SetupWebhook)
})

// operator is an instance of the operator, running in this process.
type operator struct {
	cancel context.CancelFunc
	done   chan error
}

// operatorOptions configure an operator, and failures for it.
type operatorOptions struct {
	namespaces []string
	wrap       func(client.Client) client.Client // sees every write
	rest       func(*rest.Config)
	lease      string // the namespace of the lease to hold; none is needed if ""
}

// startOperator starts an operator for these namespaces and stops it when the test ends.
func startOperator(o operatorOptions) *operator {
	GinkgoHelper()
	conf := rest.CopyConfig(server.Config)
	if o.lease == "" { // another role has the permissions for leases
		conf.Impersonate.UserName = apiserver.TheOperator
	}
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

// stop stops the operator like a kill: writes that were not sent are lost.
func (o *operator) stop() {
	o.cancel()
	if err := <-o.done; err != nil {
		GinkgoLogr.Info("Operator exited", "error", err) // any error is acceptable after a kill
	}
}

// newNamespace creates a namespace with a fake control plane.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := server.NewNamespace(ctx)
	startFakeControlPlane(ns)
	return ns
}
