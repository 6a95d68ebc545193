package controllers_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stateful-operator/stateful-operator/controllers"
	extendedstatefulsetwebhooks "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	replicatedstatefulsetwebhooks "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
	statefulclusterwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/webhooks"
	statefulsingletonwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// TestAPISamples applies every sample of every kind under strict validation, with the webhooks of
// all kinds. None of the webhooks may be skipped.
func TestAPISamples(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	server := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join("..", "config", "webhook", "manifests.yaml")}},
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	serveWebhooks(t, server)
	user, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	failClosed(t, user)
	files, err := filepath.Glob(filepath.Join("..", "config", "samples", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d samples: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sample-"}}
			if err := user.Create(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			objects, err := manifest.ReadFile[unstructured.Unstructured](file)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				object.SetNamespace(ns.Name)
				if err := user.Create(t.Context(), &object, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
		})
	}
}

// serveWebhooks serves the admission webhooks of all kinds.
func serveWebhooks(t *testing.T, server *envtest.Environment) {
	t.Helper()
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	at := server.WebhookInstallOptions
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: at.LocalServingHost, Port: at.LocalServingPort, CertDir: at.LocalServingCertDir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, setup := range []func(ctrl.Manager) error{
		extendedstatefulsetwebhooks.SetupWebhook, statefulclusterwebhooks.SetupWebhook,
		func(mgr ctrl.Manager) error {
			return replicatedstatefulsetwebhooks.SetupWebhook(mgr, types.NamespacedName{}, nil, nil)
		},
		func(mgr ctrl.Manager) error {
			return statefulsingletonwebhooks.SetupWebhook(mgr, "image", nil, "operator-system")
		},
	} {
		if err := setup(mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the webhooks", func() bool { return mgr.GetWebhookServer().StartedChecker()(nil) == nil })
}

// failClosed sets the failure policy Fail, so that an unreachable webhook fails the test.
func failClosed(t *testing.T, user client.Client) {
	t.Helper()
	fail := admissionv1.Fail
	var validating admissionv1.ValidatingWebhookConfigurationList
	var mutating admissionv1.MutatingWebhookConfigurationList
	for _, list := range []client.ObjectList{&validating, &mutating} {
		if err := user.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var all []client.Object
	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			validating.Items[i].Webhooks[j].FailurePolicy = &fail
		}
		all = append(all, &validating.Items[i])
	}
	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			mutating.Items[i].Webhooks[j].FailurePolicy = &fail
		}
		all = append(all, &mutating.Items[i])
	}
	if len(all) == 0 {
		t.Fatal("no webhook configurations")
	}
	for _, configuration := range all {
		if err := user.Update(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
	}
}
