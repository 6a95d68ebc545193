// Package secrets reads the files of mounted Secrets.
package secrets

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Password reads a password of printable ASCII characters. Servers and clients encode others in
// different ways.
func Password(dir, key string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, key))
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

// Names of the copies of a certificate.
const (
	Certificate = "tls-server.crt"
	PrivateKey  = "tls-server.key"
	Authority   = "tls-ca.crt"
)

// CopyCertificate copies the files of a certificate from dir, which may be empty. Servers refuse a private
// key that its group can read, as volumes have them.
func CopyCertificate(dir string, to files.Private) (changed bool, err error) {
	if dir == "" {
		return false, nil
	}
	names := map[string]string{settings.CertificateKey: Certificate, settings.PrivateKey: PrivateKey, settings.AuthorityKey: Authority}
	content := map[string][]byte{}
	for key := range names {
		content[key], err = os.ReadFile(filepath.Join(dir, key))
		missing := errors.Is(err, os.ErrNotExist) && key == settings.AuthorityKey
		if err != nil && !missing {
			return false, driver.Errorf(driver.NotConfigured, "read the certificate: %w", err)
		}
	}
	// They are two files, and the kubelet may be replacing them.
	if _, err := tls.X509KeyPair(content[settings.CertificateKey], content[settings.PrivateKey]); err != nil {
		return false, driver.Errorf(driver.NotConfigured, "the certificate in %s: %w", dir, err)
	}
	for key, name := range names {
		if content[key] == nil {
			continue
		}
		one, err := to.Replace(name, content[key])
		if err != nil {
			return false, err
		}
		changed = changed || one
	}
	return changed, nil
}

// HasAuthority reports whether the certificate comes with that of its authority.
func HasAuthority(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, settings.AuthorityKey))
	return dir != "" && err == nil
}
