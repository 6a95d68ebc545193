package release

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// pkcs8 encodes a private key like openssl genpkey.
func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	NewWithT(t).Expect(err).To(Succeed())
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// newKey returns a new key.
func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).To(Succeed())
	return pkcs8(t, key)
}

func TestSignaturesAreThoseOfTheKeyAndTheText(t *testing.T) {
	g := NewWithT(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).To(Succeed())
	sec1, err := x509.MarshalECPrivateKey(ec)
	g.Expect(err).To(Succeed())
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	g.Expect(err).To(Succeed())
	byECDSA := func(text string, signature []byte) bool {
		sum := sha256.Sum256([]byte(text))
		return ecdsa.VerifyASN1(&ec.PublicKey, sum[:], signature)
	}
	byEd25519 := func(text string, signature []byte) bool { return ed25519.Verify(public, []byte(text), signature) }
	for says, row := range map[string]struct {
		key   []byte
		right func(text string, signature []byte) bool
	}{
		"ECDSA":         {pkcs8(t, ec), byECDSA},
		"ECDSA in SEC1": {pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}), byECDSA},
		"Ed25519":       {pkcs8(t, ed), byEd25519},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			signed, err := sign(row.key, []byte("the checksums"))
			g.Expect(err).To(Succeed())
			signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signed)))
			g.Expect(err).To(Succeed())
			g.Expect(row.right("the checksums", signature)).To(BeTrue())
			g.Expect(row.right("other checksums", signature)).To(BeFalse())
			again, err := sign(row.key, []byte("the checksums"))
			g.Expect(err).To(Succeed())
			g.Expect(again).To(Equal(signed), "it is the same each time")
		})
	}
	for key, want := range map[string]string{
		"": "it has no key in PEM",
		"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n": "write it without a password",
	} {
		_, err := sign([]byte(key), nil)
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
}
