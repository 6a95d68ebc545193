// Package settings defines and validates the configuration of the driver for etcd. It has no side effects
// and few dependencies, so that the operator can use it as well.
package settings

import (
	"errors"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Variable is the environment variable with the configuration, see Config.Encode.
const Variable = "AGENT_ETCD"

// PasswordKey is the key of the Secret with the password of the user root.
const PasswordKey = "password"

const (
	defaultPort = 2379
	// The following ports are those of the other members, and of health and metrics.
	peerPort, metricsPort = 1, 2
)

// Config is the configuration of the driver.
type Config struct {
	settings.Common

	// Service is the domain of the members in DNS.
	Service string `json:"service"`
}

// PeerPort returns the port for other members.
func (c Config) PeerPort() int32 { return c.Port + peerPort }

// MetricsPort returns the port for health and metrics.
func (c Config) MetricsPort() int32 { return c.Port + metricsPort }

// Encode returns the value of Variable.
func (c Config) Encode() (string, error) { return settings.Encode(c) }

// Decode parses and validates the value of Variable, and sets defaults.
func Decode(text string) (Config, error) {
	var c Config
	if err := settings.Decode(Variable, text, &c); err != nil {
		return c, err
	}
	c.SetDefaults(defaultPort)
	var missing error
	if c.Service == "" {
		missing = errors.New("service is not set")
	}
	return c, errors.Join(c.Validate(), missing, settings.ProblemsError(Problems(c.Settings)))
}
