package postgresql

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
)

const iterations = 4096 // as PostgreSQL itself uses

// setRoles creates the role of standbys, and sets the passwords of both roles if they differ. Passwords
// are sent as verifiers, and not logged. The transaction does not wait for synchronous standbys, which
// may not exist yet.
func (s *Server) setRoles(ctx context.Context, c credentials) error {
	ctx, cancel := context.WithTimeout(ctx, 2*attemptLimit)
	defer cancel()
	server, err := s.local(ctx)
	if err != nil {
		return err
	}
	defer closing(server)
	_, err = server.Exec(ctx, "set synchronous_commit = local; set log_statement = none; "+
		"set log_min_duration_statement = -1; set log_min_error_statement = panic")
	if err != nil {
		return err
	}
	if err := setRole(ctx, server, settings.Superuser, "superuser login", c.superuser); err != nil {
		return err
	}
	return setRole(ctx, server, settings.Replicator, "replication login", c.replicator)
}

func setRole(ctx context.Context, server *pgx.Conn, name, options, password string) error {
	var verifier *string
	err := server.QueryRow(ctx, "select rolpassword from pg_authid where rolname = $1", name).Scan(&verifier)
	missing := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !missing {
		return err
	}
	if verifier != nil && verifies(*verifier, password) {
		return nil
	}
	wanted, err := newVerifier(password)
	if err != nil {
		return err
	}
	command := "alter"
	if missing {
		command = "create"
	}
	// The parts need no quotes: the names are constants, and a verifier has no quote.
	_, err = server.Exec(ctx, fmt.Sprintf("%s role %s %s password '%s'", command, name, options, wanted))
	if err != nil {
		return fmt.Errorf("set the password of %s: %w", name, err)
	}
	return nil
}

func newVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	return verifierOf(password, salt, iterations)
}

// verifierOf returns what PostgreSQL stores instead of a password, by RFC 5803.
func verifierOf(password string, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	client := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(client[:]), encode(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// verifies reports whether a stored verifier is that of a password.
func verifies(verifier, password string) bool {
	parameters, ok := strings.CutPrefix(verifier, "SCRAM-SHA-256$")
	parameters, _, _ = strings.Cut(parameters, "$")
	count, encoded, hasSalt := strings.Cut(parameters, ":")
	number, err := strconv.Atoi(count)
	if !ok || !hasSalt || err != nil {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	same, err := verifierOf(password, salt, number)
	return err == nil && hmac.Equal([]byte(same), []byte(verifier))
}
