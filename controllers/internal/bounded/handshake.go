package bounded

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"time"
)

const (
	// handshakes is the max of signatures that are made at one time. A signature by an RSA key takes
	// about 1 ms of a processor, and any pod can ask for any number of them.
	handshakes = 1
	// handshakeWait is for how long a handshake waits for its signature.
	handshakeWait = 5 * time.Second
)

// fairHandshakes returns a configuration whose handshakes get their signatures round robin by peer: one
// peer waits for at most one handshake of each other peer, however many they begin.
func fairHandshakes(config *tls.Config) *tls.Config {
	fair, signing := config.Clone(), newTurns(handshakes, handshakes, 0)
	find := config.GetCertificate
	if find == nil {
		certificates := config.Certificates
		find = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return nil, errors.New("there is no certificate")
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

// fairSigner signs in the turn of a peer.
type fairSigner struct {
	crypto.Signer
	ctx   context.Context
	peer  string
	turns *turns
}

// Sign waits for a turn.
func (s *fairSigner) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	leave, err := s.turns.enter(s.ctx, s.peer, handshakeWait)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.Signer.Sign(random, digest, options)
}
