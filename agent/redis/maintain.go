package redis

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/redis/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

// Maintain applies a changed password and certificate to the running server.
func (s *Server) Maintain(ctx context.Context) error {
	running, err := servers.Running()
	if err != nil || !running {
		s.applied = ""
		return err
	}
	changed, err := secrets.CopyCertificate(s.config.TLSDir, s.Private)
	if err != nil {
		return err
	}
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return err
	}
	hash := hashOf(password)
	if hash == s.applied && !changed {
		return nil
	}
	client := s.local()
	defer client.Close()
	if err := s.apply(ctx, client, password); err != nil {
		s.applied = ""
		if strings.HasPrefix(err.Error(), "LOADING") {
			return nil // the next call retries
		}
		return err
	}
	s.applied = hash
	return nil
}

// apply sets what Secrets contain. A connection that is open remains so.
func (s *Server) apply(ctx context.Context, client *redis.Client, password string) error {
	if err := client.ConfigSet(ctx, "masterauth", password).Err(); err != nil {
		return err
	}
	rules := []any{"acl", "setuser", "default"}
	for _, rule := range clientRules(password) {
		rules = append(rules, rule)
	}
	if err := client.Do(ctx, rules...).Err(); err != nil {
		return err
	}
	if s.config.TLSDir == "" {
		return nil
	}
	// Setting the names of the files again reads them.
	command := []any{"config", "set"}
	for _, line := range s.certificate() {
		name, value, _ := strings.Cut(line, " ")
		command = append(command, name, value)
	}
	return client.Do(ctx, command...).Err()
}
