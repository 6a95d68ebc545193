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

// Names says where a certificate of our own making lives and what it is for.
type Names struct {
	// Namespace of the Secrets and of the Services.
	Namespace string
	// Authority is the Secret with the CA and its key. Serving is the Secret with the
	// certificate, its key and the CA's certificate, for the servers. Both must exist;
	// they may be empty.
	Authority, Serving string
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

// Authority makes the certificate, renews it, publishes it for the servers, and writes its
// CA into the webhook configurations.
type Authority struct {
	// injected is closed once the API server was given our CA.
	injected chan struct{}
}

// NewAuthority gives one that has told the API server nothing yet.
func NewAuthority() *Authority { return &Authority{injected: make(chan struct{})} }

// Check is the readiness of the authority: the API server was told to trust it.
func (a *Authority) Check(*http.Request) error {
	select {
	case <-a.injected:
		return nil
	default:
		return errors.New("the CA is not yet in the webhook configurations")
	}
}

// +kubebuilder:rbac:groups="",namespace=system,roleName=installer-own-namespace-role,resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=system,roleName=installer-own-namespace-role,resources=secrets,resourceNames=stateful-operator-ca;stateful-operator-webhook-certs,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=validatingwebhookconfigurations,resourceNames=stateful-operator-validating-webhook-configuration,verbs=update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=mutatingwebhookconfigurations,resourceNames=stateful-operator-mutating-webhook-configuration,verbs=update

// Setup runs the rotator on every replica, leader or not: the writes
// carry a resourceVersion, so of two replicas that make a certificate at the
// same moment one is refused, reads the other's, and serves that.
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
		return fmt.Errorf("setting up the certificate rotator: %w", err)
	}
	p := &publisher{live: mgr.GetAPIReader(), writer: mgr.GetClient(), made: make(chan struct{}, 1),
		from: types.NamespacedName{Namespace: names.Namespace, Name: names.Authority},
		to:   types.NamespacedName{Namespace: names.Namespace, Name: names.Serving}}
	if err := follow.Object(mgr, &corev1.Secret{}, p.from, p.see); err != nil {
		return err
	}
	return mgr.Add(follow.Everywhere(p.run))
}

// placeholder is what the rotator takes for a mounted Secret: it waits until
// there is a file of the certificate's name, which we do not need, because
// who serves waits for the certificate itself.
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

// caFile is where the rotator keeps the certificate of the CA.
const caFile = "ca.crt"

// Times of the publisher: between two looks, and before it tries again.
const (
	publishInterval = time.Minute
	publishRetry    = 2 * time.Second
)

// publisher copies what servers need out of the authority's Secret, and leaves the key of
// the CA where it is.
type publisher struct {
	live     client.Reader
	writer   client.Writer
	from, to types.NamespacedName
	made     chan struct{}
}

// see is called when the authority's Secret changes.
func (p *publisher) see(context.Context, *corev1.Secret) {
	select {
	case p.made <- struct{}{}:
	default: // it will look anyway
	}
}

func (p *publisher) run(ctx context.Context) error {
	for {
		next := publishInterval
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Publish the serving certificate; another try follows")
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

// publish writes the servers' Secret if it differs. An update carries the
// resourceVersion that was read.
func (p *publisher) publish(ctx context.Context) error {
	var authority, serving corev1.Secret
	if err := p.live.Get(ctx, p.from, &authority); err != nil {
		return fmt.Errorf("reading the authority's Secret: %w", err)
	}
	if len(authority.Data[certFile]) == 0 {
		return nil // it is not made yet
	}
	if err := p.live.Get(ctx, p.to, &serving); err != nil {
		return fmt.Errorf("reading the servers' Secret: %w", err)
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
		return fmt.Errorf("writing the servers' Secret: %w", err)
	}
	return nil
}
