package controllers

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounded"
	"github.com/stateful-operator/stateful-operator/controllers/internal/servingcert"
)

// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,resourceNames=stateful-operator-webhook-certs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=system,roleName=webhook-own-namespace-role,resources=secrets,resourceNames=stateful-operator-webhook-certs,verbs=get;list;watch

// setupServers provides the certificate, and serves metrics and probes.
func (o Options) setupServers(mgr ctrl.Manager) error {
	if o.showsCertificate() || o.makesCertificates() {
		secret := types.NamespacedName{Namespace: o.Namespace, Name: o.servingSecret()}
		if err := o.certificate.Setup(mgr, o.WebhookCertDir, secret); err != nil {
			return err
		}
	}
	if o.HealthAddress != "0" {
		server, err := bounded.NewServer("probes", o.HealthAddress, nil, o.probes(mgr))
		if err != nil {
			return err
		}
		if err := mgr.Add(server); err != nil {
			return fmt.Errorf("add the server of the probes: %w", err)
		}
	}
	if o.MetricsAddress == "0" {
		return nil
	}
	return o.serveMetrics(mgr)
}

// showsCertificate reports whether the servers of this process use the serving certificate of the
// webhooks: it is mounted, or the installer publishes it.
func (o Options) showsCertificate() bool {
	published := o.MakeCertificates && o.MetricsAddress != "0"
	return o.runs(Webhooks) || published || servingcert.Mounted(o.WebhookCertDir)
}

// probes returns the handler of the probes. The process is alive while it responds. It is ready
// while it would respond to webhook calls, and the API server trusts its certificate.
func (o Options) probes(mgr ctrl.Manager) http.Handler {
	ready := healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}
	if o.runs(Webhooks) {
		ready.Checks["certificate"], ready.Checks["webhook"] = o.certificate.Check, mgr.GetWebhookServer().StartedChecker()
	}
	if o.makesCertificates() {
		ready.Checks["authority"], ready.Checks["paths"] = o.authority.Check, o.paths.Check
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}))
	mux.Handle("/readyz", http.StripPrefix("/readyz", &ready))
	return mux
}

// serveMetrics serves the metrics to authorized users. It uses the webhooks' certificate if there
// is one, and a self-signed certificate otherwise.
func (o Options) serveMetrics(mgr ctrl.Manager) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.showsCertificate() {
		o.certificate.Configure(config)
	} else {
		certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
		if err != nil {
			return fmt.Errorf("create a certificate for the metrics: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("read the certificate of the metrics: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	filter, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create the clients that authorize requests for the metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	handler, err := filter(ctrl.Log.WithName("metrics"), mux)
	if err != nil {
		return fmt.Errorf("protect the metrics: %w", err)
	}
	server, err := bounded.NewServer("metrics", o.MetricsAddress, config, bounded.AfterRefusal(time.Second, handler))
	if err != nil {
		return err
	}
	return mgr.Add(server)
}

// webhookTLS requires client certificates if the cluster's API server has one for webhooks.
func (o Options) webhookTLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	o.certificate.Configure(config)
	if o.WebhookClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(o.WebhookClientCA)
	if err != nil {
		return nil, fmt.Errorf("read --webhook-client-ca-file: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--webhook-client-ca-file %s has no certificate", o.WebhookClientCA)
	}
	return config, nil
}
