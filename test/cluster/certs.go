package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// subject is the identity of a certificate.
type subject struct {
	name    string   // common name: the user, for Kubernetes
	groups  []string // organizations: the groups
	serving []string // host names and addresses; empty for a client certificate
}

// newAuthority creates an authority and stores it as <name>.crt and <name>.key.
func newAuthority(dir, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, writePair(dir, name, der, key)
}

// issue creates a certificate for a subject and stores it as <file>.crt and <file>.key.
func (a *authority) issue(dir, file string, who subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate(pkix.Name{CommonName: who.name, Organization: who.groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(who.serving) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, host := range who.serving {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("certificate for %s: %w", who.name, err)
	}
	return writePair(dir, file, der, key)
}

func certificate(name pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		NotBefore:    time.Now().Add(-time.Hour), // clocks differ, also after the machine slept
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

func writePair(dir, name string, der []byte, key crypto.PrivateKey) error {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), certPEM, 0o644); err != nil {
		return err
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return os.WriteFile(filepath.Join(dir, name+".key"), keyPEM, 0o600)
}

// clients are the users of the cluster. Each has a kubeconfig with its name.
var clients = map[string]subject{
	"admin":      {name: "local-admin", groups: []string{"system:masters"}},
	"kcm":        {name: "system:kube-controller-manager"},
	"scheduler":  {name: "system:kube-scheduler"},
	"kube-proxy": {name: "system:kube-proxy"},
}

// makeCerts creates all keys and kubeconfigs of the cluster.
func (c *Cluster) makeCerts() error {
	dir := c.path("certs")
	ca, err := newAuthority(dir, "ca")
	if err != nil {
		return err
	}
	front, err := newAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := front.issue(dir, "front-proxy", subject{name: "front-proxy"}); err != nil {
		return err
	}
	// Its key signs the tokens of service accounts.
	if err := ca.issue(dir, "service-account", subject{name: "service-account"}); err != nil {
		return err
	}
	apiserver := subject{name: "kube-apiserver", serving: []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"localhost", "127.0.0.1", serviceAddress, c.state.Address,
	}}
	if err := ca.issue(dir, "apiserver", apiserver); err != nil {
		return err
	}
	if err := ca.issue(dir, "apiserver-kubelet", subject{name: "kube-apiserver", groups: []string{"system:masters"}}); err != nil {
		return err
	}
	for name, who := range clients {
		if err := c.makeClient(ca, name, who); err != nil {
			return err
		}
	}
	for _, n := range c.nodes() {
		who := subject{name: "system:node:" + n.name, groups: []string{"system:nodes"}}
		if err := c.makeClient(ca, n.name, who); err != nil {
			return err
		}
		if err := ca.issue(dir, n.name+"-serving", subject{name: n.name, serving: []string{n.name, n.address}}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) makeClient(ca *authority, name string, who subject) error {
	if err := ca.issue(c.path("certs"), name, who); err != nil {
		return err
	}
	return c.writeKubeconfig(name)
}
