package postgresql

import (
	"fmt"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

const (
	passfile = "passwords" // of libpq
)

// credentials are passwords. They are never logged, and given to programs only by files.
type credentials struct{ superuser, replicator string }

func (s *Server) credentials() (credentials, error) {
	superuser, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return credentials{}, err
	}
	replicator, err := secrets.Password(s.config.CredentialsDir, settings.ReplicationPasswordKey)
	return credentials{superuser, replicator}, err
}

// writePasswords writes the file from which libpq and its programs read passwords.
func (s *Server) writePasswords() error {
	c, err := s.credentials()
	if err != nil {
		return err
	}
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`)
	text := fmt.Sprintf("*:*:*:%s:%s\n*:*:*:%s:%s\n", settings.Superuser, escape.Replace(c.superuser), settings.Replicator, escape.Replace(c.replicator))
	_, err = s.Private.Replace(passfile, []byte(text))
	return err
}

func (s *Server) writeCertificate() (changed bool, err error) {
	return secrets.CopyCertificate(s.config.TLSDir, s.Private)
}

func (s *Server) tlsSettings() map[string]string {
	return map[string]string{"ssl": "on", "ssl_cert_file": s.Private.Path(secrets.Certificate), "ssl_key_file": s.Private.Path(secrets.PrivateKey)}
}

// tlsOptions returns the options of libpq for connections between members. The certificate must be
// signed by the authority, but need not contain the names of members.
func (s *Server) tlsOptions() conninfo {
	switch {
	case s.config.TLSDir == "":
		return conninfo{{"sslmode", "disable"}}
	case secrets.HasAuthority(s.config.TLSDir):
		return conninfo{{"sslmode", "verify-ca"}, {"sslrootcert", s.Private.Path(secrets.Authority)}}
	}
	return conninfo{{"sslmode", "require"}}
}
