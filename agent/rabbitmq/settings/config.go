// Package settings defines and validates the configuration of the driver for RabbitMQ. It has no side effects
// and few dependencies, so that the operator can use it as well.
package settings

import (
	"errors"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Variable is the environment variable with the configuration, see Config.Encode.
const Variable = "AGENT_RABBITMQ"

// Keys of the Secret.
const (
	PasswordKey = "password"     // of the user admin
	CookieKey   = "erlangCookie" // with which members and tools authenticate
)

const defaultPort = 5672

// DistributionPort is the port for other members and tools.
const DistributionPort = 25672

// Config is the configuration of the driver.
type Config struct {
	settings.Common

	// Service is the domain of the members in DNS.
	Service string `json:"service"`
	// Plugins are enabled, with those that they require.
	Plugins []string `json:"plugins,omitempty"`
}

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
	return c, errors.Join(c.Validate(), missing, settings.ProblemsError(Problems(c.Settings)), settings.ProblemsError(PluginProblems(c.Plugins)))
}
