package controllers_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stateful-operator/stateful-operator/controllers"
)

const (
	operatorNamespace = "operators"
	operatorPod       = "operator-0"
	webhookHost       = "stateful-operator-webhook-service." + operatorNamespace + ".svc"
)

// TestAPIManager starts the operator as it is deployed: with an empty Secret and webhook
// configurations without a CA bundle.
func TestAPIManager(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	server := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	user, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	install(t, user)

	health, metrics, webhook := freePort(t), freePort(t), freePort(t)
	options, err := controllers.ParseOptions([]string{
		"--webhook-cert-dir=" + t.TempDir(), fmt.Sprintf("--webhook-port=%d", webhook),
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health), fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics),
	}, inPod(map[string]string{"POD_NAME": operatorPod}), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	stopped := start(t, options, server)

	eventually(t, "readyz", func() bool { return status(t, fmt.Sprintf("http://127.0.0.1:%d/readyz", health)) == http.StatusOK })
	calls := callers(t, user)
	for name, call := range calls {
		trust := x509.NewCertPool()
		trust.AppendCertsFromPEM(call.CABundle)
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", webhook), &tls.Config{RootCAs: trust, ServerName: webhookHost})
		if err != nil {
			t.Fatalf("the API server would not trust webhook %s: %v", name, err)
		}
		connection.Close()
	}
	for _, port := range []int{webhook, metrics} {
		if proto := protocol(t, port); proto == "h2" {
			t.Errorf("port %d supports HTTP/2, which allows any number of requests in a connection", port)
		}
	}
	checkPaths(t, webhook, *calls["statefulclusters.enge.me"].Service.Path)
	if got := status(t, fmt.Sprintf("https://127.0.0.1:%d/metrics", metrics)); got != http.StatusUnauthorized {
		t.Errorf("an unauthenticated request for metrics returned %d, want %d", got, http.StatusUnauthorized)
	}
	toldOf := func() int {
		n, _ := testutil.GatherAndCount(ctrlmetrics.Registry, "stateful_operator_condition_objects_left_out") // an error means none
		return n
	}
	eventually(t, "conditions of all kinds in the metrics", func() bool { return toldOf() == len(controllers.Kinds()) })
	stopped()
	if n := toldOf(); n != 0 {
		t.Errorf("conditions of %d kinds are still exposed after the manager stopped", n)
	}
	lease := leaseHolder(t, user)
	if lease != "" {
		t.Errorf("the lease is still held by %q after the manager stopped, want it released", lease)
	}
}
