// Package settings defines and validates the configuration of the driver for Redis. It has no side
// effects and few dependencies, so that the operator can use it as well.
package settings

import (
	"errors"
	"fmt"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Variable is the environment variable with the configuration, see Config.Encode.
const Variable = "AGENT_REDIS"

// PasswordKey is the key of the Secret with the password of clients, which secondaries use as well.
const PasswordKey = "password"

const defaultPort = 6379

// Config is the configuration of the driver.
type Config struct {
	settings.Common

	// MinReplicasToWrite is the number of connected secondaries without which the primary accepts no
	// writes.
	MinReplicasToWrite int32 `json:"minReplicasToWrite,omitempty"`
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
	var negative error
	if c.MinReplicasToWrite < 0 {
		negative = fmt.Errorf("minReplicasToWrite %d is negative", c.MinReplicasToWrite)
	}
	return c, errors.Join(c.Validate(), negative, settings.ProblemsError(Problems(c.Settings)))
}
