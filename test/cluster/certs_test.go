package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"testing"
)

func TestCertificatesAreOfUse(t *testing.T) {
	c := &Cluster{dir: t.TempDir(), log: io.Discard, state: state{
		Name: "a", Nodes: 2, Address: "198.18.0.1", Ports: map[string]int{"apiserver": 6443},
	}}
	if err := c.makeCerts(); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(c.path("certs", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for name, want := range map[string]struct {
		usage      x509.ExtKeyUsage
		host       string
		user, team string
	}{
		"apiserver":      {x509.ExtKeyUsageServerAuth, "10.96.0.1", "kube-apiserver", ""},
		"admin":          {x509.ExtKeyUsageClientAuth, "", "local-admin", "system:masters"},
		"kcm":            {x509.ExtKeyUsageClientAuth, "", "system:kube-controller-manager", ""},
		"node-1":         {x509.ExtKeyUsageClientAuth, "", "system:node:node-1", "system:nodes"},
		"node-2-serving": {x509.ExtKeyUsageServerAuth, "198.18.0.12", "node-2", ""},
	} {
		pair, err := tls.LoadX509KeyPair(c.path("certs", name+".crt"), c.path("certs", name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{Roots: roots, DNSName: want.host, KeyUsages: []x509.ExtKeyUsage{want.usage}}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if pair.Leaf.Subject.CommonName != want.user {
			t.Errorf("%s is valid for %q, want %q", name, pair.Leaf.Subject.CommonName, want.user)
		}
		if want.team != "" && (len(pair.Leaf.Subject.Organization) != 1 || pair.Leaf.Subject.Organization[0] != want.team) {
			t.Errorf("%s is issued by %q, want %q", name, pair.Leaf.Subject.Organization, want.team)
		}
	}
	if info, err := os.Stat(c.path("certs", "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of the CA is readable by others: %v %v", info, err)
	}
	if err := c.writeKubeconfig("admin"); err != nil {
		t.Fatal(err)
	}
	if config := c.Config(); config.Host != "https://198.18.0.1:6443" || len(config.CertData) == 0 || config.QPS != -1 {
		t.Errorf("the kubeconfig returns no usable client: host %q, QPS %v", config.Host, config.QPS)
	}
}
