package controllers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/stateful-operator/stateful-operator/controllers"
)

// install creates the objects that config/ would create under these names.
func install(t *testing.T, user client.Client) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorPod},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "operator"}}},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "stateful-operator-webhook-certs"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "stateful-operator-ca"}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "stateful-operator-validating-webhook-configuration"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name:                    "statefulclusters.enge.me",
				AdmissionReviewVersions: []string{"v1"},
				SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
					Namespace: operatorNamespace, Name: "stateful-operator-webhook-service",
				}},
			}},
		},
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "stateful-operator-mutating-webhook-configuration"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name:                    "mpod.kb.io",
				AdmissionReviewVersions: []string{"v1"},
				SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
					Namespace: operatorNamespace, Name: "stateful-operator-webhook-service",
				}},
			}},
		},
	} {
		if err := user.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// callers returns the client configurations of the webhooks, by the webhooks' names.
func callers(t *testing.T, user client.Client) map[string]admissionv1.WebhookClientConfig {
	t.Helper()
	var validating admissionv1.ValidatingWebhookConfiguration
	var mutating admissionv1.MutatingWebhookConfiguration
	for name, configuration := range map[string]client.Object{"validating": &validating, "mutating": &mutating} {
		if err := user.Get(t.Context(), client.ObjectKey{Name: "stateful-operator-" + name + "-webhook-configuration"}, configuration); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]admissionv1.WebhookClientConfig{
		validating.Webhooks[0].Name: validating.Webhooks[0].ClientConfig,
		mutating.Webhooks[0].Name:   mutating.Webhooks[0].ClientConfig,
	}
}

// checkPaths checks that the webhooks respond only at the path that the API server has.
func checkPaths(t *testing.T, port int, path string) {
	t.Helper()
	const plain = "/validate-enge-me-v1alpha1-statefulcluster"
	for at, want := range map[string]int{path: http.StatusRequestEntityTooLarge, plain: http.StatusNotFound, "/guess" + plain: http.StatusNotFound} {
		if got := post(t, fmt.Sprintf("https://127.0.0.1:%d%s", port, at), 4<<20); got != want {
			t.Errorf("%s returned %d for a request of 4 MiB, want %d", at, got, want)
		}
	}
}

// start runs the manager, and returns a function that stops it like a signal.
func start(t *testing.T, options controllers.Options, server *envtest.Environment) (stop func()) {
	t.Helper()
	managerOptions, err := options.Manager(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(server.Config, managerOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Setup(mgr, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(cancel)
	return func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the manager returned %v", err)
			}
		case <-time.After(15 * time.Second):
			t.Error("the manager does not stop")
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// status returns the status of the response, or 0 if there is none.
func status(t *testing.T, url string) int {
	t.Helper()
	stranger := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // only the status is checked
	}}
	response, err := stranger.Get(url)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// protocol returns the protocol that a server chooses if the client offers HTTP/2.
func protocol(t *testing.T, port int) string {
	t.Helper()
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().NegotiatedProtocol
}

// post sends that many bytes, and returns the status of the response.
func post(t *testing.T, url string, size int) int {
	t.Helper()
	stranger := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := stranger.Post(url, "application/json", bytes.NewReader(make([]byte, size)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func leaseHolder(t *testing.T, user client.Client) string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := user.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "stateful-operator"}, &lease); err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
