package postgresql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Maintain applies changed passwords and certificates to the running server.
func (s *Server) Maintain(ctx context.Context) error {
	running, err := servers.Running()
	if err != nil || !running {
		s.rolesOf = ""
		return err
	}
	return errors.Join(s.maintainCertificate(ctx), s.maintainPasswords(ctx))
}

// maintainCertificate makes the server read a changed certificate. It does not send a signal, because a
// server that starts may be ended by it.
func (s *Server) maintainCertificate(ctx context.Context) error {
	changed, err := s.writeCertificate()
	s.mustReload = s.mustReload || changed
	if err != nil || !s.mustReload {
		return err
	}
	var reloaded bool
	if err := s.askLocal(ctx, "select pg_reload_conf()", &reloaded); err != nil {
		return nil //nolint:nilerr // it may be starting; the next call retries
	}
	s.mustReload = !reloaded
	return nil
}

// maintainPasswords sets passwords in the primary. Standbys get them by replication.
func (s *Server) maintainPasswords(ctx context.Context) error {
	if err := s.writePasswords(); err != nil {
		return err
	}
	c, err := s.credentials()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(c.superuser + "\n" + c.replicator))
	hash := hex.EncodeToString(sum[:])
	if hash == s.rolesOf {
		return nil
	}
	recovering, err := s.inRecovery(ctx)
	if err != nil || recovering {
		return nil //nolint:nilerr // it may be starting; the next call retries
	}
	if err := s.setRoles(ctx, c); err != nil {
		return err
	}
	s.rolesOf = hash
	return nil
}
