package servingcert

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Names says where a certificate of our own making lives and what it is for.
type Names struct {
	// Namespace of the Secret and of the Services.
	Namespace string
	// Secret that holds CA, certificate and keys. It must exist; it may be empty.
	Secret string
	// Services whose names the certificate is valid for. The first is the
	// webhook's.
	Services []string
	// Validating is the ValidatingWebhookConfiguration that gets the CA.
	Validating string
	// Mutating is the MutatingWebhookConfiguration that gets it too; "" is none.
	Mutating string
}

func (n Names) hosts() []string {
	hosts := make([]string, 0, len(n.Services))
	for _, service := range n.Services {
		hosts = append(hosts, service+"."+n.Namespace+".svc")
	}
	return hosts
}

func (n Names) webhooks() []rotator.WebhookInfo {
	all := []rotator.WebhookInfo{{Name: n.Validating, Type: rotator.Validating}}
	if n.Mutating != "" {
		all = append(all, rotator.WebhookInfo{Name: n.Mutating, Type: rotator.Mutating})
	}
	return all
}

// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,resourceNames=stateful-operator-webhook-certs,verbs=update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=cluster-scoped-role,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=cluster-scoped-role,resources=validatingwebhookconfigurations,resourceNames=stateful-operator-validating-webhook-configuration,verbs=update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=cluster-scoped-role,resources=mutatingwebhookconfigurations,resourceNames=stateful-operator-mutating-webhook-configuration,verbs=update

// followSecret runs the rotator on every replica, leader or not: the writes
// carry a resourceVersion, so of two replicas that make a certificate at the
// same moment one is refused, reads the other's, and serves that.
func (s *Source) followSecret(mgr manager.Manager, names Names) error {
	folder, err := placeholder()
	if err != nil {
		return err
	}
	hosts := names.hosts()
	err = rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: names.Namespace, Name: names.Secret},
		CertDir:        folder,
		CertName:       certFile,
		KeyName:        keyFile,
		CAName:         "stateful-operator-ca",
		CAOrganization: "stateful-operator",
		DNSName:        hosts[0],
		ExtraDNSNames:  hosts[1:],
		IsReady:        s.injected,
		Webhooks:       names.webhooks(),
		FieldOwner:     "stateful-operator",
	})
	if err != nil {
		return fmt.Errorf("setting up the certificate rotator: %w", err)
	}
	return s.watchSecret(mgr, names)
}

// placeholder is what the rotator takes for a mounted Secret: it waits until
// there is a file of the certificate's name, which we do not need, because
// Check waits for the certificate itself.
func placeholder() (string, error) {
	folder, err := os.MkdirTemp("", "serving-certificate-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the certificate rotator: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, certFile), nil, 0o600); err != nil {
		return "", fmt.Errorf("making a file for the certificate rotator: %w", err)
	}
	return folder, nil
}

// watchSecret has a cache of its own, which holds one Secret: the manager's
// cache may be bound to other namespaces, and the rotator's is not handed out.
func (s *Source) watchSecret(mgr manager.Manager, names Names) error {
	one := cache.ByObject{Namespaces: map[string]cache.Config{
		names.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", names.Secret)},
	}}
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:   mgr.GetScheme(),
		Mapper:   mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: one},
	})
	if err != nil {
		return fmt.Errorf("making the cache of the certificate's Secret: %w", err)
	}
	serve := func(object any) {
		secret, ok := object.(*corev1.Secret)
		if !ok || len(secret.Data[certFile]) == 0 {
			return
		}
		certificate, err := tls.X509KeyPair(secret.Data[certFile], secret.Data[keyFile])
		if err != nil {
			// The rotator finds the same and replaces it.
			mgr.GetLogger().Error(err, "The Secret holds no usable certificate", "secret", names.Secret)
			return
		}
		s.certificate.Store(&certificate)
	}
	return mgr.Add(everywhere(func(ctx context.Context) error {
		informer, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching the certificate's Secret: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    serve,
			UpdateFunc: func(_, changed any) { serve(changed) },
		})
		if err != nil {
			return fmt.Errorf("watching the certificate's Secret: %w", err)
		}
		return secrets.Start(ctx)
	}))
}
