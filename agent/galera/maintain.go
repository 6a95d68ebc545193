package galera

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/stateful-operator/stateful-operator/agent/galera/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

// Maintain completes a join whose command has died, and applies a changed password.
func (s *Server) Maintain(ctx context.Context) error {
	running, err := servers.Running()
	if err != nil || !running {
		return err
	}
	db, err := s.own()
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := inspect(ctx, db)
	if err != nil || !found.serves() {
		return nil // status reports a server that does not answer
	}
	if err := s.settle(ctx, db, found); err != nil {
		return err
	}
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil || password == s.applied {
		return err
	}
	// The members see a change of the Secret at different times, and must not revert it.
	if err := s.setPasswords(ctx, db, password); err != nil {
		return err
	}
	s.applied = password
	return nil
}

// setPasswords sets the password of accounts that have another one. An account that was deleted, or has
// another way to authenticate, stays as it is.
func (s *Server) setPasswords(ctx context.Context, db *sql.DB, password string) error {
	rows, err := db.QueryContext(ctx, "select user, host from mysql.user where plugin = 'mysql_native_password' and authentication_string <> ?", hashOf(password))
	if err != nil {
		return err
	}
	defer rows.Close()
	others := map[account]bool{}
	for rows.Next() {
		var a account
		if err := rows.Scan(&a.user, &a.host); err != nil {
			return err
		}
		others[a] = true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, a := range accounts {
		if !others[a] {
			continue
		}
		if _, err := db.ExecContext(ctx, fmt.Sprintf("alter user %s identified by password '%s'", a, hashOf(password))); err != nil {
			return fmt.Errorf("set the password of %s: %w", a, err)
		}
		s.log.Printf("the password of %s was changed", a)
	}
	return nil
}
