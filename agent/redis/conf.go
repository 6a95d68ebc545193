package redis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/redis/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

const (
	configFile   = "redis.conf"
	pidFile      = "redis.pid"
	snapshotFile = "dump.rdb"
)

// defaults are settings that users can change. A lost primary is noticed after repl-timeout.
var defaults = map[string]string{
	"save":                     "10 1",
	"repl-timeout":             "15",
	"repl-ping-replica-period": "3",
	"repl-diskless-sync-delay": "0", // otherwise a secondary waits 5 seconds for others
}

// writeConfiguration writes the file that the server reads at its start.
func (s *Server) writeConfiguration() error {
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return err
	}
	if _, err := secrets.CopyCertificate(s.config.TLSDir, s.Private); err != nil {
		return err
	}
	_, err = s.Private.Replace(configFile, []byte(s.configuration(password)))
	return err
}

// configuration returns the file. It has no role, and the primary accepts writes independent of its
// secondaries, until an epoch has begun.
func (s *Server) configuration(password string) string {
	listen := s.config.ListenAddresses
	if listen == "*" {
		listen = "* -::*"
	}
	lines := []string{
		"protected-mode no", // there is a password
		"bind " + listen,
		"unixsocket " + s.Private.Path(socket),
		"unixsocketperm 700",
		"pidfile " + s.Private.Path(pidFile),
		"daemonize no",
		"supervised no",
		`logfile ""`,
		"dir " + s.config.DataDir,
		"dbfilename " + snapshotFile,
		"appendonly no",
		"repl-backlog-ttl 0", // otherwise a primary that is alone for an hour forgets its position
		"min-replicas-to-write 0",
		"replica-ignore-disk-write-errors yes", // otherwise a secondary that cannot save ends
		"masterauth " + quote(password),
		"user default " + strings.Join(clientRules(password), " "),
		"user " + agentUser + " on #" + hashOf(s.localPassword) + " ~* &* +@all",
	}
	lines = append(lines, s.network()...)
	all := maps.Clone(defaults)
	maps.Copy(all, s.config.Settings)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		if value == "" {
			value = `""`
		}
		lines = append(lines, key+" "+value)
	}
	return strings.Join(lines, "\n") + "\n"
}

// clientRules are the rules of the user of clients and secondaries. FUNCTION FLUSH and RESTORE can delete
// the epoch.
func clientRules(password string) []string {
	return []string{"reset", "on", "#" + hashOf(password), "~*", "&*", "+@all", "-function|flush", "-function|restore"}
}

func (s *Server) network() []string {
	if s.config.TLSDir == "" {
		return []string{"port " + s.port()}
	}
	return append([]string{"port 0", "tls-port " + s.port(), "tls-replication yes", "tls-auth-clients no"}, s.certificate()...)
}

func (s *Server) certificate() []string {
	return []string{
		"tls-cert-file " + s.Private.Path(secrets.Certificate),
		"tls-key-file " + s.Private.Path(secrets.PrivateKey),
		"tls-ca-cert-file " + s.authority(),
	}
}

// quote returns an argument that the parser of configuration files reads as it is.
func quote(text string) string {
	return fmt.Sprintf(`"%s"`, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text))
}

// hashOf returns a password as users are configured with it.
func hashOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}
