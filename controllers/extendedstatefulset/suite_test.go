package extendedstatefulset_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// These tests run against a real API server.

var (
	scheme = runtime.NewScheme()
	server apiserver.Server
	user   client.WithWatch // a user with kubectl
)

func TestAPI(t *testing.T) { apiserver.Run(t, "ExtendedStatefulSet") }

var _ = BeforeSuite(func() {
	server = apiserver.Start(scheme, v1alpha1.AddToScheme)
	user = server.User
	server.ServeWebhooks(webhooks.SetupWebhook)
})

func newNamespace(ctx context.Context) string { return server.NewNamespace(ctx) }
