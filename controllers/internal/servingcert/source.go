// Package servingcert provides the TLS certificate of the webhook and metrics servers.
//
// A mounted certificate (from OLM, cert-manager, or created manually) is used and reloaded. If none is
// mounted, an Authority creates and renews one with cert-controller. It may run in another process. The
// key of the authority is in a Secret that no other process reads. The data that servers need are
// published in another Secret. A Source watches that Secret and keeps its data in memory. A Secret
// volume would be updated up to a minute later, and would store the key on disk.
package servingcert

import (
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stateful-operator/stateful-operator/controllers/internal/follow"
)

// File names of a mounted certificate, and keys of the Secret.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// Source provides the serving certificate. It has none until its manager runs.
type Source struct {
	certificate atomic.Pointer[tls.Certificate]
	caller      atomic.Pointer[Caller]
	// previous is the caller before the last renewal of the certificate. The API server sends its token
	// until the webhook configurations are updated.
	previous atomic.Pointer[Caller]
}

// Caller identifies the API server to the webhook server. Other clients can reach the port too, and the
// API server is not required to present a client certificate.
type Caller struct {
	// Authority is the certificate with which the API server verifies the webhook server.
	Authority []byte
	// Token is the first segment of the paths in the webhook configurations. It is derived from the key
	// of the certificate and changes with it.
	Token string
}

// Caller returns the current caller. It is empty if the certificate is mounted, or does not exist yet.
func (s *Source) Caller() Caller {
	if caller := s.caller.Load(); caller != nil {
		return *caller
	}
	return Caller{}
}

// Admit returns the path of the request without the token. It returns false if the token is missing or
// wrong. If there is no caller, it admits every request.
func (s *Source) Admit(path string) (string, bool) {
	caller, previous := s.caller.Load(), s.previous.Load()
	if caller == nil {
		return path, true
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !caller.has(token) && (previous == nil || !previous.has(token)) {
		return "", false
	}
	return "/" + rest, true
}

// has reports whether token is the token of the caller.
func (c *Caller) has(token string) bool {
	return subtle.ConstantTimeCompare([]byte(c.Token), []byte(token)) == 1
}

// setCaller sets the caller, and keeps the previous one if the token differs.
func (s *Source) setCaller(caller *Caller) {
	if now := s.caller.Load(); now != nil && now.Token != caller.Token {
		s.previous.Store(now)
	}
	s.caller.Store(caller)
}

// Configure makes a TLS server get its certificate from this source at each handshake.
func (s *Source) Configure(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if certificate := s.certificate.Load(); certificate != nil {
			return certificate, nil
		}
		return nil, errors.New("no serving certificate yet")
	}
}

// Check is the readiness check of this source. It succeeds once a certificate is available.
func (s *Source) Check(*http.Request) error {
	if s.certificate.Load() == nil {
		return errors.New("no serving certificate yet")
	}
	return nil
}

// Setup makes the manager keep this source up to date: from the folder if a certificate is mounted
// there, else from the Secret.
func (s *Source) Setup(mgr manager.Manager, folder string, secret types.NamespacedName) error {
	mounted, err := isMounted(folder)
	if err != nil {
		return err
	}
	if mounted {
		return s.followFolder(mgr, folder)
	}
	return s.followSecret(mgr, secret)
}

// Mounted reports whether a folder contains a complete certificate. It returns false on errors.
func Mounted(folder string) bool {
	mounted, err := isMounted(folder)
	return mounted && err == nil
}

func isMounted(folder string) (bool, error) {
	found := make([]string, 0, 2)
	for _, name := range []string{certFile, keyFile} {
		_, err := os.Stat(filepath.Join(folder, name))
		switch {
		case err == nil:
			found = append(found, name)
		case !errors.Is(err, fs.ErrNotExist):
			return false, fmt.Errorf("find a mounted certificate: %w", err)
		}
	}
	if len(found) == 1 {
		return false, fmt.Errorf("%s has only %s; a certificate needs %s and %s", folder, found[0], certFile, keyFile)
	}
	return len(found) == 2, nil
}

// followFolder serves a mounted certificate and reloads it. It does not handle the CA.
func (s *Source) followFolder(mgr manager.Manager, folder string) error {
	watcher, err := certwatcher.New(filepath.Join(folder, certFile), filepath.Join(folder, keyFile))
	if err != nil {
		return fmt.Errorf("read the mounted certificate: %w", err)
	}
	watcher.RegisterCallback(func(certificate tls.Certificate) { s.certificate.Store(&certificate) })
	return mgr.Add(follow.Everywhere(watcher.Start))
}
