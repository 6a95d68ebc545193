package postgresql

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
)

const (
	passfile      = "passwords" // of libpq
	ownAuthority  = "tls-ca.crt"
	ownCert       = "tls-server.crt"
	ownPrivateKey = "tls-server.key"
)

// credentials are passwords. They are never logged, and given to programs only by files.
type credentials struct{ superuser, replicator string }

func (s *Server) credentials() (credentials, error) {
	superuser, err := s.password(settings.PasswordKey)
	if err != nil {
		return credentials{}, err
	}
	replicator, err := s.password(settings.ReplicationPasswordKey)
	return credentials{superuser, replicator}, err
}

// password reads a password of printable ASCII characters. PostgreSQL normalizes others, in ways that
// depend on the client.
func (s *Server) password(key string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.config.CredentialsDir, key))
	if err != nil {
		return "", driver.Errorf(driver.NotConfigured, "read the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	for _, c := range password {
		if c < ' ' || c > '~' {
			return "", driver.Errorf(driver.NotConfigured, "key %s of the Secret has characters that are not printable ASCII", key)
		}
	}
	if password == "" {
		return "", driver.Errorf(driver.NotConfigured, "key %s of the Secret is empty", key)
	}
	return password, nil
}

// writePasswords writes the file from which libpq and its programs read passwords.
func (s *Server) writePasswords() error {
	c, err := s.credentials()
	if err != nil {
		return err
	}
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`)
	text := fmt.Sprintf("*:*:*:%s:%s\n*:*:*:%s:%s\n", settings.Superuser, escape.Replace(c.superuser), settings.Replicator, escape.Replace(c.replicator))
	_, err = s.replace(passfile, []byte(text))
	return err
}

// replace writes a private file if its content differs.
func (s *Server) replace(name string, content []byte) (changed bool, err error) {
	if old, err := os.ReadFile(s.private(name)); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	return true, writeDurably(s.private(name), content)
}

// writeCertificate copies the certificate. PostgreSQL refuses a private key that its group can read,
// as volumes have them.
func (s *Server) writeCertificate() (changed bool, err error) {
	if s.config.TLSDir == "" {
		return false, nil
	}
	files := map[string]string{settings.CertificateKey: ownCert, settings.PrivateKey: ownPrivateKey, settings.AuthorityKey: ownAuthority}
	content := map[string][]byte{}
	for key := range files {
		content[key], err = os.ReadFile(filepath.Join(s.config.TLSDir, key))
		missing := errors.Is(err, os.ErrNotExist) && key == settings.AuthorityKey
		if err != nil && !missing {
			return false, driver.Errorf(driver.NotConfigured, "read the certificate: %w", err)
		}
	}
	// They are two files, and the kubelet may be replacing them.
	if _, err := tls.X509KeyPair(content[settings.CertificateKey], content[settings.PrivateKey]); err != nil {
		return false, driver.Errorf(driver.NotConfigured, "the certificate in %s: %w", s.config.TLSDir, err)
	}
	for key, name := range files {
		if content[key] == nil {
			continue
		}
		one, err := s.replace(name, content[key])
		if err != nil {
			return false, err
		}
		changed = changed || one
	}
	return changed, nil
}

func (s *Server) hasAuthority() bool {
	_, err := os.Stat(filepath.Join(s.config.TLSDir, settings.AuthorityKey))
	return s.config.TLSDir != "" && err == nil
}

func (s *Server) tlsSettings() map[string]string {
	return map[string]string{"ssl": "on", "ssl_cert_file": s.private(ownCert), "ssl_key_file": s.private(ownPrivateKey)}
}

// tlsOptions returns the options of libpq for connections between members. The certificate must be
// signed by the authority, but need not contain the names of members.
func (s *Server) tlsOptions() conninfo {
	switch {
	case s.config.TLSDir == "":
		return conninfo{{"sslmode", "disable"}}
	case s.hasAuthority():
		return conninfo{{"sslmode", "verify-ca"}, {"sslrootcert", s.private(ownAuthority)}}
	}
	return conninfo{{"sslmode", "require"}}
}
