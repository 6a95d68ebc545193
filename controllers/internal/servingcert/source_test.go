package servingcert

import (
	"bytes"
	"crypto/tls"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAMountedCertificateIsAPair(t *testing.T) {
	for _, row := range []struct {
		sentence string
		files    []string
		mounted  bool
		fault    string
	}{
		{"nothing is mounted", nil, false, ""},
		{"a pair is mounted", []string{"tls.crt", "tls.key"}, true, ""},
		{"a certificate without its key", []string{"tls.crt"}, false, "has only tls.crt"},
		{"a key without its certificate", []string{"tls.key"}, false, "has only tls.key"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			folder := t.TempDir()
			for _, file := range row.files {
				if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			mounted, err := isMounted(folder)
			if mounted != row.mounted || (err == nil) != (row.fault == "") || err != nil && !strings.Contains(err.Error(), row.fault) {
				t.Errorf("got %v and %v, want %v and %q", mounted, err, row.mounted, row.fault)
			}
		})
	}
	if mounted, err := isMounted(filepath.Join(t.TempDir(), "absent")); mounted || err != nil {
		t.Errorf("got %v and %v for a missing folder, want nothing mounted", mounted, err)
	}
}

func TestReadyNeedsTheCertificate(t *testing.T) {
	source, config := &Source{}, &tls.Config{}
	source.Configure(config)
	if source.Check(nil) == nil {
		t.Error("ready without a certificate")
	}
	if _, err := config.GetCertificate(nil); err == nil {
		t.Error("a handshake returned a certificate that does not exist")
	}
	certificate := &tls.Certificate{}
	source.certificate.Store(certificate)
	if err := source.Check(nil); err != nil {
		t.Errorf("not ready with a certificate: %v", err)
	}
	if got, err := config.GetCertificate(nil); got != certificate || err != nil {
		t.Errorf("a handshake returned %v and %v, want the certificate", got, err)
	}
}

// N9: requests without the token are not admitted. The token from before a renewal is admitted, because
// the webhook configurations are updated a moment later.
func TestN9Admit(t *testing.T) {
	s := &Source{}
	if path, ok := s.Admit("/pods"); !ok || path != "/pods" {
		t.Errorf("got %q and %v without a token", path, ok)
	}
	s.setCaller(&Caller{Token: "zero"})
	s.setCaller(&Caller{Token: "first"})
	s.setCaller(&Caller{Token: "first"})
	s.setCaller(&Caller{Token: "second"})
	for path, want := range map[string]string{
		"/second/pods": "/pods", "/first/pods": "/pods", "/zero/pods": "", "/pods": "", "/": "", "": "", "/secon/pods": "", "//pods": "", "/second": "/",
	} {
		if got, ok := s.Admit(path); got != want || ok != (want != "") {
			t.Errorf("%s: got %q and %v, want %q", path, got, ok, want)
		}
	}
}

func TestTheAuthorityIsReadyWhenItIsTrusted(t *testing.T) {
	authority := NewAuthority()
	if authority.Check(nil) == nil {
		t.Error("ready before the API server trusts the certificate")
	}
	close(authority.injected)
	if err := authority.Check(nil); err != nil {
		t.Errorf("not ready although everything exists: %v", err)
	}
}

func TestTheKeyOfTheAuthorityIsNotPublished(t *testing.T) {
	secret := func(name string, data map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: name}, Data: map[string][]byte{}}
		for k, v := range data {
			s.Data[k] = []byte(v)
		}
		return s
	}
	made := map[string]string{"ca.crt": "ca", "ca.key": "secret", "tls.crt": "certificate", "tls.key": "key"}
	published := map[string]string{"ca.crt": "ca", "tls.crt": "certificate", "tls.key": "key"}
	for _, row := range []struct {
		sentence            string
		authority, had, has map[string]string
	}{
		{"no certificate exists yet", nil, nil, nil},
		{"the first certificate", made, nil, published},
		{"a Secret of an older version with the key of the CA", made, made, published},
		{"a Secret that is up to date", made, published, published},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			authority, serving := secret("ca", row.authority), secret("certs", row.had)
			c := fake.NewClientBuilder().WithObjects(authority, serving).Build()
			p := publisher{live: c, writer: c, from: client.ObjectKeyFromObject(authority), to: client.ObjectKeyFromObject(serving)}
			if err := p.publish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), p.to, serving); err != nil {
				t.Fatal(err)
			}
			if want := secret("certs", row.has).Data; !maps.EqualFunc(serving.Data, want, bytes.Equal) {
				t.Errorf("published %q, want %q", serving.Data, want)
			}
		})
	}
}

func TestTheCAGoesWhereSomethingIsServed(t *testing.T) {
	for _, row := range []struct {
		sentence string
		names    Names
		want     []rotator.WebhookInfo
	}{
		{"no webhook mutates", Names{Validating: "v"}, []rotator.WebhookInfo{{Name: "v", Type: rotator.Validating}}},
		{"a webhook mutates", Names{Validating: "v", Mutating: "m"},
			[]rotator.WebhookInfo{{Name: "v", Type: rotator.Validating}, {Name: "m", Type: rotator.Mutating}}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := row.names.webhooks(); !slices.Equal(got, row.want) {
				t.Errorf("the CA is written to %v, want %v", got, row.want)
			}
		})
	}
}
