// Package servingcert provides the TLS certificate that the webhook and metrics servers
// serve with.
//
// A mounted certificate (OLM, cert-manager, or by hand) is used and reloaded. Where none
// is mounted, an Authority, which may be another process, makes and renews it with
// cert-controller. The key of the authority lies in a Secret that nobody else reads; what
// servers need is published in another. A Source serves what that one holds, read by a
// watch and kept in memory: a Secret volume would follow a minute later, and the key would
// lie on a disk.
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

// Files of a mounted certificate, and keys of the Secret.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// Source hands out the certificate. It has none until its manager runs.
type Source struct {
	certificate atomic.Pointer[tls.Certificate]
	caller      atomic.Pointer[Caller]
	// previous is the caller before the certificate was renewed. The API server sends the token of it
	// until the webhook configurations are updated.
	previous atomic.Pointer[Caller]
}

// Caller is how the API server is told from strangers, who reach the port as well, and whom
// it need not show a certificate to.
type Caller struct {
	// Authority is the certificate by which it knows us.
	Authority []byte
	// Token is the first part of the paths in the webhook configurations. It follows from the key
	// of the certificate, and changes with it.
	Token string
}

// Caller is empty where somebody else makes the certificate, or it is not there yet.
func (s *Source) Caller() Caller {
	if caller := s.caller.Load(); caller != nil {
		return *caller
	}
	return Caller{}
}

// Admit returns the path of a webhook, which is that of a request without the token. It is false for a
// request without the token. Where there is no token, every request is admitted.
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

// has reports whether this is the token of the caller.
func (c *Caller) has(token string) bool {
	return subtle.ConstantTimeCompare([]byte(c.Token), []byte(token)) == 1
}

// know sets the caller.
func (s *Source) know(caller *Caller) {
	if now := s.caller.Load(); now != nil && now.Token != caller.Token {
		s.previous.Store(now)
	}
	s.caller.Store(caller)
}

// Configure makes a TLS server ask this source at each handshake.
func (s *Source) Configure(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if certificate := s.certificate.Load(); certificate != nil {
			return certificate, nil
		}
		return nil, errors.New("there is no serving certificate yet")
	}
}

// Check is the readiness of this source: it has a certificate.
func (s *Source) Check(*http.Request) error {
	if s.certificate.Load() == nil {
		return errors.New("there is no serving certificate yet")
	}
	return nil
}

// Setup makes the manager keep this source supplied: from the folder if a
// certificate is mounted there, else from the Secret.
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

// Mounted reports whether a folder has a certificate, and nothing is wrong with that.
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
			return false, fmt.Errorf("looking for a mounted certificate: %w", err)
		}
	}
	if len(found) == 1 {
		return false, fmt.Errorf("%s holds %s only, and a certificate needs %s and %s", folder, found[0], certFile, keyFile)
	}
	return len(found) == 2, nil
}

// followFolder leaves the CA to whoever mounted the certificate.
func (s *Source) followFolder(mgr manager.Manager, folder string) error {
	watcher, err := certwatcher.New(filepath.Join(folder, certFile), filepath.Join(folder, keyFile))
	if err != nil {
		return fmt.Errorf("reading the mounted certificate: %w", err)
	}
	watcher.RegisterCallback(func(certificate tls.Certificate) { s.certificate.Store(&certificate) })
	return mgr.Add(follow.Everywhere(watcher.Start))
}
