package servingcert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stateful-operator/stateful-operator/controllers/internal/follow"
)

// Names specifies the Secrets of an Authority's certificate, and the Services and webhooks that use it.
type Names struct {
	// Namespace is the namespace of the Secrets and Services.
	Namespace string
	// Authority is the Secret with the CA and its key. Serving is the Secret for the servers: the
	// certificate, its key and the CA's certificate. Both Secrets must exist; they may be empty.
	Authority, Serving string
	// Services are the Services whose names the certificate is valid for. The first one is that of the
	// webhook.
	Services []string
	// Validating is the ValidatingWebhookConfiguration into which the CA is written.
	Validating string
	// Mutating is the MutatingWebhookConfiguration into which the CA is written; "" means none.
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

// Authority creates and renews the certificate, publishes it for the servers, and writes its CA into
// the webhook configurations.
type Authority struct {
	// injected is closed once the CA is in the webhook configurations.
	injected chan struct{}
}

// NewAuthority returns an Authority that is not ready yet.
func NewAuthority() *Authority { return &Authority{injected: make(chan struct{})} }

// Check is the readiness check of the authority. It succeeds once the CA is in the webhook
// configurations.
func (a *Authority) Check(*http.Request) error {
	select {
	case <-a.injected:
		return nil
	default:
		return errors.New("the webhook configurations do not have the CA yet")
	}
}

// +kubebuilder:rbac:groups="",namespace=system,roleName=installer-own-namespace-role,resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=system,roleName=installer-own-namespace-role,resources=secrets,resourceNames=stateful-operator-ca;stateful-operator-webhook-certs,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=validatingwebhookconfigurations,resourceNames=stateful-operator-validating-webhook-configuration,verbs=update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=mutatingwebhookconfigurations,resourceNames=stateful-operator-mutating-webhook-configuration,verbs=update

// Setup adds the rotator to the manager. The rotator runs on every replica, leader or not. All writes
// carry a resourceVersion. If two replicas create a certificate at the same time, the write of one is
// rejected, and that replica reads and serves the certificate of the other.
func (a *Authority) Setup(mgr manager.Manager, names Names) error {
	folder, err := placeholder()
	if err != nil {
		return err
	}
	hosts := names.hosts()
	err = rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: names.Namespace, Name: names.Authority},
		CertDir:        folder,
		CertName:       certFile,
		KeyName:        keyFile,
		CAName:         "stateful-operator-ca",
		CAOrganization: "stateful-operator",
		DNSName:        hosts[0],
		ExtraDNSNames:  hosts[1:],
		IsReady:        a.injected,
		Webhooks:       names.webhooks(),
		FieldOwner:     "stateful-operator",
	})
	if err != nil {
		return fmt.Errorf("set up the certificate rotator: %w", err)
	}
	p := &publisher{live: mgr.GetAPIReader(), writer: mgr.GetClient(), made: make(chan struct{}, 1),
		from: types.NamespacedName{Namespace: names.Namespace, Name: names.Authority},
		to:   types.NamespacedName{Namespace: names.Namespace, Name: names.Serving}}
	if err := follow.Object(mgr, &corev1.Secret{}, p.from, p.secretChanged); err != nil {
		return err
	}
	return mgr.Add(follow.Everywhere(p.run))
}

// placeholder creates a folder that looks like a mounted Secret to the rotator. The rotator waits until
// a file with the name of the certificate exists. This file is not used, because the servers wait for
// the certificate itself.
func placeholder() (string, error) {
	folder, err := os.MkdirTemp("", "serving-certificate-")
	if err != nil {
		return "", fmt.Errorf("create a folder for the certificate rotator: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, certFile), nil, 0o600); err != nil {
		return "", fmt.Errorf("create a file for the certificate rotator: %w", err)
	}
	return folder, nil
}

// caFile is the key under which the rotator stores the CA certificate.
const caFile = "ca.crt"

// publishInterval is the time between two runs of the publisher, and publishRetry the delay after an
// error.
const (
	publishInterval = time.Minute
	publishRetry    = 2 * time.Second
)

// publisher copies the data that servers need from the authority's Secret to theirs. It does not copy
// the key of the CA.
type publisher struct {
	live     client.Reader
	writer   client.Writer
	from, to types.NamespacedName
	made     chan struct{}
}

// secretChanged is called when the authority's Secret changes.
func (p *publisher) secretChanged(context.Context, *corev1.Secret) {
	select {
	case p.made <- struct{}{}:
	default: // a run is already pending
	}
}

// run publishes the certificate after each change, and periodically, until ctx ends.
func (p *publisher) run(ctx context.Context) error {
	for {
		next := publishInterval
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to publish the serving certificate; will retry")
			next = publishRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.made:
		case <-time.After(next):
		}
	}
}

// publish updates the servers' Secret if it differs. The update carries the resourceVersion that was
// read.
func (p *publisher) publish(ctx context.Context) error {
	var authority, serving corev1.Secret
	if err := p.live.Get(ctx, p.from, &authority); err != nil {
		return fmt.Errorf("read the Secret of the CA: %w", err)
	}
	if len(authority.Data[certFile]) == 0 {
		return nil // the certificate does not exist yet
	}
	if err := p.live.Get(ctx, p.to, &serving); err != nil {
		return fmt.Errorf("read the Secret of the serving certificate: %w", err)
	}
	want := map[string][]byte{}
	for _, name := range []string{caFile, certFile, keyFile} {
		want[name] = authority.Data[name]
	}
	if maps.EqualFunc(serving.Data, want, bytes.Equal) {
		return nil
	}
	serving.Data = want
	if err := p.writer.Update(ctx, &serving); err != nil {
		return fmt.Errorf("write the Secret of the serving certificate: %w", err)
	}
	return nil
}
