// Package settings defines and validates the configuration of the driver for MariaDB Galera. It has no side
// effects and few dependencies, so that the operator can use it as well.
package settings

import (
	"errors"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Variable is the environment variable with the configuration, see Config.Encode.
const Variable = "AGENT_GALERA"

// AddressVariable is the environment variable with the IP address of the pod.
const AddressVariable = "AGENT_ADDRESS"

// PasswordKey is the key of the Secret with the password of the user root, which members use as well.
const PasswordKey = "password"

const defaultPort = 3306

// Ports that only members use.
const (
	GroupPort    = 4567
	TransferPort = 4568 // of missing transactions
)

// Config is the configuration of the driver.
type Config struct {
	settings.Common
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
	return c, errors.Join(c.Validate(), settings.ProblemsError(Problems(c.Settings)))
}
