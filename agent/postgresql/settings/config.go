// Package settings defines and validates the configuration of the driver for PostgreSQL. It has no side
// effects and few dependencies, so that the operator can use it as well.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Variable is the environment variable with the configuration, see Config.Encode.
const Variable = "AGENT_POSTGRESQL"

// Keys of the Secret with the credentials.
const (
	PasswordKey            = "password"            // of Superuser
	ReplicationPasswordKey = "replicationPassword" // of Replicator
)

// Roles that the driver creates. A standby connects as Replicator. Copies are compared and rewound as
// Superuser.
const (
	Superuser  = "postgres"
	Replicator = "replicator"
)

// Keys of a folder with a certificate.
const (
	CertificateKey = "tls.crt"
	PrivateKey     = "tls.key"
	AuthorityKey   = "ca.crt" // optional
)

const (
	defaultPort           = 5432
	defaultCommandSeconds = 570
	minCommandSeconds     = 30
)

// Config is the configuration of the driver.
type Config struct {
	// PrimaryHost is the name that resolves to the current primary.
	PrimaryHost string `json:"primaryHost"`
	// Port of all members. Defaults to 5432.
	Port int32 `json:"port,omitempty"`
	// ListenAddresses defaults to all.
	ListenAddresses string `json:"listenAddresses,omitempty"`
	// DataDir is the data folder, which is created. Its parent must be on the volume with the data,
	// and be writable.
	DataDir string `json:"dataDir"`
	// RunDir is a writable folder that is as old as the pod.
	RunDir string `json:"runDir"`
	// CredentialsDir contains files with PasswordKey and ReplicationPasswordKey.
	CredentialsDir string `json:"credentialsDir"`
	// TLSDir contains files with CertificateKey, PrivateKey and AuthorityKey. If it is set, clients
	// must use TLS.
	TLSDir string `json:"tlsDir,omitempty"`
	// SynchronousStandbys is the number of standbys that must have a transaction on disk before its
	// commit returns. While fewer are connected, commits wait.
	SynchronousStandbys int32 `json:"synchronousStandbys,omitempty"`
	// Settings of the user.
	Settings map[string]string `json:"settings,omitempty"`
	// CommandSeconds is the time after which a command that starts the server gives up. It must be
	// shorter than the timeout of the command. Defaults to 570.
	CommandSeconds int32 `json:"commandSeconds,omitempty"`
}

// Encode returns the value of Variable. It contains no dollar sign, so that the kubelet does not expand
// references to other variables.
func (c Config) Encode() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(string(text), "$", `\u0024`), nil
}

// Decode parses and validates the value of Variable, and sets defaults. It ignores unknown fields,
// because the operator may be newer than the agent.
func Decode(text string) (Config, error) {
	var c Config
	if text == "" {
		return c, fmt.Errorf("the environment variable %s is not set", Variable)
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("parse the environment variable %s: %w", Variable, err)
	}
	if c.Port == 0 {
		c.Port = defaultPort
	}
	if c.ListenAddresses == "" {
		c.ListenAddresses = "*"
	}
	if c.CommandSeconds == 0 {
		c.CommandSeconds = defaultCommandSeconds
	}
	return c, c.validate()
}

func (c Config) validate() error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	require(c.PrimaryHost != "", "primaryHost is not set")
	require(!strings.ContainsAny(c.PrimaryHost, ` '\`), "primaryHost %q is not a name", c.PrimaryHost)
	require(c.Port > 0 && c.Port < 1<<16, "port %d is not a port", c.Port)
	require(c.SynchronousStandbys >= 0, "synchronousStandbys %d is negative", c.SynchronousStandbys)
	require(c.CommandSeconds >= minCommandSeconds, "commandSeconds %d is below %d", c.CommandSeconds, minCommandSeconds)
	for name, dir := range map[string]string{"dataDir": c.DataDir, "runDir": c.RunDir, "credentialsDir": c.CredentialsDir} {
		require(isFolder(dir), "%s %q is not an absolute path below a folder", name, dir)
	}
	require(c.TLSDir == "" || isFolder(c.TLSDir), "tlsDir %q is not an absolute path below a folder", c.TLSDir)
	faults = append(faults, Validate(c.Settings))
	return errors.Join(faults...)
}

func isFolder(dir string) bool {
	return path.IsAbs(dir) && path.Clean(dir) == dir && dir != "/" && !strings.ContainsAny(dir, "'\\\n\"")
}
