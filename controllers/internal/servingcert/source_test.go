package servingcert

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
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
		{"a certificate without its key", []string{"tls.crt"}, false, "holds tls.crt only"},
		{"a key without its certificate", []string{"tls.key"}, false, "holds tls.key only"},
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
		t.Errorf("got %v and %v for a folder that is not there, want nothing mounted", mounted, err)
	}
}

func TestReadyNeedsTheCertificateAndTheTrust(t *testing.T) {
	source, config := New(), &tls.Config{}
	source.Configure(config)
	if source.Check(nil) == nil {
		t.Error("ready without a certificate")
	}
	if _, err := config.GetCertificate(nil); err == nil {
		t.Error("a handshake got a certificate that does not exist")
	}
	certificate := &tls.Certificate{}
	source.certificate.Store(certificate)
	if source.Check(nil) == nil {
		t.Error("ready before the API server trusts the certificate")
	}
	close(source.injected)
	if err := source.Check(nil); err != nil {
		t.Errorf("not ready with everything there: %v", err)
	}
	if got, err := config.GetCertificate(nil); got != certificate || err != nil {
		t.Errorf("a handshake got %v and %v, want the certificate", got, err)
	}
}

func TestTheCAGoesWhereSomethingIsServed(t *testing.T) {
	for _, row := range []struct {
		sentence string
		names    Names
		want     []rotator.WebhookInfo
	}{
		{"nothing is mutated", Names{Validating: "v"}, []rotator.WebhookInfo{{Name: "v", Type: rotator.Validating}}},
		{"something is", Names{Validating: "v", Mutating: "m"},
			[]rotator.WebhookInfo{{Name: "v", Type: rotator.Validating}, {Name: "m", Type: rotator.Mutating}}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := row.names.webhooks(); !slices.Equal(got, row.want) {
				t.Errorf("it goes into %v, want %v", got, row.want)
			}
		})
	}
}
