package bounded

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/turns"
)

const (
	// handshakes is the max number of concurrent signatures. An RSA signature takes about 1 ms of CPU
	// time, and any pod can request any number of them.
	handshakes = 1
	// handshakeWait is how long a handshake waits for its signature.
	handshakeWait = 5 * time.Second
)

// fairHandshakes returns a TLS configuration that assigns signatures round robin by peer. A peer waits
// for at most one handshake of each other peer, however many handshakes they start.
func fairHandshakes(config *tls.Config) *tls.Config {
	fair, signing := config.Clone(), turns.New(handshakes, handshakes, 0)
	find := config.GetCertificate
	if find == nil {
		certificates := config.Certificates
		find = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return nil, errors.New("no certificate")
			}
			return &certificates[0], nil
		}
	}
	fair.Certificates = nil
	fair.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		found, err := find(hello)
		if err != nil {
			return nil, err
		}
		key, ok := found.PrivateKey.(crypto.Signer)
		if !ok {
			return found, nil
		}
		certificate := *found
		certificate.PrivateKey = &fairSigner{Signer: key, ctx: hello.Context(), peer: hostOf(hello.Conn.RemoteAddr().String()), turns: signing}
		return &certificate, nil
	}
	return fair
}

// fairSigner is a signer that waits for the turn of a peer.
type fairSigner struct {
	crypto.Signer
	ctx   context.Context
	peer  string
	turns *turns.Turns
}

// Sign waits for a turn, then signs.
func (s *fairSigner) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	leave, err := s.turns.Enter(s.ctx, s.peer, handshakeWait)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.Signer.Sign(random, digest, options)
}
