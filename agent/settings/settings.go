// Package settings has what the configurations of all applications share. It has no side effects and few
// dependencies, so that the operator can use it as well.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Keys of a folder with a certificate.
const (
	CertificateKey = "tls.crt"
	PrivateKey     = "tls.key"
	AuthorityKey   = "ca.crt" // optional
)

const (
	defaultCommandSeconds = 570
	minCommandSeconds     = 30
)

// Common is the part of the configuration that all applications have.
type Common struct {
	// PrimaryHost is the name that resolves to the current primary.
	PrimaryHost string `json:"primaryHost"`
	// Port of all members. Defaults to that of the application.
	Port int32 `json:"port,omitempty"`
	// ListenAddresses defaults to all.
	ListenAddresses string `json:"listenAddresses,omitempty"`
	// DataDir is the data folder, on the volume with the data.
	DataDir string `json:"dataDir"`
	// RunDir is a writable folder that is as old as the pod.
	RunDir string `json:"runDir"`
	// CredentialsDir contains files with the passwords.
	CredentialsDir string `json:"credentialsDir"`
	// TLSDir contains files with CertificateKey, PrivateKey and AuthorityKey. If it is set, clients
	// must use TLS.
	TLSDir string `json:"tlsDir,omitempty"`
	// Settings of the user.
	Settings map[string]string `json:"settings,omitempty"`
	// CommandSeconds is the time after which a command that starts the server gives up. It must be
	// shorter than the timeout of the command. Defaults to 570.
	CommandSeconds int32 `json:"commandSeconds,omitempty"`
}

// SetDefaults sets the fields that are not set.
func (c *Common) SetDefaults(port int32) {
	if c.Port == 0 {
		c.Port = port
	}
	if c.ListenAddresses == "" {
		c.ListenAddresses = "*"
	}
	if c.CommandSeconds == 0 {
		c.CommandSeconds = defaultCommandSeconds
	}
}

// Validate returns an error that names the fields that are not valid.
func (c *Common) Validate() error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	require(c.PrimaryHost != "", "primaryHost is not set")
	require(!strings.ContainsAny(c.PrimaryHost, ` '\`), "primaryHost %q is not a name", c.PrimaryHost)
	require(c.Port > 0 && c.Port < 1<<16, "port %d is not a port", c.Port)
	require(c.CommandSeconds >= minCommandSeconds, "commandSeconds %d is below %d", c.CommandSeconds, minCommandSeconds)
	for name, dir := range map[string]string{"dataDir": c.DataDir, "runDir": c.RunDir, "credentialsDir": c.CredentialsDir} {
		require(isFolder(dir), "%s %q is not an absolute path below a folder", name, dir)
	}
	require(c.TLSDir == "" || isFolder(c.TLSDir), "tlsDir %q is not an absolute path below a folder", c.TLSDir)
	return errors.Join(faults...)
}

// Encode returns a configuration as text. It contains no dollar sign, so that the kubelet does not expand
// references to other variables.
func Encode(config any) (string, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(string(text), "$", `\u0024`), nil
}

// Decode parses the value of an environment variable. It ignores unknown fields, because the operator may
// be newer than the agent.
func Decode(variable, text string, config any) error {
	if text == "" {
		return fmt.Errorf("the environment variable %s is not set", variable)
	}
	if err := json.Unmarshal([]byte(text), config); err != nil {
		return fmt.Errorf("parse the environment variable %s: %w", variable, err)
	}
	return nil
}

// isFolder reports whether a text is an absolute path below a folder, which needs no quotes in the files
// of servers.
func isFolder(dir string) bool {
	return path.IsAbs(dir) && path.Clean(dir) == dir && dir != "/" && !strings.ContainsAny(dir, "'\\\n\" ")
}

// Problem is why a user cannot set a setting to a value.
type Problem struct{ Setting, Reason string }

// Problems returns the settings for which a function returns a reason, in the order of names.
func Problems(values map[string]string, invalid func(key, value string) string) (problems []Problem) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if reason := invalid(key, values[key]); reason != "" {
			problems = append(problems, Problem{key, reason})
		}
	}
	return problems
}

// ProblemsError returns an error that lists the problems, or nil.
func ProblemsError(problems []Problem) error {
	var faults []error
	for _, p := range problems {
		faults = append(faults, fmt.Errorf("setting %s: %s", p.Setting, p.Reason))
	}
	return errors.Join(faults...)
}

// Reasons of settings that no application lets users set.
const (
	ReasonPath        = "the agent selects the files"
	ReasonLocal       = "the agent connects by a socket in a private folder"
	ReasonNetwork     = "the operator configures the network"
	ReasonTLS         = "use spec.TLS"
	ReasonReplication = "the agent configures replication"
	ReasonDurable     = "data can be lost or damaged"
	ReasonLog         = "the log of the server is the log of the container"
)

// MaxValue is the max length of a value in bytes.
const MaxValue = 8192

// IsLine reports whether a value is one line of at most MaxValue bytes.
func IsLine(value string) bool {
	return len(value) <= MaxValue && !strings.ContainsAny(value, "\n\r\x00")
}
